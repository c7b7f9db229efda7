"""Which orders of layers, cut into which regions, pass little from and to DRAM: decided where tensors have places.

The price of an order knows little of what has no room in LV2: where that lies decides, what regions hold at once, and
what staging areas take. So of a few candidates, where any of them passes something, the tensors are placed: the order
that was found, that of the model, and that with the fewest bytes alive, each cut into regions that pay more or less for
the bytes beside them (:mod:`compiler.plan.regions.pressure`). To place takes milliseconds.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

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
from sim.cost import moved


@dataclass(frozen=True)
class Traffic:
    """Is a candidate: ``study`` of ``model`` joins ``orders`` to steps that take ``cycles`` by price, of which
    ``spilled`` bytes pass from and to DRAM."""

    model: LoweredModel
    study: Study
    orders: Orders
    cycles: float
    spilled: int

    def better(self, other: "Traffic", options: Options) -> bool:
        """Return whether this serves the objective of ``options`` better than ``other``."""
        mine, theirs = (self.cycles, self.spilled), (other.cycles, other.spilled)
        return mine[::-1] < theirs[::-1] if options.objective == "dram" else mine < theirs


class _Spills:
    """Places the tensors of ``model``, once for the same steps: candidates are often cut into the same regions.
    ``thorough``: see :func:`compiler.plan.memory.place.place`."""

    def __init__(self, model: LoweredModel, *, thorough: bool = False) -> None:
        self.model, self._thorough = model, thorough
        self._known: dict[tuple[tuple[tuple[Layer, ...], tuple[Place, ...]], ...], int | None] = {}

    def candidate(self, study: Study, orders: Orders) -> Traffic | None:
        """Return the candidate; None if it has no room for tiles and weights."""
        steps = late_loads(self.model.graph, study.joined(orders))
        key = tuple((step.members, step.places) for step in steps)
        if key not in self._known:
            self._known[key] = self._spilled(steps)
        spilled = self._known[key]
        if spilled is None:
            return None
        return Traffic(self.model, study, orders, study.cycles(orders) + moved(spilled, self.model.params), spilled)

    def _spilled(self, steps: Sequence[ModelStep]) -> int | None:
        model = self.model
        try:
            _, placement = place(model.graph, steps, model.params, model.options, thorough=self._thorough)
        except ir.CompileError:
            return None
        return placement.passed if model.options.objective == "dram" else placement.moved


def least_traffic(model: LoweredModel, study: Study, orders: Orders) -> tuple[LoweredModel, Study, Orders]:
    """Return the study and the orders, of those that ``study`` may have, that serve the objective best: those with the
    fewest cycles that pass no more than the model's own order does, unless they save the trade of the options, or those
    that pass least. Layers that run one by one take as long in any order: they leave the model's only to pass less, and
    then tensors leave LV2 for a part of their lives, too, so the model may be another."""
    if not study.runs:
        return _one_by_one(model, study, orders)
    spills = _Spills(model)
    found = spills.candidate(study, orders)
    if found is None or not found.spilled:
        return model, study, orders
    own = spills.candidate(study, study.source)
    limit = own.spilled if own else 0
    allowed = [
        one
        for one in (found, own, *_others(spills, study, orders))
        if one and (one.spilled <= limit or (own and one.cycles < (1 - model.options.trade) * own.cycles))
    ]
    best = found if not allowed else allowed[0]
    for one in allowed[1:]:
        best = one if one.better(best, model.options) else best
    return model, best.study, best.orders


def _one_by_one(model: LoweredModel, study: Study, orders: Orders) -> tuple[LoweredModel, Study, Orders]:
    """Return ``study``, of layers that nothing joins, or the same in the order that passes least, if that is asked."""
    found = _Spills(model, thorough=True).candidate(study, ())
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
            if (candidate := _Spills(other, thorough=True).candidate(Study(layers), ())) is not None:
                yield candidate


def _others(spills: _Spills, study: Study, orders: Orders) -> Iterator[Traffic | None]:
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
