"""``caesura run --device serial:PORT``: the same command on a board, which is simulated behind a pseudo-terminal."""

import json

import pytest

from caesura import serial_device
from examples.board.terminal import terminal
from hw.contract.params import KIB, preset
from tests.support.far_end import simulated_line
from tests.support.networks import DIGITS
from tests.system.command import caesura_command

pytest.importorskip("serial")
SAMPLES = DIGITS.parent / "digits_samples.npz"
PARAMS = preset("nano").replace(dram_bytes=256 * KIB)
MACHINE = ("--preset", "nano", "--set", "dram_bytes=256KiB")


@pytest.fixture(scope="module")
def board():
    line = simulated_line(PARAMS, native=True)
    yield line
    line.close()


@pytest.mark.slow
def test_digits_are_exact_through_the_line(board):
    with terminal(board) as name:
        code, out, err = caesura_command(
            "run", DIGITS, *MACHINE, "--input", SAMPLES, "--device", f"serial:{name}", "--json"
        )
    assert code == 0, err
    told = json.loads(out)
    assert told["backend"] == f"serial:{name}" and told["correct"] == 1
    code, out, _ = caesura_command("run", DIGITS, *MACHINE, "--input", SAMPLES, "--backend", "model", "--json")
    assert json.loads(out)["outputs"] == told["outputs"]


@pytest.mark.slow
def test_another_machine_than_the_named_is_refused(board):
    with terminal(board) as name:
        code, _, err = caesura_command("run", DIGITS, "--preset", "tiny", "--device", f"serial:{name}")
    assert code == 2 and "tiny" in err


def test_where_nobody_answers_that_is_said(monkeypatch):
    monkeypatch.setattr(serial_device, "_SECONDS", 0.01)
    with terminal(None) as name:
        code, _, err = caesura_command("run", DIGITS, *MACHINE, "--device", f"serial:{name}@115200")
    told = " ".join(err.split())
    assert code == 2 and "no answer to 10 requests" in told
    assert "Is the board on, with a bitstream whose line has 115200 baud?" in told


@pytest.mark.parametrize("baud", [9600, 115_200, 3_000_000])
def test_a_slow_line_has_time_for_a_block(monkeypatch, baud):
    """What a request has still to send when the host begins to wait, is not taken for silence."""
    waits = []

    def opened(port, rate, timeout):
        waits.append(timeout)
        raise OSError("enough")

    monkeypatch.setattr("serial.Serial", opened)
    caesura_command("run", DIGITS, *MACHINE, "--device", f"serial:/dev/x@{baud}")
    assert waits[0] > 0.1 + 1033 * 10 / baud - 1e-6


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        (["--device", "usb:1"], "write serial:PORT or serial:PORT@BAUD, such as serial:/dev/ttyUSB0@3000000"),
        (["--device", "serial:"], "write serial:PORT or serial:PORT@BAUD"),
        (["--device", "serial:/dev/x@fast"], "write serial:PORT or serial:PORT@BAUD"),
        (["--device", "serial:/dev/there-is-none"], "the port cannot be opened"),
        (["--device", "serial:/dev/x", "--backend", "model"], "what --backend, --vcd and --units say is of simulators"),
    ],
)
def test_what_cannot_be_opened_is_named(flags, why):
    code, _, err = caesura_command("run", DIGITS, *MACHINE, *flags)
    assert code == 2 and why in " ".join(err.split())
