"""Sums the table of layers of an image to what an inference takes."""

from collections.abc import Iterable
from typing import NamedTuple

from hw.image import LayerInfo


class Prediction(NamedTuple):
    """Says what an inference takes on the engines: cycles of all ``compute`` and of all access to ``memory``. With
    layers ``in_turn``, each takes as long as its loads or its computing, whichever takes longer."""

    compute: int
    memory: int
    in_turn: int

    @property
    def cycles(self) -> int:
        """Return the cycles where a layer's loads run while others compute."""
        return max(self.compute, self.memory)


def inference(layers: Iterable[LayerInfo]) -> Prediction:
    """Return what ``layers`` take together: as measured where they were profiled, as estimated elsewhere."""
    rows = [(layer.compute, layer.load + layer.stream, max(layer.load, layer.compute)) for layer in layers]
    return Prediction(*map(sum, zip(*rows, strict=True))) if rows else Prediction(0, 0, 0)
