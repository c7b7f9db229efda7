"""What is alive when, in any order of a model's layers: the buffers of its tensors, each layer a step of its own."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from compiler import ir
from compiler.plan.layers.flow import layer_flow
from compiler.plan.layers.layer import HostLayer, Layer
from compiler.plan.layers.step import ModelStep
from compiler.plan.memory.sharing import BufferSharing, SharedBuffer
from compiler.plan.order.alive_sets import AliveBuffer, AliveSets
from compiler.plan.order.graph import Order
from compiler.plan.regions.layer_order import AnyOrder
from hw.contract.params import SocParams


@dataclass(frozen=True)
class LayerLives:
    """Holds ``layers``, what is ``alive`` beside each in any order, and the tensors of each buffer, ``names``."""

    layers: tuple[Layer, ...]
    sets: AliveSets
    names: tuple[tuple[str, ...], ...]

    @classmethod
    def of(
        cls, graph: ir.Graph, layers: Sequence[Layer], params: SocParams, turns: Sequence[Sequence[str]] = ()
    ) -> "LayerLives":  # fmt: skip
        """Return the lives of what may lie in LV2; ``turns``: names of operators that run in this order."""
        sharing = BufferSharing(graph, [ModelStep.alone(one) for one in layers], params, AnyOrder())
        buffers = [one for one in sharing.unique() if one.segment is None]
        numbers = {id(one): number for number, one in enumerate(buffers)}
        names: list[list[str]] = [[] for _ in buffers]
        for name in graph.tensors:
            if (home := id(sharing.home(name))) in numbers:
                names[numbers[home]].append(name)

        def pair(new: SharedBuffer, old: SharedBuffer) -> tuple[int, int]:
            return numbers[id(new)], numbers[id(old)]

        alive = [AliveBuffer(one.size, sum(1 << user for user in one.users)) for one in buffers]
        replaced = [
            tuple(
                pair(new, old) for new, old in sharing.replaceable(layer) if id(old) in numbers and id(new) in numbers
            )
            for layer in layers
        ]
        before = tuple(_before(graph, layers, turns))
        return cls(tuple(layers), AliveSets(before, tuple(alive), tuple(replaced)), tuple(map(tuple, names)))

    def ordered(self, order: Order) -> tuple[Layer, ...]:
        """Return the layers in ``order``."""
        return tuple(self.layers[number] for number in order)

    def candidates(self, least: Order) -> dict[str, Order]:
        """Return by name the orders that others use, the model's own first, and ``least``, which has the fewest bytes
        alive."""
        return {
            "model": tuple(range(len(self.layers))),
            "reverse post-order": self.sets.reverse_post_order(),
            "greedy": self.sets.greedy(),
            "least": least,
        }

    def alive_at(self, order: Order, position: int) -> list[tuple[str, int]]:
        """Return the tensors, each the first of its buffer, and the bytes that are alive while the layer at
        ``position`` of ``order`` runs, largest first."""
        done = sum(1 << number for number in order[:position])
        at = 1 << order[position]
        found = [
            (names[0], one.size)
            for names, one in zip(self.names, self.sets.buffers, strict=True)
            if one.users & (done | at) and one.users & ~done
        ]
        return sorted(found, key=lambda one: -one[1])


def _before(graph: ir.Graph, layers: Sequence[Layer], turns: Sequence[Sequence[str]]) -> list[int]:
    """Return by layer a mask of those that come before it: makers of what it reads, layers whose turn is earlier, and
    for one on the CPU all that the model has before it, as it has before all behind it."""
    number = {layer: at for at, layer in enumerate(layers)}
    before = [0] * len(layers)
    for maker, reader in layer_flow(graph, layers).edges:
        before[number[reader]] |= 1 << number[maker]
    named = {layer.op.name: at for at, layer in enumerate(layers)}
    for turn in turns:
        for earlier, later in itertools.pairwise(named[name] for name in turn if name in named):
            before[later] |= 1 << earlier
    last = 0
    for at, layer in enumerate(layers):
        before[at] |= (1 << at) - 1 if isinstance(layer, HostLayer) else last
        if isinstance(layer, HostLayer):
            last = 1 << at
    return before
