"""Queue-time balancing: the worked examples, its book-keeping, and the other placement policies."""

import random

import pytest

from sw.runtime.policies import PLACEMENT, Operator, placement_for
from sw.runtime.policies.placement import QueueTime


def operator(number, duration=10.0, **more):
    return Operator(number, 0, duration, **more)


def test_the_queue_that_is_free_first_is_taken():
    assert QueueTime([70, 80, 100]).place(operator(0)) == 0


def test_placement_adds_the_reference_duration():
    policy = QueueTime([50])
    policy.place(operator(0, 10))
    assert policy.expected_times == [60]


def test_execution_subtracts_what_was_added():
    policy = QueueTime([40])
    first = operator(0, 10)
    policy.place(first)
    assert policy.expected_times == [50]
    policy.executed(Operator(0, 0, 99.0), 0)  # its reference duration was corrected meanwhile
    assert policy.expected_times == [40]


def test_placed_until_none_is_left():
    policy = QueueTime([70, 80, 100])
    assert [policy.place(operator(number, 15)) for number in range(5)] == [0, 1, 0, 1, 0]
    assert policy.expected_times == [115, 110, 100]


def test_ties_go_to_the_smaller_number():
    policy = QueueTime([5, 5, 5])
    assert [policy.place(operator(number, 1)) for number in range(4)] == [0, 1, 2, 0]


def test_an_empty_queue_stands_at_its_initial_value_exactly():
    policy = QueueTime([0.3])
    placed = [operator(number, 0.1) for number in range(3)]
    for each in placed:
        policy.place(each)
    for each in placed:
        policy.executed(each, 0)
    assert policy.expected_times == [0.3]


def test_an_initial_wait_can_decay():
    policy = QueueTime([30, 0], decay_since=100)
    assert policy.place(operator(0, 20, now=105)) == 1  # 25 and 0
    assert policy.place(operator(1, 10, now=112)) == 0  # 18 and 20
    assert policy.expected_times == [28, 20]
    assert policy.place(operator(2, 10, now=125)) == 0  # 5 + 10 and 20
    assert policy.place(operator(3, 10, now=200)) == 0 and policy.expected_times == [30, 20]  # no wait is left
    for number in (1, 2, 3):
        policy.executed(operator(number), 0)
    assert policy.expected_times == [0, 20]


def test_an_initial_wait_that_decays_does_so_from_its_beginning_on():
    assert QueueTime([30, 20], decay_since=100).place(operator(0, now=50)) == 1
    assert QueueTime([30, 20], decay_since=0).place(operator(0, now=50)) == 0


@pytest.mark.parametrize("seed", range(20))
def test_equal_to_a_search_of_all_queues(seed):
    rng = random.Random(seed)
    waits = [rng.randint(0, 50) for _ in range(rng.randint(1, 9))]
    policy = QueueTime(waits)
    expected: list[float] = list(waits)
    placed: list[tuple[Operator, int]] = []
    for number in range(300):
        if placed and rng.random() < 0.5:
            done, queue = placed.pop(rng.randrange(len(placed)))
            policy.executed(done, queue)
            expected[queue] -= done.duration
        else:
            each = operator(number, rng.randint(1, 60))
            queue = policy.place(each)
            assert queue == min(range(len(expected)), key=expected.__getitem__), f"seed {seed}"
            expected[queue] += each.duration
            placed.append((each, queue))
    assert policy.expected_times == expected, f"seed {seed}"


def test_negative_initial_wait_is_refused():
    with pytest.raises(ValueError, match="initial wait of queue 1 must not be negative, not -2"):
        QueueTime([1, -2])


def test_shortest_queue_counts_operators_not_time():
    policy = placement_for("shortest_queue", [0, 0])
    assert [policy.place(operator(n, d)) for n, d in enumerate([100, 1, 1])] == [0, 1, 0]
    policy.executed(operator(1), 1)
    assert policy.place(operator(3)) == 1


def test_round_robin_takes_turns():
    policy = placement_for("round_robin_queues", [0, 0, 0])
    assert [policy.place(operator(n)) for n in range(4)] == [0, 1, 2, 0]


def test_earliest_finish_considers_inputs_and_the_clock():
    policy = placement_for("earliest_finish", [0, 0])
    assert policy.place(operator(0, 50)) == 0
    assert policy.place(operator(1, 10, ready=40)) == 1  # 1 until 50
    assert policy.place(operator(2, 10, now=60)) == 0  # both are free by then
    policy.executed(operator(1), 1)
    assert policy.place(operator(3, 10, now=61)) == 1


@pytest.mark.parametrize("name", PLACEMENT)
def test_every_placement_policy_can_be_had_by_name(name):
    assert placement_for(name, [0.0, 0.0]).place(operator(0)) == 0
