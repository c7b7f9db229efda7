"""What the back end decides about a model, so that the same model with another length is compiled alike.

Programs for lengths that are near each other then differ in little but sizes, strides and counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from compiler import ir
from compiler.backend.layers.layer import Layer
from compiler.backend.layers.region import Place, Region, members_of
from compiler.backend.memory.budget import Lv2Budget
from compiler.backend.memory.plan_error import PlanError
from compiler.backend.memory.tensor_placement import TensorPlacement
from compiler.backend.objects.layer_code import LayerCode
from compiler.backend.program.decisions import LayerDecisions
from compiler.plan.tiles import ConvTiles

__all__ = ["LengthPlan", "PlanError"]


@dataclass(frozen=True)
class LengthPlan:
    """The decisions: ``layers``, what the model consists of; ``groups``, in their order, the layers of each step by
    number, and where engines compute them; how LV2 is divided and where tensors lie; by step the tiles that
    kernels chose, and the program order and the cancellation points of each job."""

    layers: tuple[str, ...]
    groups: tuple[tuple[tuple[int, ...], tuple[Place, ...]], ...]
    budget: Lv2Budget
    placement: TensorPlacement
    decisions: tuple[LayerDecisions, ...]

    @classmethod
    def of(
        cls, layers: Sequence[Layer], steps: Sequence[Layer], budget: Lv2Budget, placement: TensorPlacement,
        codes: Sequence[LayerCode],
    ) -> "LengthPlan":  # fmt: skip
        """That of a model of ``layers``, which became ``steps`` and these codes."""
        number = {layer: at for at, layer in enumerate(layers)}
        groups = tuple(
            (tuple(number[member] for member in members_of(step)), step.places if isinstance(step, Region) else ())
            for step in steps
        )
        return cls(_names(layers), groups, budget, placement, tuple(_decisions(code) for code in codes))

    def with_free_tiles(self) -> "LengthPlan":
        """The same, but each length takes the tiles that are best for it."""
        free = (replace(each, tiles=(None,) * len(each.tiles)) for each in self.decisions)
        return replace(self, decisions=tuple(free))

    def joined(self, graph: ir.Graph, layers: Sequence[Layer]) -> list[Layer]:
        """``layers`` of the model with another length as the same steps. Raises :class:`PlanError` if they are not the
        same layers."""
        if _names(layers) != self.layers:
            raise PlanError(f"model {graph.name!r}: it has other layers than in the plan")
        return [
            Region.of(graph, [layers[number] for number in group], places) if places else layers[group[0]]
            for group, places in self.groups
        ]


def _decisions(code: LayerCode) -> LayerDecisions:
    """Those about a step that another length takes over: tiles of convolutions alone, as others depend on lengths."""
    tiles = tuple(each if isinstance(each, ConvTiles) else None for each in code.tiles)
    return replace(code.decisions, tiles=tiles)


def _names(layers: Sequence[Layer]) -> tuple[str, ...]:
    return tuple(f"{layer.kind} {layer.name}" for layer in layers)
