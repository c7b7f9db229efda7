"""The tables of an image that describe its tensors, layers and steps."""

from collections.abc import Iterable, Sequence
from typing import Any

from compiler import ir
from compiler.backend.layers.layer import HostLayer, Layer
from compiler.backend.layers.region import members_of
from compiler.backend.memory.tensor_placement import TensorPlacement
from compiler.backend.objects.layer_code import LayerCode
from hw.contract.isa import Segment
from hw.contract.params import SocParams
from hw.image import JobInfo, LayerInfo, PortInfo, StepInfo, TensorInfo
from sim.cost import prologue_cycles


def tensor_table(placement: TensorPlacement) -> list[TensorInfo]:
    """Return the tensors that host and driver can reach: in DRAM, with a place of their own."""
    infos = []
    for name, tensor in placement.tensors.items():
        buffer = placement.by_tensor[name]
        if name in placement.exports:
            segment, offset = int(Segment.SHARED), placement.exports[name]
        elif buffer.segment in (Segment.INPUTS, Segment.OUTPUTS, Segment.SHARED) and name not in placement.inside:
            segment, offset = buffer.segment, buffer.offset
        else:
            continue
        dtype: Any = tensor.dtype
        scale, zero_point = float(tensor.scale), int(tensor.zero_point)
        infos.append(TensorInfo(name, dtype, list(tensor.shape), segment, offset, scale, zero_point))
    return infos


def layer_table(graph: ir.Graph, codes: Iterable[LayerCode], params: SocParams) -> list[LayerInfo]:
    """Return the layers with their sizes and estimated cycles: of the loads of all prologues, and of the engine with
    the most to compute, or to load and store meanwhile."""
    return [_layer(graph, code, params) for code in codes]


def _layer(graph: ir.Graph, code: LayerCode, params: SocParams) -> LayerInfo:
    layer, loaded = code.layer, sum(len(job.window_data) for job in code.jobs)
    output = graph.tensors.get(layer.output)
    return LayerInfo(
        name=layer.name,
        kind=layer.kind,
        nodes=layer.nodes,
        output=output.onnx_name or layer.output if output else "",
        macs=layer.macs(graph),
        input_bytes=sum(graph.tensors[name].size for name in layer.inputs),
        weight_bytes=sum(int(m.op.weights.size) for m in members_of(layer) if isinstance(m.op, ir.Conv)),
        output_bytes=output.size if output else 0,
        estimated_load=prologue_cycles(loaded, params),
        estimated_compute=code.busiest,
        estimated_stream=code.streaming,
    )


def port_table(ports: Iterable[ir.Port]) -> list[PortInfo]:
    """Return the inputs or outputs of the model."""
    return [PortInfo(p.name, p.dtype, list(p.shape), p.tensor, list(p.perm), p.quantise) for p in ports]


def step_table(layers: Sequence[Layer], jobs: Sequence[JobInfo]) -> list[StepInfo]:
    """Return the runs of jobs between the operators that run on the CPU."""
    steps: list[StepInfo] = []
    host, first = 0, 0
    for number, layer in enumerate(layers):
        if not isinstance(layer, HostLayer) or not isinstance(layer.op, ir.Host):
            continue
        before = sum(job.layer < number for job in jobs)
        if before > first:
            steps.append(StepInfo("jobs", first, before - first))
        op = layer.op
        steps.append(StepInfo("host", host=host, inputs=list(op.inputs), outputs=list(op.outputs), reason=op.reason))
        host, first = host + 1, before
    if len(jobs) > first:
        steps.append(StepInfo("jobs", first, len(jobs) - first))
    return steps
