"""Queries in groups that share the keys and values of a head: exporters repeat those for each query of a group.

A product with a repeated matrix is one with more rows: the queries of a group stand below each other where they lie one
behind the other in memory. Keys and values are read where they are, once.
"""

import math
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from compiler.ir import Graph, Operation, Permute, Product, Repeat, Reshape


def share_heads(graph: Graph) -> None:
    """Multiply with matrices once that products of ``graph`` read repeated."""
    makers = {op.output: op for op in graph.ops}
    for product in [op for op in graph.ops if isinstance(op, Product)]:
        source = _repeated(makers, product.inputs[1])
        if source is None or product.joined[1] or product.heads < 2 or product.of:
            continue
        rows = graph.tensors[product.inputs[0]].shape[1]
        if rows > 1 and (product.joined[0] or product.joined[2]):
            continue
        whole = graph.tensors[source]
        read = _read(graph, makers, product.inputs[1], source)
        for heads in range(1, product.heads):
            joined = None if product.heads % heads else _joined(read, heads)
            if joined is not None:
                _share(graph, product, whole.name, heads, rows, joined=joined)
                break


def _repeated(makers: dict[str, Operation], name: str) -> str | None:
    """Return the tensor that ``name`` repeats, in another order maybe; None if it repeats none."""
    while isinstance(op := makers.get(name), Reshape | Permute):
        name = op.inputs[0]
    return op.inputs[0] if isinstance(op, Repeat) else None


def _read(graph: Graph, makers: dict[str, Operation], name: str, source: str) -> npt.NDArray[np.int64]:
    """Return which element of ``source`` is where in ``name``."""
    if name == source:
        shape = graph.tensors[name].shape
        return np.arange(math.prod(shape)).reshape(shape)
    op = makers[name]
    before = _read(graph, makers, op.inputs[0], source)
    if isinstance(op, Permute):
        before = before.transpose(op.perm)
    elif isinstance(op, Repeat):
        for axis, factor in enumerate(op.factors):
            before = before.repeat(factor, axis)
    return before.reshape(graph.tensors[name].shape)


def _joined(read: npt.NDArray[np.int64], heads: int) -> bool | None:
    """Return whether the ``heads`` matrices that are read lie side by side, or one behind the other; None if others
    are read, or lie otherwise."""
    count, height, width = read.shape
    groups = read.reshape(heads, count // heads, height, width)
    if not (groups == groups[:, :1]).all():
        return None
    once = np.arange(heads * height * width)
    if (groups[:, 0] == once.reshape(height, heads, width).transpose(1, 0, 2)).all():
        return True
    return False if (groups[:, 0] == once.reshape(heads, height, width)).all() else None


def _share(graph: Graph, product: Product, source: str, heads: int, rows: int, *, joined: bool) -> None:
    """Turn ``product`` into one of ``heads`` matrices of ``source``."""
    a, b, y = (graph.tensors[name] for name in (*product.inputs, product.output))
    count, height, width = b.shape
    below = count // heads * rows
    tall = _reshaped(graph, product, a.name, (heads, below, a.size // heads // below))
    shared = (1, height, heads * width) if joined else (heads, height, width)
    matrices = _reshaped(graph, product, source, shared)
    columns = height if product.transposed else width
    name = f"{y.name}:shared"
    graph.tensors[name] = replace(y, name=name, shape=(heads, below, columns), onnx_name="", perm=(), view=())
    graph.ops.insert(graph.ops.index(product) + 1, Reshape(f"{product.name}:apart", [name], y.name))
    product.inputs, product.output, product.heads = [tall, matrices], name, heads
    product.joined = (False, joined, False)


def _reshaped(graph: Graph, product: Product, name: str, shape: tuple[int, ...]) -> str:
    """Return the tensor ``name`` as one of ``shape`` that ``product`` reads."""
    made = f"{name}:for:{product.name}"
    graph.tensors[made] = replace(graph.tensors[name], name=made, shape=shape, data=None)
    graph.ops.insert(graph.ops.index(product), Reshape(made, [name], made))
    return made
