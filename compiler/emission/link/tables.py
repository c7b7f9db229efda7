"""The tables of an image that describe its tensors, layers and steps."""

from collections.abc import Iterable, Sequence
from typing import Any

from compiler import ir
from compiler.emission.objects.step_object import StepObject
from compiler.plan.layers.flow import step_flow
from compiler.plan.layers.step import ModelStep
from compiler.plan.memory.tensor_placement import TensorPlacement
from hw.contract.isa import Segment
from hw.contract.params import SocParams
from hw.image import JobInfo, LayerInfo, PortInfo, StepInfo, TensorInfo
from sim.cost import prologue_cycles

_REACHED = (Segment.INPUTS, Segment.OUTPUTS, Segment.SHARED)


def tensor_table(graph: ir.Graph, placement: TensorPlacement) -> list[TensorInfo]:
    """Return the tensors that host and driver can reach: in DRAM, with a place of their own."""
    infos = []
    states = {name for op in graph.ops if isinstance(op, ir.Append) for name in (op.inputs[3], op.kept)}
    for name, tensor in placement.tensors.items():
        buffer = placement.by_tensor[name]
        if name in placement.exports:
            segment, offset = int(Segment.SHARED), placement.exports[name]
        elif buffer.segment is not None and (
            name in states or (buffer.segment in _REACHED and name not in placement.inside)
        ):
            segment, offset = buffer.segment, buffer.offset
        else:
            continue
        dtype: Any = tensor.dtype
        scale, zero_point = float(tensor.scale), int(tensor.zero_point)
        infos.append(TensorInfo(name, dtype, list(tensor.shape), segment, offset, scale, zero_point))
    return infos


def layer_table(
    graph: ir.Graph, steps: Sequence[ModelStep], objects: Sequence[StepObject], params: SocParams
) -> list[LayerInfo]:  # fmt: skip
    """Return the layers with their sizes and estimated cycles: of the loads of all prologues, and of the engine with
    the most to compute, or to load and store meanwhile."""
    return [_layer(graph, step, one, params) for step, one in zip(steps, objects, strict=True)]


def _layer(graph: ir.Graph, step: ModelStep, made: StepObject, params: SocParams) -> LayerInfo:
    loaded, output = sum(len(job.window_data) for job in made.jobs), graph.tensors.get(step.output)
    return LayerInfo(
        name=step.name,
        kind=step.kind,
        nodes=[node for member in step.members for node in member.nodes],
        output=output.onnx_name or step.output if output else "",
        macs=sum(member.macs(graph) for member in step.members),
        input_bytes=sum(graph.tensors[name].size for name in step.inputs),
        weight_bytes=sum(int(m.op.weights.size) for m in step.members if isinstance(m.op, ir.Conv)),
        output_bytes=output.size if output else 0,
        estimated_load=prologue_cycles(loaded, params),
        estimated_compute=made.busiest,
        estimated_stream=made.streaming,
    )


def port_table(ports: Iterable[ir.Port]) -> list[PortInfo]:
    """Return the inputs or outputs of the model."""
    return [PortInfo(p.name, p.dtype, list(p.shape), p.tensor, list(p.perm), p.quantise) for p in ports]


def step_table(steps: Sequence[ModelStep], jobs: Sequence[JobInfo]) -> list[StepInfo]:
    """Return the runs of jobs between the operators that run on the CPU."""
    infos: list[StepInfo] = []
    host, first = 0, 0
    for number, step in enumerate(steps):
        op = step.members[0].op
        if not step.on_host or not isinstance(op, ir.Host):
            continue
        before = sum(job.layer < number for job in jobs)
        if before > first:
            infos.append(StepInfo("jobs", first, before - first))
        infos.append(StepInfo("host", host=host, inputs=list(op.inputs), outputs=list(op.outputs), reason=op.reason))
        host, first = host + 1, before
    if len(jobs) > first:
        infos.append(StepInfo("jobs", first, len(jobs) - first))
    return infos


def job_edges(graph: ir.Graph, steps: Sequence[ModelStep], objects: Sequence[StepObject]) -> list[list[int]]:
    """For each job of a placed model the last jobs of the steps that its step reads. A step without jobs, as a
    concatenation in place, stands for those that it reads. Steps before one on the CPU have ended when those behind it
    begin.

    All jobs of a step run on one engine, in order, so the first of them waits for all, and the last stands for all.
    """
    flow = step_flow(graph, steps)
    ends: dict[int, set[int]] = {}  # by step: the jobs whose end is that of the step
    edges: list[list[int]] = []
    for number, (step, made) in enumerate(zip(steps, objects, strict=True)):
        if step.on_host:
            ends = {}
            continue
        after = set().union(*(ends.get(maker, set()) for maker in flow.predecessors(number)))
        edges += [sorted(after) if i == 0 else [] for i in range(len(made.jobs))]
        ends[number] = {len(edges) - 1} if made.jobs else after
    return edges
