"""Defines how the plan of one length of a model becomes that of another length.

Programs for lengths that are near each other then differ in little but sizes, strides and counts.
"""

from dataclasses import dataclass, replace

from compiler.plan.layers.step import ModelStep
from compiler.plan.lowered_model import LoweredModel
from compiler.plan.memory.place import buffer_at, port_offsets, shared_buffers
from compiler.plan.memory.place_planned import buffer_plan
from compiler.plan.memory.tensor_placement import TensorBuffer, TensorPlacement
from compiler.plan.plan import MemoryPlan, Plan, StepPlan
from compiler.plan.plan_error import PlanError
from compiler.plan.steps import joined
from compiler.plan.tiles import ConvTiles


@dataclass(frozen=True)
class PlannedLength:
    """Holds a length of a model with a complete plan of its own, in which jobs have their orders, and the placement
    that follows from it."""

    model: LoweredModel
    plan: Plan
    placement: TensorPlacement


def retarget(longer: PlannedLength, plan: Plan, model: LoweredModel, *, free_tiles: bool) -> Plan:
    """Return ``plan``, in which all is free, with the decisions of ``longer``. So ``model``, the same with another
    length, is compiled with its steps, program orders, points and places, and with its tiles of convolutions unless
    they are free; other tiles depend on lengths, and are free. Raises :class:`PlanError` if it has other layers, or a
    buffer does not fit."""
    assert longer.plan.steps is not None and longer.plan.memory is not None
    if _kinds(model) != _kinds(longer.model):
        raise PlanError(f"model {model.graph.name!r}: it has other layers than in the plan")
    steps = tuple(_freed(step, free_tiles) for step in longer.plan.steps)
    memory = _moved(longer, longer.plan.memory, model, joined(model.graph, model.layers, steps))
    return replace(plan, rewrites=model.rewrites, layers=longer.plan.layers, steps=steps, memory=memory)


def _kinds(model: LoweredModel) -> list[str]:
    return [f"{layer.kind} {layer.name}" for layer in model.layers]


def _freed(step: StepPlan, free: bool) -> StepPlan:
    tiles = (one if isinstance(one, ConvTiles) and not free else None for one in step.tiles or ())
    return replace(step, tiles=tuple(tiles))


def _moved(longer: PlannedLength, memory: MemoryPlan, model: LoweredModel, steps: list[ModelStep]) -> MemoryPlan:
    """Return a plan of the memory of ``model`` with every buffer where ``longer`` has it, but for inputs and outputs,
    which lie as in any other model of this length: kernels find there what others wrote. Raises :class:`PlanError` if a
    buffer does not fit there, or others share one."""
    planned = longer.placement
    sharing = shared_buffers(model.graph, steps, model.params, model.options)
    known = dict(zip(sharing.buffers, planned.by_tensor, strict=False))  # names tell of shapes
    inside = {known[name]: (known[outer], at) for name, (outer, at) in sharing.inside.items()}
    if len(sharing.buffers) != len(planned.by_tensor) or inside != planned.inside:
        raise PlanError("tensors lie in others than in the plan")
    ports = port_offsets(sharing.unique())
    theirs: dict[int, TensorBuffer] = {}
    tensors: dict[int, list[str]] = {}
    made: dict[int, TensorBuffer] = {}
    for name, buffer in sharing.buffers.items():
        other = theirs.setdefault(id(buffer), planned.by_tensor[known[name]])
        if other is not planned.by_tensor[known[name]]:
            raise PlanError(f"tensor {name!r} shares its buffer with others than in the plan")
        segment = buffer.segment if other.segment is None else other.segment
        offset = ports.get(id(buffer), other.offset)
        mine = made[id(buffer)] = buffer_at(buffer, segment, offset, padded=bool(other.pitch))
        if mine.pitch != other.pitch or mine.size > other.size or mine.users != other.users:
            raise PlanError(f"tensor {name!r} does not fit where it lies in the plan")
        tensors.setdefault(id(buffer), []).append(name)
    if len({id(other) for other in theirs.values()}) != len(theirs):
        raise PlanError("tensors share buffers in the plan")
    return replace(
        memory,
        buffers=tuple(buffer_plan(names, made[at]) for at, names in tensors.items()),
        inside=tuple((name, outer, first) for name, (outer, first) in sharing.inside.items()),
    )
