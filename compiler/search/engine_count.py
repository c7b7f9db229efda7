"""How many engines a model deserves, and whether they share each layer."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from compiler import ir
from compiler.emission.objects.desk import Desk
from compiler.ir import CompileError
from compiler.pipeline import build
from compiler.plan.options import Options
from compiler.plan.plan import Plan
from compiler.plan.regions.queue_schedule import QueuedStep, makespan
from hw.contract.params import SocParams
from hw.image import Image
from sim.cost import inference

#: What each engine of a model should do of the work that it does in the same time for a model that it has to itself.
#: Splitting a model makes it end sooner, at the price of engines that wait for each other and load the same data twice.
#: Another model could use the engines: at three quarters, no more than a quarter of what the device can do is given up
#: for the shorter latency of one.
WORTHWHILE = 0.75


@dataclass(frozen=True)
class EngineWay:
    """Is a way to run a model: on so many ``engines``, which share each layer, or are ``placed`` layers each.
    ``cycles``: of an inference by estimate on idle engines; ``ends``: until it has ended on engines as busy as they
    are."""

    engines: int
    placed: bool
    cycles: float
    ends: float

    def __str__(self) -> str:
        how = "1 engine" if self.engines == 1 else f"{self.engines} engines {'placed' if self.placed else 'shared'}"
        late = f", ends after {self.ends:,.0f}" if self.ends != self.cycles else ""
        return f"{how}: {self.cycles:,.0f} cycles{late}"


class EngineChoice(NamedTuple):
    """Holds a model as it was compiled, by the way that was ``taken``, and the ``others`` that were priced."""

    image: Image
    plan: Plan
    taken: EngineWay
    others: tuple[EngineWay, ...]

    def __str__(self) -> str:
        beside = "; ".join(map(str, self.others))
        return f"by estimate {self.taken}" + (f" (beside {beside})" if beside else "")


def build_for_its_size(
    graph: ir.Graph, params: SocParams, options: Options, desk: Desk, waits: Sequence[float] = ()
) -> EngineChoice:  # fmt: skip
    """Return ``graph`` compiled for as many engines as it deserves: the most, of 1, 2, 4 and so on up to all, at which
    the predicted speed-up is still ``WORTHWHILE`` times the number of engines. The search ends at the first number that
    is not worthwhile, or whose tiles do not fit. ``waits``: the expected queue time of each engine of the device, in
    cycles; of the numbers that are worthwhile, the one is taken with which an inference ends first on those that are
    free first. If ``options`` are for placed layers, engines share the layers wherever that takes less. Raises
    :class:`compiler.ir.CompileError` if one engine cannot run it, or for other than one wait for each engine."""
    if len(waits) not in (0, params.engines) or any(wait < 0 for wait in waits):
        raise CompileError(f"waits must be {params.engines} numbers from 0 on, one for each engine, not {[*waits]}")
    built, priced = list[EngineChoice](), list[EngineWay]()
    for engines in _counts(params):
        try:
            found = [*_ways(graph, params, replace(options, engines=engines), desk, sorted(waits)[:engines])]
        except CompileError:
            if not built:
                raise
            break
        priced += [one.taken for one in found]
        best = min(found, key=lambda one: one.taken.cycles)
        if built and built[0].taken.cycles < WORTHWHILE * engines * best.taken.cycles:
            break
        built += found
    chosen = min(built, key=lambda one: (one.taken.ends, -one.taken.engines, one.taken.placed))
    return chosen._replace(others=tuple(way for way in priced if way is not chosen.taken))


def _ways(
    graph: ir.Graph, params: SocParams, options: Options, desk: Desk, waits: Sequence[float]
) -> Iterator[EngineChoice]:
    """Yield ``graph`` compiled with shared layers, and with placed ones if ``options`` are for these."""
    for placed in (False, True) if options.placed and options.engines > 1 else (False,):
        image, plan = build(graph, params, replace(options, placed=placed), desk=desk)
        found = inference(image.meta.layers)
        if placed:
            alone, busy = (max(_queued(image, each), found.memory) for each in ((), waits))
        else:
            alone, busy = found.cycles, found.cycles + max(waits, default=0.0)
        yield EngineChoice(image, plan, EngineWay(options.engines, placed, alone, max(alone, busy)), ())


def _queued(image: Image, waits: Sequence[float]) -> float:
    """Return the cycles until the queues have run all layers of a placed ``image``, by engine after so long a wait."""
    jobs, steps = image.meta.jobs, dict[int, QueuedStep]()
    for layer, group in itertools.groupby(range(len(jobs)), lambda index: jobs[index].layer):
        reads = {jobs[other].layer for index in group for other in jobs[index].after} - {layer}
        steps[layer] = QueuedStep(image.meta.layers[layer].compute, tuple(sorted(reads)))
    return makespan(steps, [*steps], image.meta.parts, waits)


def _counts(params: SocParams) -> Iterator[int]:
    engines = 1
    while engines < params.engines:
        yield engines
        engines *= 2
    yield params.engines
