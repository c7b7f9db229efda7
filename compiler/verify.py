"""The IR verifier, run between passes: what every pass may rely on."""

import math
from collections.abc import Callable, Iterator

import numpy as np

from compiler import verify_rows
from compiler.ir import (
    CompileError,
    Concat,
    Conv,
    Eltwise,
    Graph,
    Host,
    LayerNorm,
    Operation,
    Pad,
    Permute,
    Pool,
    Product,
    Requantisation,
    Reshape,
    Slice,
    Softmax,
    Table,
    Tensor,
)

_EIGHT_BIT = ("int8", "uint8")
_DTYPES = (*_EIGHT_BIT, "float32", "int32", "int64")
_MULTIPLIER = 1 << 22


def verify(graph: Graph) -> None:
    """Check that names exist, order is topological, and shapes, dtypes and parameters of operators agree. Raises
    :class:`CompileError` naming graph, operator and tensor."""
    for problem in _problems(graph):
        raise CompileError(f"{graph.name}: internal error: {problem}")


def _problems(graph: Graph) -> Iterator[str]:
    for name, tensor in graph.tensors.items():
        for problem in _tensor(name, tensor):
            yield f"tensor {name!r}: {problem}"
    known = {name for name, tensor in graph.tensors.items() if tensor.data is not None}
    for port in graph.inputs:
        yield from _port(graph, port, "input")
        known.add(port.tensor)
    names: set[str] = set()
    for op in graph.ops:
        where = f"{op.kind} {op.name!r}"
        if op.name in names:
            yield f"{where}: two operators have this name"
        names.add(op.name)
        made = op.outputs if isinstance(op, Host) else [op.output]
        for name in (*op.inputs, *made):
            if name not in graph.tensors:
                yield f"{where}: no tensor {name!r}"
                return
        for name in op.inputs:
            if name not in known:
                yield f"{where}: tensor {name!r} is read before anything computes it"
        for name in made:
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
    if tensor.dtype in _EIGHT_BIT:
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
        if tensor.dtype not in _EIGHT_BIT:
            yield f"tensor {tensor.name!r} is {tensor.dtype}; the accelerator reads and writes 8-bit tensors"
    check = _CHECKS.get(type(op))
    if check is None:
        yield "unknown kind of operator"
        return
    if not isinstance(op, Concat) and len(inputs) != (2 if isinstance(op, Eltwise | Product) else 1):
        yield f"{len(inputs)} inputs"
        return
    yield from check(op, inputs, output)


def _requantise(how: Requantisation, output: Tensor, channels: int) -> Iterator[str]:
    info = np.iinfo(output.dtype)
    if how.scale.dtype != np.float32 or how.scale.shape not in ((1,), (channels,)):
        yield f"scale is {how.scale.dtype} {how.scale.shape}, not float32 (1,) or ({channels},)"
    if not np.isfinite(how.scale).all():
        yield "a scale is not finite"
    if not info.min <= how.lo <= how.hi <= info.max:
        yield f"clamp [{how.lo}, {how.hi}] is not within {output.dtype}"
    if not -(2**15) <= how.zero_point < 2**15:
        yield f"zero point {how.zero_point} is not int16"
    if how.table is not None and (how.table.shape != (256,) or how.table.dtype != np.uint8):
        yield "table is not 256 bytes"


def _windowed(x: Tensor, output: Tensor, kernel, strides, pads, dilations) -> Iterator[str]:
    n, h, w, _ = x.nhwc
    if min(strides) < 1 or min(dilations) < 1 or min(kernel) < 1 or min(pads) < 0:
        yield f"kernel {kernel}, strides {strides}, dilations {dilations} or pads {pads}"
        return
    sizes = [
        (size + pads[axis] + pads[axis + 2] - (kernel[axis] - 1) * dilations[axis] - 1) // strides[axis] + 1
        for axis, size in enumerate((h, w))
    ]
    if output.nhwc[:3] != (n, *sizes):
        yield f"output {output.nhwc}, expected {(n, *sizes)} and channels"


def _conv(op: Conv, inputs: list[Tensor], output: Tensor) -> Iterator[str]:
    x = inputs[0]
    channels, kh, kw, depth = op.weights.shape
    if op.weights.dtype.name not in _EIGHT_BIT:
        yield f"weights are {op.weights.dtype}"
        return
    info = np.iinfo(op.weights.dtype)
    if not info.min <= op.weight_zero_point <= info.max:
        yield f"weight zero point {op.weight_zero_point} is not {op.weights.dtype}"
    if depth * op.groups != x.nhwc[3] or channels % op.groups or output.nhwc[3] != channels:
        yield f"weights {op.weights.shape} in {op.groups} groups do not map {x.nhwc} to {output.nhwc}"
    if op.bias.shape != (channels,) or op.bias.dtype != np.int32:
        yield f"bias is {op.bias.dtype} {op.bias.shape}"
    yield from _requantise(op.requantise, output, channels)
    yield from _windowed(x, output, (kh, kw), op.strides, op.pads, op.dilations)


def _eltwise(op: Eltwise, inputs: list[Tensor], output: Tensor) -> Iterator[str]:
    a, b = inputs
    if op.kind_ not in ("add", "mul"):
        yield f"kind {op.kind_!r}"
    if a.nhwc != output.nhwc:
        yield f"output {output.shape}, expected {a.shape}"
    n, _, _, c = a.nhwc
    if b.nhwc not in (a.nhwc, (n, 1, 1, c), (1, 1, 1, c)) and math.prod(b.shape) != 1:
        yield f"second operand {b.shape} is not {a.shape} nor broadcast over pixels"
    if b.nhwc == (1, 1, 1, c) and n > 1 and c > 1:
        yield f"second operand {b.shape} does not have the batch of {a.shape}"
    if max(abs(op.ma), abs(op.mb)) >= _MULTIPLIER:
        yield f"multipliers {op.ma}, {op.mb} reach 2^22"
    if not -(2**31) <= op.bias < 2**31:
        yield f"bias {op.bias} is not int32"
    yield from _requantise(op.requantise, output, 1)


def _pool(op: Pool, inputs: list[Tensor], output: Tensor) -> Iterator[str]:
    if op.kind_ not in ("max", "avg"):
        yield f"kind {op.kind_!r}"
    if output.nhwc[3] != inputs[0].nhwc[3]:
        yield f"{output.nhwc[3]} channels, expected {inputs[0].nhwc[3]}"
    if op.pads[0] >= op.kernel[0] or op.pads[1] >= op.kernel[1]:
        yield f"pads {op.pads} hold a whole window {op.kernel}"
    if op.bias and op.kind_ == "max":
        yield "a bias on a maximum"
    yield from _requantise(op.requantise, output, 1)
    yield from _windowed(inputs[0], output, op.kernel, op.strides, op.pads, (1, 1))


def _table(op: Table, inputs: list[Tensor], output: Tensor) -> Iterator[str]:
    if op.table.shape != (256,) or op.table.dtype != np.uint8:
        yield f"table is {op.table.dtype} {op.table.shape}, not 256 bytes"
    if inputs[0].shape != output.shape:
        yield f"output {output.shape}, expected {inputs[0].shape}"


def _concat(op: Concat, inputs: list[Tensor], output: Tensor) -> Iterator[str]:
    if not 0 <= op.axis < len(output.shape):
        yield f"axis {op.axis}"
        return
    wanted = list(inputs[0].shape)
    wanted[op.axis] = sum(tensor.shape[op.axis] for tensor in inputs)
    if tuple(wanted) != output.shape:
        yield f"output {output.shape}, expected {tuple(wanted)}"
    for tensor in inputs:
        if (tensor.dtype, tensor.scale, tensor.zero_point) != (output.dtype, output.scale, output.zero_point):
            yield f"input {tensor.name!r} is not quantised like the output"


def _slice(op: Slice, inputs: list[Tensor], output: Tensor) -> Iterator[str]:
    shape = inputs[0].shape
    if not 0 <= op.axis < len(shape) or len(output.shape) != len(shape):
        yield f"axis {op.axis} of {shape}"
        return
    end = op.first + output.shape[op.axis]
    wanted = (*shape[: op.axis], output.shape[op.axis], *shape[op.axis + 1 :])
    if not 0 <= op.first < end <= shape[op.axis] or output.shape != wanted:
        yield f"{op.first} to {end} of {shape} along axis {op.axis} is not {output.shape}"


def _permute(op: Permute, inputs: list[Tensor], output: Tensor) -> Iterator[str]:
    shape = inputs[0].shape
    if sorted(op.perm) != list(range(len(shape))):
        yield f"{op.perm} does not permute {shape}"
    elif tuple(shape[axis] for axis in op.perm) != output.shape:
        yield f"output {output.shape}, expected {tuple(shape[axis] for axis in op.perm)}"


def _reshape(op: Reshape, inputs: list[Tensor], output: Tensor) -> Iterator[str]:
    if math.prod(inputs[0].shape) != math.prod(output.shape):
        yield f"{inputs[0].shape} does not hold as many elements as {output.shape}"


def _pad(op: Pad, inputs: list[Tensor], output: Tensor) -> Iterator[str]:
    n, h, w, c = inputs[0].nhwc
    top, left, bottom, right = op.pads
    if min(op.pads) < 0 or not 0 <= op.value <= 255:
        yield f"pads {op.pads} or value {op.value}"
    if output.nhwc != (n, h + top + bottom, w + left + right, c):
        yield f"output {output.shape} does not fit pads {op.pads} of {inputs[0].shape}"


_CHECKS: dict[type[Operation], Callable[..., Iterator[str]]] = {
    Conv: _conv,
    Eltwise: _eltwise,
    Pool: _pool,
    Table: _table,
    Concat: _concat,
    Permute: _permute,
    Slice: _slice,
    Reshape: _reshape,
    Pad: _pad,
    Product: verify_rows.product,
    Softmax: verify_rows.softmax,
    LayerNorm: verify_rows.layer_norm,
}
