import pytest

import caesura
from benchmarks.pause_after_arrival import PRESET, Arrivals


def worst(backend, phases):
    """The latest pause of so many phases, in cycles after the arrival of planning."""
    with caesura.open(PRESET, backend) as device:
        arrivals = Arrivals(device)
        delays = arrivals.delays(arrivals.cycles * i // phases for i in range(phases))
        assert arrivals.equal and len(delays) >= phases - 1
        return max(delays.values())


def test_a_few_phases_on_the_model():
    assert worst("model", 5) <= 2000


@pytest.mark.slow
def test_a_thousand_phases_on_the_rtl():
    assert worst("native", 1000) <= 2000
