"""Order of layers: a layer whose result is not needed yet waits, where that takes less memory."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from itertools import accumulate

from compiler import ir
from compiler.plan.layers.flow import layer_flow
from compiler.plan.layers.layer import HostLayer, Layer


def defer(graph: ir.Graph, layers: list[Layer], kept: Collection[str] = ()) -> list[Layer]:
    """``layers`` with some moved to just before the first reader of their result, as the shortcut of a residual block;
    those of the operators ``kept`` stay.

    A move is kept if it lowers the most bytes alive at a time, or their sum over the layers it passes.
    """
    return _Deferring(graph, layers).run(kept)


class _Deferring:
    """Moves layers one by one. What a move changes is looked at between a layer and its first reader alone: bytes that
    are alive all the way are the same in both orders."""

    def __init__(self, graph: ir.Graph, layers: Sequence[Layer]) -> None:
        self._graph, self._ordered = graph, list(layers)
        self._place = {layer: place for place, layer in enumerate(layers)}
        self._roots, self._flow = graph.roots(), layer_flow(graph, layers)
        self._outside = {self._roots[port.tensor] for port in (*graph.inputs, *graph.outputs)}
        self._makers: dict[str, list[Layer]] = defaultdict(list)
        self._readers: dict[str, list[Layer]] = defaultdict(list)
        for layer in layers:
            self._makers[self._roots[layer.output]].append(layer)
            for name in {self._roots[name] for name in layer.inputs}:
                self._readers[name].append(layer)

    def run(self, kept: Collection[str]) -> list[Layer]:
        """See :func:`defer`."""
        for layer in reversed(list(self._ordered)):
            here = self._place[layer]
            there = min((self._place[reader] for reader in self._flow.successors(layer)), default=here + 1) - 1
            passed = self._ordered[here + 1 : there + 1]
            fixed = layer.op.name in kept or any(isinstance(other, HostLayer) for other in (layer, *passed))
            if not passed or fixed:
                continue
            readers = self._ordered[there + 1 : there + 2]
            before = self._alive(here, [layer, *passed, *readers])
            after = self._alive(here, [*passed, layer, *readers])
            if (max(after), sum(after)) < (max(before), sum(before)):
                self._stand(here, [*passed, layer])
            else:
                self._stand(here, [layer, *passed])
        return self._ordered

    def _stand(self, first: int, layers: Sequence[Layer]) -> None:
        """Put ``layers`` at places from ``first`` on."""
        self._ordered[first : first + len(layers)] = layers
        self._place |= {layer: first + place for place, layer in enumerate(layers)}

    def _alive(self, first: int, layers: Sequence[Layer]) -> list[int]:
        """Return the bytes of intermediate tensors alive at each of ``layers`` at places from ``first`` on, more or
        less than just before. A sum takes the place of an operand that dies there."""
        self._place |= {layer: first + place for place, layer in enumerate(layers)}
        end = first + len(layers)
        changes = [0] * len(layers)  # at each layer
        makers = dict.fromkeys(layers)  # and those of tensors that die here
        for layer in layers:
            for name in {self._roots[name] for name in layer.inputs} - self._outside:
                if self._last(name, -1) < end:
                    makers |= dict.fromkeys(self._makers[name])
        for maker in makers:
            if self._roots[maker.output] in self._outside:
                continue
            size, (begins, ends) = self._graph.tensors[maker.output].size, self._life(maker)
            if begins < ends:
                for place, change in ((begins, size), (ends, -size)):
                    if first <= place < end:
                        changes[place - first] += change
        return list(accumulate(changes))

    def _life(self, layer: Layer) -> tuple[int, int]:
        """Return the place from which on the result of ``layer`` is alive, and the first at which it is not."""
        place, size = self._place[layer], self._graph.tensors[layer.output].size
        dying = (self._roots[name] for name in layer.inputs if self._graph.tensors[name].size == size)
        replaces = bool(layer.replaceable) and any(self._last(name, -1) == place for name in dying)
        return place + replaces, self._last(self._roots[layer.output], place) + 1

    def _last(self, name: str, otherwise: int) -> int:
        """Return the place of the last reader of a tensor, or what it is if there is none."""
        return max((self._place[reader] for reader in self._readers[name]), default=otherwise)
