"""Defines how the plan of one length of a model becomes that of another length.

Programs for lengths that are near each other then differ in little but sizes, strides and counts.
"""

from dataclasses import replace

from compiler.backend.layers.layer import Layer
from compiler.backend.lowered_model import LoweredModel
from compiler.backend.memory.place import buffer_at
from compiler.backend.memory.sharing import BufferSharing
from compiler.backend.memory.tensor_placement import TensorBuffer
from compiler.backend.pipeline import Build
from compiler.plan.plan import BufferPlan, MemoryPlan, Plan, StepPlan
from compiler.plan.plan_error import PlanError
from compiler.plan.steps import joined, step_plans
from compiler.plan.tiles import ConvTiles


def retarget(built: Build, model: LoweredModel, *, free_tiles: bool) -> Plan:
    """Return the plan by which ``model``, the same model with another length, is compiled as ``built`` was: with its
    steps, program orders, points and places, and with its tiles of convolutions unless they are free. Other tiles
    depend on lengths, and are free. Raises :class:`PlanError` if it has other layers, or a buffer does not fit."""
    if _kinds(model) != _kinds(built.model):
        raise PlanError(f"model {model.graph.name!r}: it has other layers than in the plan")
    steps = tuple(_freed(step, free_tiles) for step in step_plans(built.model.layers, built.codes))
    memory = _moved(built, model, joined(model.graph, model.layers, steps))
    return replace(
        built.report.plan, model=model.graph.name, structure=model.structure, rewrites=model.rewrites, steps=steps,
        memory=memory,
    )  # fmt: skip


def _kinds(model: LoweredModel) -> list[str]:
    return [f"{layer.kind} {layer.name}" for layer in model.layers]


def _freed(step: StepPlan, free: bool) -> StepPlan:
    return replace(step, tiles=tuple(one if isinstance(one, ConvTiles) and not free else None for one in step.tiles))


def _moved(built: Build, model: LoweredModel, steps: list[Layer]) -> MemoryPlan:
    """Return a plan of the memory of ``model`` with every buffer where ``built`` has it. Raises :class:`PlanError` if a
    buffer does not fit there, or others share one."""
    planned = built.placement
    sharing = BufferSharing(model.graph, steps, model.params, planned.order)
    known = dict(zip(sharing.buffers, planned.by_tensor, strict=False))  # names tell of shapes
    inside = {known[name]: (known[outer], at) for name, (outer, at) in sharing.inside.items()}
    if len(sharing.buffers) != len(planned.by_tensor) or inside != planned.inside:
        raise PlanError("tensors lie in others than in the plan")
    theirs: dict[int, TensorBuffer] = {}
    tensors: dict[int, list[str]] = {}
    made: dict[int, TensorBuffer] = {}
    for name, buffer in sharing.buffers.items():
        other = theirs.setdefault(id(buffer), planned.by_tensor[known[name]])
        if other is not planned.by_tensor[known[name]]:
            raise PlanError(f"tensor {name!r} shares its buffer with others than in the plan")
        segment = buffer.segment if other.segment is None else other.segment
        mine = made[id(buffer)] = buffer_at(buffer, segment, other.offset, padded=bool(other.pitch))
        if mine.pitch != other.pitch or mine.size > other.size or mine.users != other.users:
            raise PlanError(f"tensor {name!r} does not fit where it lies in the plan")
        tensors.setdefault(id(buffer), []).append(name)
    if len({id(other) for other in theirs.values()}) != len(theirs):
        raise PlanError("tensors share buffers in the plan")
    return replace(
        built.report.plan.memory,
        buffers=tuple(BufferPlan.of(names, made[at]) for at, names in tensors.items()),
        inside=tuple((name, outer, first) for name, (outer, first) in sharing.inside.items()),
    )
