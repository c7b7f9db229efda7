"""A model as the order search sees it before anything is compiled: times from the chip's parameters."""

import numpy as np

from benchmarks.order_search.price import ChipModel
from compiler import OperatorNode, OrderGraph, ir, threshold
from hw.contract.params import SocParams
from sim.cost import UNIT_START

TILE = 0.125  #: part of an operator that a reader waits for: kernels cut most layers into eight tiles or more


def chip_model(params: SocParams) -> ChipModel:
    """Return the chip of ``params`` with a reserve of LV2."""
    return ChipModel(threshold(params.lv2_bytes), params.dram_bytes_per_cycle, TILE, ahead=params.job_slots)


def order_graph(graph: ir.Graph, params: SocParams) -> OrderGraph:
    """Return the operators of ``graph`` but its reshapes, which cost nothing. Matrix and vector times are those of all
    engines at their peaks; inputs of the model and parameters are loaded; outputs of the model leave the chip."""
    roots = graph.roots()
    inputs, outputs = ({roots[port.tensor] for port in ports} for ports in (graph.inputs, graph.outputs))
    operations = [op for op in graph.ops if not isinstance(op, ir.Reshape)]
    made: dict[str, int] = {}
    for number, op in enumerate(operations):
        made |= {roots[name]: number for name in _results(op)}
    nodes, edges = [], set()
    for number, op in enumerate(operations):
        reads = {roots[name] for name in op.inputs}
        edges |= {(made[name], number) for name in reads if name in made}
        parameters = _parameter_bytes(graph, op)
        loaded = parameters + sum(graph.tensors[name].size for name in reads & inputs)
        matrix, vector = _compute(graph, op, params)
        size = sum(graph.tensors[name].size for name in _results(op) if roots[name] not in outputs)
        load = loaded / params.dram_bytes_per_cycle
        nodes.append(OperatorNode(op.name, op.kind, load, matrix, vector, size, parameters))
    return OrderGraph(graph.name, tuple(nodes), frozenset(edges))


def _results(op: ir.Operation) -> list[str]:
    return list(op.outputs) if isinstance(op, ir.Host) else [op.output]


def _parameter_bytes(graph: ir.Graph, op: ir.Operation) -> int:
    constants = sum(graph.tensors[name].size for name in op.inputs if graph.tensors[name].data is not None)
    return constants + (int(op.weights.nbytes + op.bias.nbytes) if isinstance(op, ir.Conv) else 0)


def _compute(graph: ir.Graph, op: ir.Operation, params: SocParams) -> tuple[float, float]:
    """Return the cycles of the matrix and of the vector units."""
    matrix, vector = 0.0, 0.0
    size = graph.tensors[op.output].size
    lanes = params.vec_lanes * params.engines
    match op:
        case ir.Conv():
            matrix, vector = _convolved(graph, op, op.weights.shape, op.groups, params), size / lanes
        case ir.Pool(kind_="avg" | "sum"):
            channels = graph.tensors[op.output].nhwc[3]
            matrix = _convolved(graph, op, (channels, *op.kernel, 1), channels, params)
            vector = size / lanes
        case ir.Pool():
            cols = graph.tensors[op.output].nhwc[2]
            vector = size * ir.maximum_steps(op.kernel, op.strides[1], op.span[1], cols) / lanes
        case ir.Eltwise() | ir.Table():
            vector = size / lanes
        case ir.Concat() | ir.Permute() | ir.Shuffle() | ir.Pad():
            vector = size / (params.lv1_word * params.engines)
    return (matrix + UNIT_START if matrix else 0.0), (vector + UNIT_START if vector else 0.0)


def _convolved(
    graph: ir.Graph, op: ir.Operation, weights: tuple[int, ...], groups: int, params: SocParams
) -> float:  # fmt: skip
    """Return a cycle for each pixel, block of output channels, and block of the kernel: ``rows`` input channels, or in
    depthwise layers as many columns of the kernel."""
    outs, height, width, depth = weights
    pixels = int(np.prod(graph.tensors[op.output].nhwc[:3]))
    blocks = height * -(-width // params.rows) if depth == 1 < groups else height * width * -(-depth // params.rows)
    per_group = -(-(outs // groups) // params.out_channels) * groups if depth > 1 else -(-outs // params.out_channels)
    return pixels * blocks * per_group / params.engines
