"""Folding of tables: a function of bytes moves into the layer that makes them.

The vector unit passes results through a table on their way to LV1, so a table that is the only reader of a layer costs
a load of 256 bytes instead of a layer of its own.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from compiler import ir
from compiler.backend.layers.layer import ConvLayer, EltwiseLayer, Layer, ProductLayer


def fold_tables(graph: ir.Graph, layers: Sequence[Layer]) -> list[Layer]:
    """``layers`` with tables inside products, convolutions and element-wise layers; each stands where its table
    stood."""
    outside = {port.tensor for port in graph.outputs}
    roots = graph.roots()
    folded: list[Layer] = []
    for layer in layers:
        maker = _maker(layer, folded)
        if maker is None or maker.output in outside or _readers(maker, layers, roots) != [layer]:
            folded.append(layer)
            continue
        assert isinstance(layer.op, ir.Table)
        table = layer.op.table if maker.requantise.table is None else layer.op.table[maker.requantise.table]
        made = replace(
            maker, op=replace(maker.op, nodes=[*maker.op.nodes, *layer.op.nodes]), output=layer.output,
            kind=f"{maker.kind}+table", requantise=replace(maker.requantise, table=np.ascontiguousarray(table)),
        )  # fmt: skip
        folded[folded.index(maker)] = made
        folded.append(folded.pop(folded.index(made)))
    return folded


def _maker(layer: Layer, before: Sequence[Layer]) -> ConvLayer | EltwiseLayer | ProductLayer | None:
    """The layer that makes what ``layer``, a table, reads, if it can take the table."""
    if not isinstance(layer.op, ir.Table):
        return None
    found = next((one for one in before if one.output == layer.inputs[0]), None)
    if isinstance(found, ConvLayer):
        return None if found.addition else found
    return found if isinstance(found, EltwiseLayer | ProductLayer) else None


def _readers(maker: Layer, layers: Sequence[Layer], roots: dict[str, str]) -> list[Layer]:
    return [layer for layer in layers if roots[maker.output] in {roots[name] for name in layer.inputs}]
