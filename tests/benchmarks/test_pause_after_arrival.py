import pytest

import caesura
from benchmarks.pause_after_arrival import PRESET, Arrivals


def worst(backend, phases):
    """The latest pause of so many phases, in cycles after the arrival of planning."""
    with caesura.open(PRESET, backend) as device:
        arrivals = Arrivals(device)
        tried = [arrivals.cycles * i // phases for i in range(phases)]
        delays = arrivals.delays(tried)
        assert arrivals.equal
        # Nobody is paused where both arrive at once, or where perception has ended and the host is about to see it.
        assert all(phase in delays for phase in tried if 0 < phase < arrivals.cycles - 500)
        return max(delays.values())


def test_a_few_phases_on_the_model():
    assert worst("model", 5) <= 2000


@pytest.mark.slow
def test_a_thousand_phases_on_the_rtl():
    assert worst("native", 1000) <= 2000
