"""The list schedule in C takes the tasks that the one in Python takes, at the same times."""

import random

import pytest

from hw.contract.isa import Unit
from sim.cost.schedule import QueuedTasks
from tests.support import cost_oracle


def random_tasks(rng: random.Random, circle: bool) -> tuple[list[tuple[int, int]], list[float], list[list[int]]]:
    """Queues, cycles and needs. Without a ``circle`` tasks need only such as come earlier in an order of all that keeps
    the queues."""
    queues = [(int(rng.choice(list(Unit))), rng.randint(0, 12)) for _ in range(rng.randint(1, 12))]
    count = sum(tasks for _, tasks in queues)
    cycles = [rng.choice([0.0, 1.0, 7.0, rng.uniform(0, 500), float(rng.randint(1, 9))]) for _ in range(count)]
    stamps: list[float] = []
    for _, tasks in queues:
        stamps += sorted(rng.random() for _ in range(tasks))
    needs = []
    for task in range(count):
        earlier = [other for other in range(count) if circle or stamps[other] < stamps[task]]
        needs.append(rng.sample(earlier, min(len(earlier), rng.choice([0, 0, 1, 1, 2, 4]))))
    return queues, cycles, needs


@pytest.mark.parametrize("seed", range(150))
def test_times_are_those_of_python(seed):
    rng = random.Random(seed)
    tasks = random_tasks(rng, circle=seed % 5 == 0)
    for _ in range(3):
        rank = [float(rng.randint(0, 4)) for _ in tasks[1]]
        patience = [cycles // 2 for cycles in tasks[1]] if rng.random() < 0.5 else None
        found = QueuedTasks(*tasks).schedule(rank, patience)
        ends, taken = cost_oracle.list_schedule(*tasks, rank, patience or [0.0] * len(rank))
        assert (found.ends.tolist(), found.taken.tolist()) == (ends, taken)
        assert all(found.starts[task] + tasks[1][task] == found.ends[task] for task in taken)


def test_no_tasks():
    assert QueuedTasks([], [], []).schedule([]).taken.tolist() == []
    assert QueuedTasks([(0, 0)], [], []).schedule([]).taken.tolist() == []
