"""Defines steps of a plan and the layers that they are about."""

from collections.abc import Sequence
from dataclasses import replace

from compiler import ir
from compiler.emission.objects.step_object import StepObject
from compiler.plan.layers.layer import Layer
from compiler.plan.layers.step import ModelStep
from compiler.plan.plan import StepPlan
from compiler.plan.structure import layer_names


def step_plans(
    layers: Sequence[Layer], steps: Sequence[ModelStep], objects: Sequence[StepObject]
) -> tuple[StepPlan, ...]:  # fmt: skip
    """Return what was decided about ``steps`` of a model of ``layers``, which became ``objects``; jobs have their
    order."""
    names = dict(zip(layers, layer_names(layers), strict=True))
    return tuple(
        StepPlan(tuple(names[one] for one in step.members), step.places, made.tiles, tuple(j.plan for j in made.jobs))
        for step, made in zip(steps, objects, strict=True)
    )


def joined(graph: ir.Graph, layers: Sequence[Layer], plans: Sequence[StepPlan]) -> list[ModelStep]:
    """Return ``layers`` as ``plans`` have them, which are about each once."""
    named, steps = dict(zip(layer_names(layers), layers, strict=True)), list[ModelStep]()
    for plan in plans:
        members = [named[name] for name in plan.layers]
        step = ModelStep.region(graph, members, plan.places) if plan.places else ModelStep.alone(members[0])
        steps.append(replace(step, tiles=plan.tiles, jobs=plan.jobs))
    return steps
