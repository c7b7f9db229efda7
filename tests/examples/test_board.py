"""The board's netlist behind a pseudo-terminal: the command that runs a model on a board runs it there."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest

from compiler.compile import compile_model
from examples.board.netlist import line_to_board, mapped_board
from examples.board.terminal import terminal
from examples.digits.evaluate import reference_logits
from hw.contract.params import KIB, preset
from hw.contract.regs import ID_VALUE, global_reg
from sw.driver import Device
from sw.runtime import Mechanism, Runtime
from sw.serial import SerialBus
from tests.support.far_end import Lossy
from tests.support.networks import DIGITS
from tests.system.command import caesura_command
from tests.test_imports import ROOT

pytest.importorskip("serial")
pytest.importorskip("pyosys")
pytestmark = pytest.mark.slow
SAMPLES = DIGITS.parent / "digits_samples.npz"
PARAMS = preset("nano").replace(dram_bytes=256 * KIB)
MACHINE = ("--preset", "nano", "--set", "dram_bytes=256KiB")


@pytest.fixture(scope="module")
def mapped():
    """Synthesis takes minutes, once: what it made is kept."""
    return mapped_board(PARAMS)


def test_digits_are_exact_through_the_terminal(mapped):
    with terminal(line_to_board(mapped)) as name:
        code, out, err = caesura_command(
            "run", DIGITS, *MACHINE, "--input", SAMPLES, "--device", f"serial:{name}", "--json"
        )
    assert code == 0, err
    told = json.loads(out)
    assert told["backend"] == f"serial:{name}" and told["correct"] == 1
    code, out, _ = caesura_command("run", DIGITS, *MACHINE, "--input", SAMPLES, "--backend", "native", "--json")
    assert json.loads(out)["outputs"] == told["outputs"]


class BadLine:
    """Loses, damages and adds bytes in both directions, from when ``lossy`` is there."""

    def __init__(self, line):
        self._line, self.lossy = line, None

    def write(self, data):
        self._line.write(self.lossy(data) if self.lossy else data)

    def read(self, size):
        raw = self._line.read(size)
        return self.lossy(raw) if self.lossy else raw

    def reset_input_buffer(self):
        self._line.reset_input_buffer()

    def close(self):
        self._line.close()


def test_a_suspended_request_goes_on_over_a_bad_line(mapped):
    """Two copies of the digits network; the second comes while the first runs, over a line that is bad from then on."""
    images = np.load(SAMPLES)["input"][:2]
    wanted = reference_logits(DIGITS, images)
    line, lossy = BadLine(line_to_board(mapped)), Lossy(5, 300)
    device = Device(SerialBus(line, PARAMS))
    image = compile_model(DIGITS, PARAMS)
    models = [device.load(image), device.load(image)]
    assert device.bus.read_reg(global_reg("ID")) == ID_VALUE
    alone = Runtime(device, "fcfs")
    begin = device.bus.cycle
    request = alone.submit(models[0], images[:1])
    alone.run_until_done()
    until_it_runs = request.stored - begin

    def rule(situation):
        line.lossy = lossy
        return Mechanism.DUMP

    runtime = Runtime(device, "fcfs", preemptive=True, rule=rule)
    begin = device.bus.cycle
    requests = [
        runtime.submit(models[0], images[:1]),
        runtime.submit(models[1], images[1:], priority=1, arrival=begin + until_it_runs),
    ]
    runtime.run_until_done()
    assert [request.error for request in requests] == [None, None]
    np.testing.assert_array_equal([request.outputs["logits"][0] for request in requests], wanted)
    assert requests[0].preempted == 1 and requests[1].ended < requests[0].ended
    assert lossy.struck > 20


def test_the_example_prints_a_command_that_runs(mapped):
    example = [sys.executable, "-m", "examples.board.demo"]
    with subprocess.Popen(example, cwd=ROOT, stdout=subprocess.PIPE, text=True) as running:
        try:
            told = running.stdout.readline()
            found = re.fullmatch(r"caesura (run examples/digits/digits\.onnx .* --device serial:/dev/\S+)\n", told)
            assert found, told
            code, out, err = caesura_command(*found[1].replace("examples", str(ROOT / "examples"), 1).split(), "--json")
            assert code == 0, err
            assert json.loads(out)["outputs"]
        finally:
            running.terminate()
        assert running.wait(30) == 0
