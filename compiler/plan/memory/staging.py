"""Which steps pass something through the staging areas of LV2: those that read or write a tensor in DRAM."""

from collections.abc import Callable, Iterator, Sequence

from compiler.plan.layers.layer import ConvLayer, Layer, MoveLayer
from compiler.plan.layers.step import ModelStep


def staged_tensors(steps: Sequence[ModelStep]) -> list[frozenset[str]]:
    """Return by step the tensors that pass the staging areas if they lie in DRAM."""
    return [frozenset(name for member in step.members for name in _touched(member)) for step in steps]


def staged_steps(steps: Sequence[ModelStep], on_chip: Callable[[str], bool]) -> frozenset[int]:
    """Return the numbers of the steps that pass something; ``on_chip``: whether a tensor lies in LV2."""
    return frozenset(number for number, names in enumerate(staged_tensors(steps)) if not all(map(on_chip, names)))


def _touched(layer: Layer) -> Iterator[str]:
    yield from layer.inputs
    yield from layer.outputs
    if isinstance(layer, ConvLayer) and layer.addition:
        yield layer.addition.other
    if isinstance(layer, MoveLayer):
        yield from (copy.src for copy in layer.copies)
