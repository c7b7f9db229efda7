"""Times of a scenario in the trace, in microseconds as viewers of traces want them."""

import pytest

from caesura.scenario.outcome import LayerRun, Outcome
from caesura.scenario.timeline import spans
from sim.trace import trace_events


@pytest.mark.parametrize(("unit", "microseconds"), [("s", 1e6), ("ms", 1e3), ("us", 1.0), ("cycles", 1e-3)])
def test_a_unit_of_time_is_as_long_as_it_says(unit, microseconds):
    run = LayerRun("stream", "model", 0, 0, 0.0, 0.0, 0, 1, 0.0, (0.0, 0.0), 1.0, 2.0, 2.0, 5.0)
    events = trace_events(spans(Outcome(1, 1, layers=[run]), unit))["traceEvents"]
    found = sorted((e["ts"], e["dur"]) for e in events if e["ph"] == "X")
    wanted = [1 * microseconds, 1 * microseconds, 2 * microseconds, 3 * microseconds]
    assert [*found[0], *found[1]] == pytest.approx(wanted)
