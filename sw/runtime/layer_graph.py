"""Knows what the layers of a model read, and so which can come next."""

from collections.abc import Collection, Sequence


class LayerGraph:
    """Knows what layers read. ``inputs``: of each layer the earlier ones whose outputs it reads. ``blocks``: of each
    layer the number of its block, such as a residual block, or None; layers of a block have neighbouring numbers and
    are scheduled together."""

    def __init__(self, inputs: Sequence[Sequence[int]], blocks: Sequence[int | None] = ()) -> None:
        self._inputs = [tuple(earlier) for earlier in inputs]
        self._consumers: list[list[int]] = [[] for _ in inputs]
        for layer, earlier in enumerate(self._inputs):
            for other in set(earlier):
                self._consumers[other].append(layer)
        self._blocks = list(blocks) or [None] * len(inputs)

    @classmethod
    def chain(cls, layers: int) -> "LayerGraph":
        """Return the graph of so many layers of which each reads the one before it."""
        return cls([(layer - 1,) if layer else () for layer in range(layers)])

    def inputs(self, layer: int) -> tuple[int, ...]:
        """Return the earlier layers that ``layer`` reads."""
        return self._inputs[layer]

    def first(self) -> list[int]:
        """Return the layers that can be scheduled before any other."""
        return [layer for layer, earlier in enumerate(self._inputs) if not earlier]

    def freed(self, layer: int, scheduled: Collection[int]) -> list[int]:
        """Return the layers that can be scheduled now that ``layer``, the latest of those ``scheduled``, is."""
        return [other for other in self._consumers[layer] if all(each in scheduled for each in self._inputs[other])]

    def following(self, layer: int, scheduled: Collection[int], count: int) -> list[int]:
        """Return at most ``count`` layers that could be scheduled one after another behind ``layer``, each a reader of
        the one before it that reads nothing else that is not scheduled."""
        found: list[int] = []
        while len(found) < count:
            last, known = (found or [layer])[-1], {layer, *found}
            readers = (r for r in self._consumers[last] if all(i in known or i in scheduled for i in self._inputs[r]))
            following = next(readers, None)
            if following is None:
                break
            found.append(following)
        return found

    def rest_of_block(self, layer: int, scheduled: Collection[int]) -> list[int]:
        """Return the layers of the block of ``layer`` that can be scheduled behind it, in order: those that wait for a
        layer outside come later."""
        if self._blocks[layer] is None:
            return []
        known, found = {layer, *scheduled}, []
        for other, block in enumerate(self._blocks):
            if block == self._blocks[layer] and other not in known and known.issuperset(self._inputs[other]):
                known.add(other)
                found.append(other)
        return found
