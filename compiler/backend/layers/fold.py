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
    return replace(made, op=whole, output=table.output, kind=f"{maker.kind}+table")


def _behind(how: ir.Requantisation, table: ir.Table) -> ir.Requantisation:
    composed = table.table if how.table is None else table.table[how.table]
    return replace(how, table=np.ascontiguousarray(composed))


def _readers(maker: Layer, layers: Sequence[Layer], roots: dict[str, str]) -> list[Layer]:
    return [layer for layer in layers if roots[maker.output] in {roots[name] for name in layer.inputs}]
