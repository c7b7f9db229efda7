"""Runs of instructions: kept in a file, laid out for a viewer."""

from hw.contract.isa import Unit
from sim.instruction_runs import InstructionRun, load_runs, save_runs, spans
from sim.trace import trace_events

RUNS = [InstructionRun(0, Unit.LD1, 7, 3, 100, 140), InstructionRun(1, Unit.MAC, 8, 4, 120, 300)]


def test_a_file_of_runs(tmp_path):
    save_runs(tmp_path / "runs.npy", RUNS)
    assert load_runs(tmp_path / "runs.npy") == RUNS
    save_runs(tmp_path / "runs.npy", [])
    assert load_runs(tmp_path / "runs.npy") == []


def test_a_track_for_each_unit():
    events = trace_events(spans(RUNS))["traceEvents"]
    names = {event["args"]["name"] for event in events if event["ph"] == "M"}
    assert names == {"engine 0", "engine 1", "LD1", "MAC"}
    assert [event["args"]["cycles"] for event in events if event["ph"] == "X"] == [40, 180]
