"""How long queues of several engines take, and in which order steps would begin."""

import itertools

from hypothesis import given, strategies as st

from compiler.plan.regions.queue_schedule import QueuedStep, by_critical_path, makespan

DIAMOND = {0: QueuedStep(10, ()), 1: QueuedStep(30, (0,)), 2: QueuedStep(20, (0,)), 3: QueuedStep(5, (1, 2))}


def test_branches_run_side_by_side():
    assert makespan(DIAMOND, (0, 1, 2, 3), 1) == 65
    assert makespan(DIAMOND, (0, 1, 2, 3), 2) == 45


def test_a_step_joins_the_queue_that_is_free_first_once_its_inputs_exist():
    """The long step 0 is over when 1 and 2 can begin: its engine takes one of them though it has done most so far."""
    steps = {0: QueuedStep(100, ()), 1: QueuedStep(50, (0,)), 2: QueuedStep(50, (0,))}
    assert makespan(steps, (0, 1, 2), 2) == 150


def test_what_has_no_cycles_takes_no_engine():
    steps = {0: QueuedStep(10, ()), 1: QueuedStep(0, (0,)), 2: QueuedStep(10, (1,)), 3: QueuedStep(10, (1,))}
    assert makespan(steps, (0, 1, 2, 3), 2) == 20


def test_the_longest_way_to_the_end_goes_first():
    steps = {0: QueuedStep(1, ()), 1: QueuedStep(1, ()), 2: QueuedStep(1, ()), 3: QueuedStep(50, (2,))}
    assert by_critical_path(steps, 1)[0] == 2
    assert by_critical_path(DIAMOND, 2) == (0, 1, 2, 3)


@st.composite
def graphs(draw):
    count = draw(st.integers(1, 7))
    reads = [draw(st.sets(st.integers(0, i - 1), max_size=3)) if i else set() for i in range(count)]
    return {i: QueuedStep(draw(st.integers(0, 20)), tuple(sorted(reads[i]))) for i in range(count)}


@given(graphs(), st.integers(1, 3))
def test_orders_are_topological_and_no_engine_does_two_things_at_a_time(steps, engines):
    order = by_critical_path(steps, engines)
    assert sorted(order) == sorted(steps)
    assert all(order.index(other) < order.index(number) for number in steps for other in steps[number].reads)
    total, took = sum(step.cycles for step in steps.values()), makespan(steps, order, engines)
    chains = {}
    for number, step in steps.items():
        chains[number] = step.cycles + max((chains[other] for other in step.reads), default=0)
    assert max([total / engines, *chains.values()]) <= took <= total
    assert makespan(steps, order, 1) == total
    assert took <= 2 * min(makespan(steps, one, engines) for one in _orders(steps))  # as any list schedule


def _orders(steps):
    for order in itertools.islice(itertools.permutations(steps), 200):
        if all(order.index(other) < order.index(number) for number in steps for other in steps[number].reads):
            yield order
