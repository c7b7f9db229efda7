"""Queue-time balancing: the worked examples, its book-keeping, and the other placement policies."""

import random

import pytest

from sw.runtime.policies import PLACEMENT, Operator, placement_for
from sw.runtime.policies.placement import LiveQueueTime, QueueTime


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


# -- at the moment at which inputs will exist ----------------------------------------------------------------------
def test_without_inputs_to_wait_for_it_is_the_same_at_the_start():
    """The worked examples: the queue that is free first, what is added, and what is subtracted."""
    policy = LiveQueueTime([70, 80, 100])
    assert [policy.place(operator(number, 15)) for number in range(5)] == [0, 1, 0, 1, 0]
    assert policy.expected_times == [115, 110, 100]
    one = LiveQueueTime([50])
    one.place(operator(0, 10))
    assert one.expected_times == [60]
    one.executed(operator(0, 10), 0)
    assert one.expected_times == [50]


def test_what_has_run_before_the_inputs_exist_is_not_in_the_way():
    """Operator 0 takes 100 on queue 0; 1 and 2 read it. Queue time alone would put both on queue 1."""
    policy, plain = LiveQueueTime([0, 0]), QueueTime([0, 0])
    for each, queue in ((policy, 0), (plain, 0)):
        assert each.place(operator(0, 100)) == queue
    assert [plain.place(operator(number, 50, ready=100)) for number in (1, 2)] == [1, 1]
    assert [policy.place(operator(number, 50, ready=100)) for number in (1, 2)] == [1, 0]


def test_a_queue_that_has_run_empty_is_free_however_long_it_was_believed_busy():
    policy = LiveQueueTime([0, 0])
    assert policy.place(operator(0, 1000)) == 0
    assert policy.place(operator(1, 10, now=1)) == 1
    policy.executed(operator(0, 1000), 0)  # it took less
    assert policy.place(operator(2, 10, now=5)) == 0


def test_a_queue_that_is_late_is_believed_to_be_busy_with_what_waits_behind_the_running_operator():
    policy = LiveQueueTime([0, 0])
    assert [policy.place(operator(number, 10)) for number in range(4)] == [0, 1, 0, 1]
    for number in (1, 3):
        policy.executed(operator(number), 1)
    policy.place(operator(4, 12, now=100))  # queue 1 is empty, queue 0 has not ended the first of its two
    assert policy.place(operator(5, 1, now=100)) == 0


def test_jobs_that_are_in_a_queue_already_pass_with_time():
    policy = LiveQueueTime([40, 0], since=1000)
    assert policy.place(operator(0, 10, now=1000)) == 1
    assert policy.place(operator(1, 5, now=1038)) == 1
    assert policy.place(operator(2, 5, now=1041, ready=1041)) == 0


@pytest.mark.parametrize("seed", range(20))
def test_an_operator_joins_where_it_would_begin_first(seed):
    """Against a simulation of the queues in which every operator takes its reference duration."""
    rng = random.Random(seed)
    policy, free, now = LiveQueueTime([0.0] * 3), [0.0] * 3, 0.0
    queued: list[tuple[float, Operator, int]] = []
    for number in range(60):
        now += rng.choice([0, 0, 3, 20])
        for end, done, queue in sorted(queued, key=lambda one: one[0]):
            if end <= now:
                policy.executed(done, queue)
        queued = [one for one in queued if one[0] > now]
        one = operator(number, rng.randint(1, 30), now=now, ready=now + rng.choice([0, 0, 10, 40]))
        begins = [max(one.now, one.ready, end) for end in free]
        queue = policy.place(one)
        assert begins[queue] == min(begins)
        free[queue] = begins[queue] + one.duration
        queued.append((free[queue], one, queue))
