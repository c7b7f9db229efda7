"""What the back end decides about a model, so that the same model with another length is compiled alike.

Programs for lengths that are near each other then differ in little but sizes, strides and counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from compiler import ir
from compiler.backend.layers.layer import Layer
from compiler.backend.memory.budget import Lv2Budget
from compiler.backend.memory.tensor_placement import TensorPlacement
from compiler.backend.objects.layer_code import LayerCode
from compiler.plan.plan import StepPlan
from compiler.plan.plan_error import PlanError
from compiler.plan.steps import joined, step_plans
from compiler.plan.tiles import ConvTiles


@dataclass(frozen=True)
class LengthPlan:
    """Holds the decisions: ``layers``, what the model consists of; ``steps``, with the program order of each job, and
    tiles of convolutions alone, as others depend on lengths; how LV2 is divided and where tensors lie."""

    layers: tuple[str, ...]
    steps: tuple[StepPlan, ...]
    budget: Lv2Budget
    placement: TensorPlacement

    @classmethod
    def of(
        cls, layers: Sequence[Layer], codes: Sequence[LayerCode], budget: Lv2Budget, placement: TensorPlacement
    ) -> "LengthPlan":
        """Return the plan of a model of ``layers``, which became these codes."""
        steps = (
            replace(step, tiles=tuple(each if isinstance(each, ConvTiles) else None for each in step.tiles))
            for step in step_plans(layers, codes)
        )
        return cls(_kinds(layers), tuple(steps), budget, placement)

    def with_free_tiles(self) -> "LengthPlan":
        """Return the same, but each length takes the tiles that are best for it."""
        free = (replace(step, tiles=(None,) * len(step.tiles)) for step in self.steps)
        return replace(self, steps=tuple(free))

    def joined(self, graph: ir.Graph, layers: Sequence[Layer]) -> list[Layer]:
        """``layers`` of the model with another length as the same steps. Raises :class:`PlanError` if they are not the
        same layers."""
        if _kinds(layers) != self.layers:
            raise PlanError(f"model {graph.name!r}: it has other layers than in the plan")
        return joined(graph, layers, self.steps)


def _kinds(layers: Sequence[Layer]) -> tuple[str, ...]:
    return tuple(f"{layer.kind} {layer.name}" for layer in layers)
