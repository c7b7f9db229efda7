"""The IR verifier, run between passes: what every pass may rely on."""

import math
from collections.abc import Iterator

import numpy as np

from compiler.ir import CompileError, Graph, Host, Operation, Tensor
from compiler.ir.graph import EIGHT_BIT

_DTYPES = (*EIGHT_BIT, "float32", "int32", "int64")


def verify(graph: Graph) -> None:
    """Check that names exist, order is topological, and shapes, dtypes and parameters of operators agree. Raises
    :class:`CompileError` naming graph, operator and tensor."""
    for problem in _problems(graph):
        raise CompileError(f"{graph.name}: internal error: {problem}")


def _problems(graph: Graph) -> Iterator[str]:
    for name, tensor in graph.tensors.items():
        for problem in _tensor(name, tensor):
            yield f"tensor {name!r}: {problem}"
    known = {name for name, tensor in graph.tensors.items() if tensor.data is not None} | graph.numbers.keys()
    for port in graph.inputs:
        yield from _port(graph, port, "input")
        known.add(port.tensor)
    names: set[str] = set()
    for op in graph.ops:
        where = f"{op.kind} {op.name!r}"
        if op.name in names:
            yield f"{where}: two operators have this name"
        names.add(op.name)
        for name in (*op.inputs, *op.results):
            if name not in graph.tensors:
                yield f"{where}: no tensor {name!r}"
                return
        for name in op.inputs:
            if name not in known:
                yield f"{where}: tensor {name!r} is read before anything computes it"
        for name in op.results:
            if name in known:
                yield f"{where}: tensor {name!r} is computed twice"
            known.add(name)
        for problem in _operator(op, graph):
            yield f"{where}: {problem}"
    for port in graph.outputs:
        yield from _port(graph, port, "output")
        if port.tensor not in known:
            yield f"output {port.name!r}: nothing computes tensor {port.tensor!r}"


def _tensor(name: str, tensor: Tensor) -> Iterator[str]:
    if tensor.name != name:
        yield f"is called {tensor.name!r}"
    if tensor.dtype not in _DTYPES:
        yield f"dtype {tensor.dtype}"
        return
    if any(size < 1 for size in tensor.shape):
        yield f"shape {tensor.shape}"
    if tensor.dtype in EIGHT_BIT:
        info = np.iinfo(tensor.dtype)
        if not info.min <= tensor.zero_point <= info.max:
            yield f"zero point {tensor.zero_point} is not {tensor.dtype}"
        if not (math.isfinite(tensor.scale) and tensor.scale > 0):
            yield f"scale {tensor.scale}"
    if tensor.data is not None and (tensor.data.shape != tensor.shape or tensor.data.dtype.name != tensor.dtype):
        yield f"data is {tensor.data.dtype} {tensor.data.shape}, not {tensor.dtype} {tensor.shape}"


def _port(graph: Graph, port, kind: str) -> Iterator[str]:
    tensor = graph.tensors.get(port.tensor)
    if tensor is None:
        yield f"{kind} {port.name!r}: no tensor {port.tensor!r}"
    elif math.prod(port.shape) != math.prod(tensor.shape):
        yield f"{kind} {port.name!r}: shape {port.shape} does not hold tensor {tensor.shape}"
    elif sorted(port.perm) != list(range(len(port.perm))):
        yield f"{kind} {port.name!r}: {port.perm} is not a permutation"


def _operator(op: Operation, graph: Graph) -> Iterator[str]:
    if isinstance(op, Host):
        if op.output not in op.outputs or not op.model:
            yield "its output is not among its outputs, or it has no model"
        return
    inputs, output = [graph.tensors[name] for name in op.inputs], graph.tensors[op.output]
    for tensor in (*inputs, output):
        if tensor.name not in graph.numbers and tensor.dtype not in EIGHT_BIT:
            yield f"tensor {tensor.name!r} is {tensor.dtype}; the accelerator reads and writes 8-bit tensors"
    yield from op.problems(inputs, output)
