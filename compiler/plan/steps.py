"""Defines steps of a plan and the layers that they are about."""

from collections.abc import Sequence
from dataclasses import replace

from compiler import ir
from compiler.backend.layers.layer import HostLayer, Layer
from compiler.backend.layers.region import Region, members_of
from compiler.backend.objects.layer_code import LayerCode
from compiler.plan.plan import StepPlan, without_order
from compiler.plan.plan_error import PlanError


def layer_names(layers: Sequence[Layer]) -> tuple[str, ...]:
    """Return the names of ``layers``, with a number behind those that are not the first of their name."""
    found: dict[str, Layer] = {}
    for layer in layers:
        name, count = layer.name, 1
        while name in found:
            count += 1
            name = f"{layer.name}#{count}"
        found[name] = layer
    return tuple(found)


def step_plans(layers: Sequence[Layer], codes: Sequence[LayerCode]) -> tuple[StepPlan, ...]:
    """Return what was decided about the steps of a model of ``layers``, which became ``codes``; jobs have their
    order."""
    names = dict(zip(layers, layer_names(layers), strict=True))
    return tuple(
        StepPlan(
            tuple(names[member] for member in members_of(code.layer)),
            code.layer.places if isinstance(code.layer, Region) else (),
            () if isinstance(code.layer, HostLayer) else code.tiles,
            tuple(job.body.plan for job in code.jobs),
        )
        for code in codes
    )


def without_orders(steps: Sequence[StepPlan]) -> tuple[StepPlan, ...]:
    """Return ``steps`` with the tasks of all jobs in the order of the list schedule."""
    return tuple(replace(step, jobs=without_order(step.jobs)) for step in steps)


def joined(graph: ir.Graph, layers: Sequence[Layer], steps: Sequence[StepPlan]) -> list[Layer]:
    """Return ``layers`` as ``steps`` have them. Raises :class:`PlanError` if these are about other layers, or not about
    each once."""
    named = dict(zip(layer_names(layers), layers, strict=True))
    if sorted(name for step in steps for name in step.layers) != sorted(named):
        raise PlanError(f"model {graph.name!r}: the steps of the plan are not its layers, each once")
    return [
        Region.of(graph, [named[name] for name in step.layers], step.places) if step.places else named[step.layers[0]]
        for step in steps
    ]
