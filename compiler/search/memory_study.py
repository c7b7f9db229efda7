"""How much LV2 a model needs so that none of its tensors spills, by the order of its layers.

Layers run one after the other here, as ``--objective memory`` compiles them. The order of the model, the reverse
post-order and the greedy one are what others use; the least is proved where the search for it ends.
"""

import time
from dataclasses import dataclass, replace

from compiler import ir
from compiler.pipeline import blank, lowered
from compiler.plan.layers.step import ModelStep
from compiler.plan.lowered_model import LoweredModel
from compiler.plan.memory.layer_lives import LayerLives
from compiler.plan.options import ALL_LV2, Options
from compiler.plan.order.graph import Order
from compiler.plan.regions.state_loads import late_loads
from compiler.search.spill import least_without_spill
from hw.contract.params import SocParams

IN_PIECES = "least, in pieces"  #: the name of the least order where concatenations are read in pieces


@dataclass(frozen=True)
class OrderMemory:
    """Says of an order of layers, by its ``name``, the most bytes of tensors alive at a time, ``peak``, and the least
    bytes of LV2 in which it spills nothing, ``lv2`` (None: no machine has so much). ``layer`` makes the peak, and
    ``alive`` are the tensors that are alive beside it with their bytes, largest first."""

    name: str
    peak: int
    lv2: int | None
    layer: str
    alive: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class MemoryStudy:
    """Holds what ``orders`` need; ``bound``: bytes of tensors alive at a time that no order is below; ``seconds``: of
    CPU time of the search for the least."""

    orders: tuple[OrderMemory, ...]
    bound: int
    seconds: float = 0.0

    @property
    def least(self) -> OrderMemory:
        """Return the order with the smallest peak that was found."""
        return self.orders[-1]

    @property
    def proved(self) -> bool:
        """Return whether no order has a smaller peak."""
        return self.bound == self.least.peak


def memory_study(graph: ir.Graph, params: SocParams, options: Options | None = None) -> MemoryStudy:
    """Return what ``graph`` needs of LV2, whatever ``options`` say of its limit. Raises
    :class:`compiler.ir.CompileError` if the model cannot be compiled for hardware with ``params``."""
    whole = replace(options or Options(), lv2_limit=ALL_LV2, objective="cycles", order="search", placed=False)
    model = lowered(graph, blank(graph, params, whole))
    lives, other = model.lives, model.in_pieces()
    begin = time.process_time()
    found = lives.sets.least()
    took = time.process_time() - begin
    orders = [_memory(model, lives, *one) for one in lives.candidates(found.order).items()]
    if other:
        apart, begin = other.lives, time.process_time()
        read = apart.sets.least()
        took += time.process_time() - begin
        if read.peak < found.peak:
            return MemoryStudy((*orders, _memory(other, apart, IN_PIECES, read.order)), read.bound, took)
    return MemoryStudy(tuple(orders), found.bound, took)


def _memory(model: LoweredModel, lives: LayerLives, name: str, order: Order) -> OrderMemory:
    steps = late_loads(model.graph, [ModelStep.alone(layer) for layer in lives.ordered(order)])
    lv2 = least_without_spill(model.graph, steps, model.params, model.options)
    alive = lives.sets.alive(order)
    position = max(range(len(alive)), key=alive.__getitem__, default=0)
    if not alive:
        return OrderMemory(name, 0, lv2, "", ())
    layer = lives.layers[order[position]].name
    return OrderMemory(name, alive[position], lv2, layer, tuple(lives.alive_at(order, position)))
