"""Fusion of layers: a sum moves into the convolution that computes one of its operands, a table into what it reads.

The convolution adds the other operand tile by tile while its result is still in LV1, so that its own result never
travels to LV2 and back. The convolution must be the only source of that operand for the sum, and the sum its only
reader. The vector unit passes results through a table on their way to LV1, so a table that is the only reader of a
layer costs a load of 256 bytes instead of a layer of its own.
"""

from collections.abc import Sequence
from dataclasses import replace

import networkx as nx
import numpy as np

from compiler import ir
from compiler.plan.layers.layer import Addition, ConvLayer, EltwiseLayer, Layer, ProductLayer


def fuse(graph: ir.Graph, layers: list[Layer], *, placed: bool = False) -> list[Layer]:
    """``layers`` with additions inside convolutions; each fused layer stands where its sum stood.

    ``placed``: only where the convolution needs what computes the other operand anyway. Elsewhere it would wait for a
    branch beside which it could run.
    """
    fused, flow = list(layers), graph.dataflow()
    for layer in layers:
        if isinstance(layer, EltwiseLayer) and isinstance(layer.op, ir.Eltwise) and _fusible(graph, layer):
            sources = [i for i, other in enumerate(fused) if _feeds_only(graph, flow, other, layer)]
            if placed:
                sources = [i for i in sources if _waits_anyway(graph, flow, fused[i], layer)]
            if sources:  # the one that runs last: its input lives on least
                conv = fused[sources[-1]]
                assert isinstance(conv, ConvLayer)
                fused[fused.index(layer)] = _joined(graph, conv, layer.op, broadcast=bool(layer.broadcast))
                del fused[sources[-1]]
    return fused


def _fusible(graph: ir.Graph, layer: EltwiseLayer) -> bool:
    different = len(layer.inputs) == 2 and layer.inputs[0] != layer.inputs[1]
    if layer.kind != "add" or not different or layer.requantise.table is not None:
        return False
    return not layer.broadcast or (layer.broadcast != "all" and graph.tensors[layer.inputs[1]].nhwc[0] == 1)


def _feeds_only(graph: ir.Graph, flow: nx.DiGraph, conv: Layer, add: EltwiseLayer) -> bool:
    if not isinstance(conv, ConvLayer) or not isinstance(conv.op, ir.Conv) or conv.addition:
        return False
    outside = any(port.tensor == conv.output for port in graph.outputs)
    read = add.inputs[:1] if add.broadcast else add.inputs
    return conv.output in read and not outside and list(flow.successors(conv.op.name)) == [add.op.name]


def _waits_anyway(graph: ir.Graph, flow: nx.DiGraph, conv: Layer, add: EltwiseLayer) -> bool:
    """Return whether the operand of ``add`` that ``conv`` does not compute exists before ``conv`` begins."""
    before = nx.ancestors(flow, conv.op.name)
    makers = [op.name for op in graph.ops if op.output in add.inputs and op.output != conv.output]
    return all(maker in before for maker in makers)


def _joined(graph: ir.Graph, conv: ConvLayer, op: ir.Eltwise, *, broadcast: bool) -> ConvLayer:
    own = op.inputs.index(conv.output)
    other = op.inputs[1 - own]
    factors = (op.ma, op.mb)
    data = graph.tensors[graph.roots()[other]].data if broadcast else None
    constant = None if data is None else data.reshape(-1)
    addition = Addition(op, conv.output, other, factors[own], factors[1 - own], broadcast, constant)
    read = [] if constant is not None else [other]
    return replace(
        conv, inputs=[*conv.inputs, *read], output=op.output, kind=f"{conv.kind}+add", addition=addition
    )  # fmt: skip


def fold_tables(graph: ir.Graph, layers: Sequence[Layer]) -> list[Layer]:
    """``layers`` with tables inside products, convolutions and element-wise layers; each stands where its table
    stood."""
    roots = graph.roots()
    outside = {roots[port.tensor] for port in graph.outputs}
    folded: list[Layer] = []
    for layer in layers:
        maker = _maker(layer, folded)
        if maker is None or roots[maker.output] in outside or _readers(maker, layers, roots) != [layer]:
            folded.append(layer)
            continue
        assert isinstance(layer.op, ir.Table)
        folded.remove(maker)
        folded.append(_with_table(maker, layer.op))
    return folded


def _maker(layer: Layer, before: Sequence[Layer]) -> ConvLayer | EltwiseLayer | ProductLayer | None:
    """Return the layer that makes what ``layer``, a table, reads, if it can take the table."""
    if not isinstance(layer.op, ir.Table):
        return None
    found = next((one for one in before if one.output == layer.inputs[0]), None)
    if isinstance(found, ConvLayer) and found.addition and found.requantise.table is not None:
        return None  # a convolution has one table at most
    return found if isinstance(found, ConvLayer | EltwiseLayer | ProductLayer) else None


def _with_table(maker: ConvLayer | EltwiseLayer | ProductLayer, table: ir.Table) -> Layer:
    """``maker`` with the table behind whatever it does."""
    if isinstance(maker, ConvLayer) and maker.addition:
        op = replace(maker.addition.op, requantise=_behind(maker.addition.op.requantise, table))
        made: Layer = replace(maker, addition=replace(maker.addition, op=op))
    else:
        made = replace(maker, requantise=_behind(maker.requantise, table))
    whole = replace(maker.op, nodes=[*maker.op.nodes, *table.nodes])
    kind = maker.kind if maker.kind.endswith("table") else f"{maker.kind}+table"
    return replace(made, op=whole, output=table.output, kind=kind)


def _behind(how: ir.Requantisation, table: ir.Table) -> ir.Requantisation:
    composed = table.table if how.table is None else table.table[how.table]
    return replace(how, table=np.ascontiguousarray(composed))


def _readers(maker: Layer, layers: Sequence[Layer], roots: dict[str, str]) -> list[Layer]:
    return [layer for layer in layers if roots[maker.output] in {roots[name] for name in layer.inputs}]
