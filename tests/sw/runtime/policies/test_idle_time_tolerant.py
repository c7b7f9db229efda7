"""Idle-time layer scheduling with sums that tie although they differ a little."""

import pytest

from sw.runtime.policies import by_name
from sw.runtime.policies.contract import AcceleratorState, Candidate, LayerCost


def candidate(request, load, compute, **more):
    return Candidate(request, f"model {request}", 0, LayerCost(load, compute), **more)


def chosen(lead, *candidates, **options):
    return by_name("idle_time_tolerant", **options).choose(AcceleratorState(0, lead, 0), candidates).request


def test_sums_that_differ_by_less_than_estimates_can_tell_tie():
    """Then the layer with more memory access for its compute goes first."""
    heavy, light = candidate(0, 100, 10), candidate(1, 5, 20)
    assert chosen(96, light, heavy) == 0
    assert chosen(94, light, heavy) == 1
    assert chosen(96, light, heavy, tolerance=0) == 1


def test_a_layer_that_has_waited_goes_before_one_that_uses_the_lead():
    heavy, light = candidate(0, 100, 10), candidate(1, 5, 20, passed_over=4)
    assert chosen(200, light, heavy) == 1


@pytest.mark.parametrize("options", [{"tolerance": -1}, {"starvation_limit": 0}])
def test_options_out_of_range(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        by_name("idle_time_tolerant", **options)
