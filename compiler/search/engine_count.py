"""How many engines a model deserves."""

from collections.abc import Iterator
from dataclasses import replace

from compiler import ir
from compiler.emission.objects.desk import Desk
from compiler.ir import CompileError
from compiler.pipeline import build
from compiler.plan.options import Options
from compiler.plan.plan import Plan
from hw.contract.params import SocParams
from hw.image import Image
from sim.cost import inference

#: What each engine of a model should do of the work that it does in the same time for a model that it has to itself.
#: Splitting a model makes it end sooner, at the price of engines that wait for each other and load the same data twice.
#: Another model could use the engines: at three quarters, no more than a quarter of what the device can do is given up
#: for the shorter latency of one.
WORTHWHILE = 0.75


def build_for_its_size(graph: ir.Graph, params: SocParams, options: Options, desk: Desk) -> tuple[Image, Plan]:
    """Return ``graph`` compiled for as many engines as it deserves: the most, of 1, 2, 4 and so on up to all, at which
    the predicted speed-up is still ``WORTHWHILE`` times the number of engines. The search ends at the first number that
    is not worthwhile, or whose tiles do not fit. Raises :class:`compiler.ir.CompileError` if one engine cannot run
    it."""
    if options.placed:
        raise CompileError("engines='auto' counts engines that share each layer: name a number for placed layers")
    best: tuple[Image, Plan] | None = None
    alone = 0
    for engines in _counts(params):
        try:
            built = build(graph, params, replace(options, engines=engines), desk=desk)
        except CompileError:
            if best is None:
                raise
            break
        cycles = inference(built[0].meta.layers).cycles
        if best is None:
            alone = cycles
        elif alone < WORTHWHILE * engines * cycles:
            break
        best = built
    assert best is not None
    return best


def _counts(params: SocParams) -> Iterator[int]:
    engines = 1
    while engines < params.engines:
        yield engines
        engines *= 2
    yield params.engines
