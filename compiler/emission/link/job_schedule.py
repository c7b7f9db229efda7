"""When the jobs of an inference run, by their estimates: as they wait for weights, windows, engines and each other.

It is the list schedule of bodies, a queue for each engine, and of prologues, which take turns at DRAM. A prologue waits
for the last user of its window, a body for its weights and for all layers before its own. So it tells what a table of
layers does not (:func:`sim.cost.inference`): how much of the loads is hidden behind what computes.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from compiler.emission.link.job_places import JobPlace, WeightSegment, job_places
from compiler.emission.objects.step_object import JobObject
from compiler.plan.memory.budget import Lv2Budget
from compiler.plan.memory.tensor_placement import TensorPlacement
from hw.contract.params import SocParams
from sim.cost import BODY_TO_BODY, QueuedTasks, prologue_cycles


def scheduled_cycles(
    jobs: Sequence[JobObject], placement: TensorPlacement, budget: Lv2Budget, params: SocParams
) -> float:  # fmt: skip
    """Return the cycles of one inference, which has ``jobs``, alone on the device. Those of a placed model are taken to
    run on one engine."""
    places = job_places(jobs, WeightSegment(placement.constants, params, budget.engines), placement, budget, params)
    engines = {engine: [i for i, job in enumerate(jobs) if job.engine == engine] for engine in range(budget.engines)}
    order = [i for numbers in engines.values() for i in numbers]
    body = {i: at for at, i in enumerate(order)}  # tasks: the bodies engine by engine, and then the prologues
    needs = _needs(jobs, places, engines, body)
    cycles = [float(jobs[i].cycles + BODY_TO_BODY) for i in order] + [_load(jobs[i], params) for i in order]
    queues = [(unit, len(engines[engine])) for unit, engine in _units(budget.engines)]
    rank = [float(place) for numbers in engines.values() for place in range(len(numbers))]  # engines take turns at DRAM
    ends = QueuedTasks(queues, cycles, needs).schedule(rank + rank).ends
    return max(ends, default=0.0)


def _units(engines: int) -> list[tuple[int, int]]:
    """Return unit and engine of each queue: engines are units, and DRAM is one more."""
    return [(engine, engine) for engine in range(engines)] + [(engines, engine) for engine in range(engines)]


def _load(job: JobObject, params: SocParams) -> float:
    return 0.0 if job.own_loads else float(prologue_cycles(len(job.window_data), params))


def _needs(
    jobs: Sequence[JobObject], places: Sequence[JobPlace], engines: Mapping[int, Sequence[int]], body: Mapping[int, int]
) -> list[list[int]]:
    """Return by task the tasks that it waits for; ``body``: by job the number of its body's."""
    before, count, needs = _layers_before(jobs), len(jobs), [list[int]() for _ in range(2 * len(jobs))]
    for numbers in engines.values():
        for place, i in enumerate(numbers):
            needs[body[i]] = [count + body[i], *(body[other] for other in before[jobs[i].step])]
            if (after := places[i].after) and after <= place:
                needs[count + body[i]] = [body[numbers[place - after]]]
    return needs


def _layers_before(jobs: Sequence[JobObject]) -> dict[int, list[int]]:
    """Return by layer the jobs of the one before it that has any, which have waited for all others."""
    layers: dict[int, list[int]] = {}
    for i, job in enumerate(jobs):
        layers.setdefault(job.step, []).append(i)
    first = min(layers, default=0)
    return {first: list[int]()} | {layer: layers[before] for before, layer in pairwise(sorted(layers))}
