"""When the jobs of an inference run, by their estimates: as they wait for weights, windows, engines and each other.

It is the list schedule of bodies, a queue for each engine, and of prologues, which take turns at DRAM. A prologue waits
for the last user of its window and for a slot, a body for its weights and for all layers before its own. So it tells
what a table of layers does not (:func:`sim.cost.inference`): how much of the loads is hidden behind what computes.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from compiler.emission.objects.step_object import JobObject
from hw.contract.params import SocParams
from sim.cost import BODY_TO_BODY, QueuedTasks, prologue_cycles


def scheduled_cycles(jobs: Sequence[JobObject], after: Sequence[int], engines: int, params: SocParams) -> float:
    """Return the cycles of one inference, which has ``jobs``, alone on the device; ``after``: by job how many places
    ahead in its ring the last user of its window is, 0: none. Jobs of a placed model are taken to run on one engine."""
    queues = [[i for i, job in enumerate(jobs) if job.engine == engine] for engine in range(engines)]
    order = [i for numbers in queues for i in numbers]
    body = {i: at for at, i in enumerate(order)}  # tasks: the bodies engine by engine, and then the prologues
    needs = _needs(jobs, after, queues, body, params.job_slots)
    loads = [_load(jobs[i], params, engines) for i in order]
    cycles = [float(jobs[i].cycles + BODY_TO_BODY) for i in order] + loads
    units = [(unit, len(queues[engine])) for unit, engine in _units(engines)]
    rank = [float(place) for numbers in queues for place in range(len(numbers))]  # engines take turns at DRAM
    return max(QueuedTasks(units, cycles, needs).schedule(rank + rank).ends, default=0.0)


def _units(engines: int) -> list[tuple[int, int]]:
    """Return unit and engine of each queue: engines are units, and DRAM is one more."""
    return [(engine, engine) for engine in range(engines)] + [(engines, engine) for engine in range(engines)]


def _load(job: JobObject, params: SocParams, engines: int) -> float:
    return 0.0 if job.own_loads else float(prologue_cycles(len(job.window_data), params, engines))


def _needs(
    jobs: Sequence[JobObject], after: Sequence[int], queues: Sequence[Sequence[int]], body: Mapping[int, int],
    slots: int,
) -> list[list[int]]:  # fmt: skip
    """Return by task the tasks that it waits for; ``body``: by job the number of its body's. A prologue waits for the
    last user of its window, and for one of the ``slots`` of its engine."""
    before, count, needs = _layers_before(jobs), len(jobs), [list[int]() for _ in range(2 * len(jobs))]
    for numbers in queues:
        for place, i in enumerate(numbers):
            needs[body[i]] = [count + body[i], *(body[other] for other in before[jobs[i].step])]
            behind = min(after[i] or slots, slots)
            if behind <= place:
                needs[count + body[i]] = [body[numbers[place - behind]]]
    return needs


def _layers_before(jobs: Sequence[JobObject]) -> dict[int, list[int]]:
    """Return by layer the jobs of the one before it that has any, which have waited for all others."""
    layers: dict[int, list[int]] = {}
    for i, job in enumerate(jobs):
        layers.setdefault(job.step, []).append(i)
    first = min(layers, default=0)
    return {first: list[int]()} | {layer: layers[before] for before, layer in pairwise(sorted(layers))}
