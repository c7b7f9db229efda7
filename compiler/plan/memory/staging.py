"""Which steps pass something through the staging areas of LV2: those that read or write a tensor in DRAM, and those
whose weights come chunk by chunk, as those of one channel tile exceed a window."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from compiler.plan.layers.layer import ConvLayer, Layer, MoveLayer, RefillLayer, StoreLayer
from compiler.plan.layers.step import ModelStep
from compiler.plan.memory.budget import SLACK, tile_bytes
from hw.contract.params import SocParams


@dataclass(frozen=True)
class StagedSteps:
    """Holds by step the ``tensors`` that pass the staging areas if they lie in DRAM, and the numbers of the steps that
    pass weights there wherever tensors lie, ``streaming``."""

    tensors: Sequence[frozenset[str]]
    streaming: frozenset[int]

    @classmethod
    def of(cls, steps: Sequence[ModelStep], windows: int, params: SocParams) -> "StagedSteps":
        """Return those of ``steps`` if a ring of weight windows has ``windows`` bytes, or more."""
        tensors = [frozenset(name for member in step.members for name in _touched(member)) for step in steps]
        streaming = (at for at, step in enumerate(steps) if any(_streams(one, windows, params) for one in step.members))
        return cls(tensors, frozenset(streaming))

    def numbers(self, on_chip: Callable[[str], bool]) -> frozenset[int]:
        """Return the steps that pass something; ``on_chip``: whether a tensor lies in LV2."""
        return self.streaming | {at for at, names in enumerate(self.tensors) if not all(map(on_chip, names))}


def _streams(layer: Layer, windows: int, params: SocParams) -> bool:
    return isinstance(layer, ConvLayer) and tile_bytes(layer, params) + SLACK > windows


def _touched(layer: Layer) -> Iterator[str]:
    if isinstance(layer, RefillLayer | StoreLayer):  # one copy between LV2 and DRAM
        yield from layer.outputs if isinstance(layer, RefillLayer) else layer.inputs
        return
    yield from layer.inputs
    yield from layer.outputs
    if isinstance(layer, MoveLayer):
        yield from (copy.src for copy in layer.copies)
