"""Which orders of layers, cut into which regions, pass little from and to DRAM: decided where tensors have places.

The price of an order knows little of what has no room in LV2: where that lies decides, what regions hold at once, and
what staging areas take. So of a few candidates, where any of them passes something, the tensors are placed: the order
that was found, that of the model, and that with the fewest bytes alive, each cut into regions that pay more or less for
the bytes beside them (:mod:`compiler.plan.regions.pressure`). To place takes milliseconds.

Regions are small enough for LV2 to hold all that their layers read and write. What lies in DRAM anyway need not count:
so the best of these may be cut once more, into regions that are larger by what it leaves there. These are more often
refused as their jobs are made.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from compiler import ir
from compiler.plan.layers.layer import Layer
from compiler.plan.layers.step import ModelStep, flattened
from compiler.plan.lowered_model import LoweredModel
from compiler.plan.memory.layer_lives import LayerLives
from compiler.plan.memory.place import most_room, place
from compiler.plan.options import Options
from compiler.plan.order.alive_sets import AliveSets
from compiler.plan.plan import Place, Reload
from compiler.plan.regions.pressure import WEIGHTS
from compiler.plan.regions.regions import Orders, RunStudy, Study
from compiler.plan.regions.state_loads import late_loads
from compiler.search.partial_residency import PartialResidency, divisions_for
from hw.contract.isa import Segment
from sim.cost import moved

#: Of the cycles of regions that fit LV2, what wider ones must save: prices know little of staging areas, which members
#: share. A random-wired cell was seen to take 3 % more where they should have saved less.
_WIDER = 0.05


@dataclass(frozen=True)
class Traffic:
    """Is a candidate: ``study`` of ``model`` joins ``orders`` to steps that take ``cycles`` by price, of which
    ``spilled`` bytes pass from and to DRAM, where the tensors ``passing`` lie."""

    model: LoweredModel
    study: Study
    orders: Orders
    cycles: float
    spilled: int
    passing: frozenset[str]

    def better(self, other: "Traffic", options: Options) -> bool:
        """Return whether this serves the objective of ``options`` better than ``other``."""
        mine, theirs = (self.cycles, self.spilled), (other.cycles, other.spilled)
        return mine[::-1] < theirs[::-1] if options.objective == "dram" else mine < theirs


class _Spilled(NamedTuple):
    """Says how many ``bytes`` of tensors pass from and to DRAM, and which ``tensors`` lie there, but for those that are
    parts of others."""

    bytes: int
    tensors: frozenset[str]


class Spills:
    """Places the tensors of ``model``, once for the same steps: candidates are often cut into the same regions.
    ``thorough``: see :func:`compiler.plan.memory.place.place`."""

    def __init__(self, model: LoweredModel, *, thorough: bool = False) -> None:
        self.model, self._thorough = model, thorough
        self._known: dict[tuple[tuple[tuple[Layer, ...], tuple[Place, ...]], ...], _Spilled | None] = {}

    def candidate(self, study: Study, orders: Orders) -> Traffic | None:
        """Return the candidate; None if it has no room for tiles and weights."""
        steps = late_loads(self.model.graph, study.joined(orders))
        key = tuple((step.members, step.places) for step in steps)
        if key not in self._known:
            self._known[key] = self._spilled(steps)
        found = self._known[key]
        if found is None:
            return None
        cycles = study.cycles(orders) + moved(found.bytes, self.model.params)
        return Traffic(self.model, study, orders, cycles, found.bytes, found.tensors)

    def _spilled(self, steps: Sequence[ModelStep]) -> _Spilled | None:
        model = self.model
        try:
            _, placement = place(model.graph, steps, model.params, model.options, thorough=self._thorough)
        except ir.CompileError:
            return None
        size = placement.passed if model.options.objective == "dram" else placement.moved
        homes = placement.by_tensor.items()
        return _Spilled(size, frozenset(name for name, home in homes if home.segment == Segment.SCRATCH))


def least_traffic(
    model: LoweredModel, study: Study, orders: Orders, spills: Spills
) -> tuple[LoweredModel, Study, Orders]:  # fmt: skip
    """Return the study and the orders, of those that ``study`` may have, that serve the objective best: those with the
    fewest cycles that pass no more than the model's own order does, unless they save the trade of the options, or those
    that pass least. Layers that run one by one take as long in any order: they leave the model's only to pass less, and
    then tensors leave LV2 for a part of their lives, too, so the model may be another."""
    if not study.runs:
        return _one_by_one(model, study, orders)
    found = spills.candidate(study, orders)
    if found is None or not found.spilled:
        return model, study, orders
    own = spills.candidate(study, study.source)
    best = _best(found, (own, *_others(spills, study, orders)), own, model.options)
    return model, best.study, best.orders


def wider_regions(
    model: LoweredModel, plain: Study, study: Study, orders: Orders, spills: Spills
) -> tuple[Study, Orders] | None:  # fmt: skip
    """Return a study of ``model`` and orders whose regions may be larger by the tensors that ``orders``, as ``study``
    joins them, leave in DRAM; None if they serve the objective no better. ``plain``: the study of all regions that are
    small enough for LV2."""
    found = spills.candidate(study, orders) if study.runs else None
    if found is None or not found.spilled:
        return None
    own, wider = spills.candidate(plain, plain.source), plain.passing(found.passing)
    best = _best(found, (spills.candidate(wider, orders), *_others(spills, wider, orders)), own, model.options)
    worth = best.better(found, model.options) and best.cycles < (1 - _WIDER) * found.cycles
    return (best.study, best.orders) if worth else None


def _best(found: Traffic, others: Iterable[Traffic | None], own: Traffic | None, options: Options) -> Traffic:
    """Return the best of ``found`` and ``others`` that pass no more than the model's order, ``own``, or save the
    trade; ``found`` if none does."""
    limit = own.spilled if own else 0
    allowed = [
        one
        for one in (found, *others)
        if one and (one.spilled <= limit or (own and one.cycles < (1 - options.trade) * own.cycles))
    ]
    best = found if not allowed else allowed[0]
    for one in allowed[1:]:
        best = one if one.better(best, options) else best
    return best


def _one_by_one(model: LoweredModel, study: Study, orders: Orders) -> tuple[LoweredModel, Study, Orders]:
    """Return ``study``, of layers that nothing joins, or the same in the order that passes least, if that is asked."""
    found = Spills(model, thorough=True).candidate(study, ())
    if model.options.objective != "dram" or model.options.observe or found is None or not found.spilled:
        return model, study, orders
    best = min((*_least_passing(model), found), key=lambda one: one.spilled)
    return best.model, best.study, orders


def _least_passing(model: LoweredModel) -> Iterator[Traffic]:
    """Yield candidates that may pass less: tensors in LV2 for a part of their lives, and other orders. Of equals the
    first is better: a load for several readers, or tiles of one, passes bytes once."""
    lives = model.lives
    divisions = [] if any(isinstance(one, Reload) for one in model.rewrites) else divisions_for(model)
    for order in lives.candidates(lives.sets.least().order).values():
        made = [found for one in divisions if (found := PartialResidency(model, order, one).found())]
        for other, layers in (*made, (model, lives.ordered(order))):
            if (candidate := Spills(other, thorough=True).candidate(Study(layers), ())) is not None:
                yield candidate


def _others(spills: Spills, study: Study, orders: Orders) -> Iterator[Traffic | None]:
    model = spills.model
    steps = flattened(late_loads(model.graph, study.joined(orders)))
    room = most_room(model.graph, steps, model.params, model.options)
    alive = [_alive(run) for run in study.runs]
    least = tuple(one.least().order for one in alive)
    for weight in WEIGHTS:
        pressed = study.pressed(alive, room, weight)
        for one in dict.fromkeys((orders, study.source, least)):
            if weight or one not in (orders, study.source):
                yield spills.candidate(pressed, one)


def _alive(run: RunStudy) -> AliveSets:
    """Return what is alive beside each layer of ``run``, in any order that it may have."""
    return replace(LayerLives.of(run.graph, run.layers, run.rules.params).sets, before=run.operators.predecessors)
