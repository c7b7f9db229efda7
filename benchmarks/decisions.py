"""How long policies take to decide, in CPU time on the computer that runs them."""

import random
import statistics
import time
from collections import deque
from collections.abc import Callable

from sw.runtime.policies import AcceleratorState, Candidate, IdleTime, LayerCost, Operator, QueueTime, Release

BATCHES = 15


def layer_decision(models: int, window: int, repeat: int) -> float:
    """Return the seconds that idle-time layer scheduling takes to choose among ``models``; median over batches of
    ``repeat``."""
    rng = random.Random(models)
    candidates = [_candidate(rng, number, window) for number in range(models)]
    releases = tuple(Release(100.0 * number, 64) for number in range(1, 9))
    state = AcceleratorState(0.0, 800.0, 100.0, 1024, 512, releases)
    policy = IdleTime(window)
    return _median(lambda: policy.choose(state, candidates), repeat)


def placement(queues: int, repeat: int) -> float:
    """Return the seconds that queue-time balancing takes to place an operator, and to take note of one executed."""
    rng = random.Random(queues)
    policy = QueueTime([0.0] * queues)
    operators = (Operator(number, 0, float(rng.randint(1, 1000))) for number in range(BATCHES * repeat + 8 * queues))
    waiting: deque[tuple[Operator, int]] = deque()

    def place() -> None:
        operator = next(operators)
        waiting.append((operator, policy.place(operator)))

    def both() -> None:
        place()
        policy.executed(*waiting.popleft())

    for _ in range(8 * queues):
        place()
    return _median(both, repeat)


def _candidate(rng: random.Random, number: int, window: int) -> Candidate:
    costs = [LayerCost(rng.randint(1, 1000), rng.randint(1, 1000), rng.randint(1, 128)) for _ in range(window)]
    return Candidate(number, f"model {number}", 0, costs[0], passed_over=rng.randint(0, 4), following=tuple(costs[1:]))


def _median(action: Callable[[], object], repeat: int) -> float:
    times = []
    for _ in range(BATCHES):
        begin = time.process_time()
        for _ in range(repeat):
            action()
        times.append((time.process_time() - begin) / repeat)
    return statistics.median(times)
