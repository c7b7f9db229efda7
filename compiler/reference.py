"""NumPy reference of the IR: what every back end must compute, bit for bit.

Accumulations are exact: products of 9-bit operands are summed in float64, which holds integers below 2^53.
"""

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from compiler.ir import (
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
    Port,
    Product,
    Requantisation,
    Reshape,
    Slice,
    Softmax,
    Table,
)
from hw.contract.row_function import row_factor
from sim.host import run_host

Values = Mapping[str, npt.NDArray]


def run(graph: Graph, inputs: Values) -> dict[str, npt.NDArray]:
    """Model outputs by port name, for inputs by port name (ONNX shapes and dtypes). See :func:`run_all`."""
    values = run_all(graph, inputs)
    return {port.name: from_memory(port, values[port.tensor], graph) for port in graph.outputs}


def run_all(graph: Graph, inputs: Values) -> dict[str, npt.NDArray]:
    """Return the value of every tensor, as it lies in memory."""
    values = {name: tensor.data for name, tensor in graph.tensors.items() if tensor.data is not None}
    for port in graph.inputs:
        values[port.tensor] = to_memory(port, inputs[port.name], graph)
    for op in graph.ops:
        values.update(run_op(op, graph, values))
    return values


def to_memory(port: Port, value: npt.NDArray, graph: Graph) -> npt.NDArray:
    """A model input as its tensor holds it. ValueError if shape or dtype differ from the port's."""
    value = np.asarray(value)
    if value.shape != port.shape or value.dtype.name != port.dtype:
        raise ValueError(
            f"input {port.name!r} must be {port.dtype} {list(port.shape)}, not {value.dtype.name} {list(value.shape)}"
        )
    tensor = graph.tensors[port.tensor]
    if port.quantise:
        info = np.iinfo(tensor.dtype)
        stored = np.rint(value / np.float32(tensor.scale)) + tensor.zero_point
        value = np.clip(stored, info.min, info.max).astype(tensor.dtype)
    return np.ascontiguousarray(value.transpose(port.perm)).reshape(tensor.shape)


def from_memory(port: Port, value: npt.NDArray, graph: Graph) -> npt.NDArray:
    """Return a model output as the user sees it."""
    tensor = graph.tensors[port.tensor]
    value = np.ascontiguousarray(value.transpose(port.perm)) if port.perm else value
    if port.quantise:
        value = (value.astype(np.int32) - tensor.zero_point).astype(np.float32) * np.float32(tensor.scale)
    return value.reshape(port.shape)


def run_op(op: Operation, graph: Graph, values: Values) -> dict[str, npt.NDArray]:
    """Return the results of one operator by tensor name; ``values`` holds its inputs (constants need not be there) as
    they lie in memory."""
    if isinstance(op, Host):
        return run_host(op.model, {name: values[name] for name in op.inputs})
    result = _RUN[type(op)](op, graph, values)
    tensor = graph.tensors[op.output]
    return {op.output: np.ascontiguousarray(result.reshape(tensor.shape))}


def _centred(graph: Graph, values: Values, name: str) -> npt.NDArray[np.int64]:
    """Return a tensor minus its zero point, as (N, H, W, C)."""
    tensor = graph.tensors[name]
    return value_of(graph, values, name).reshape(tensor.nhwc).astype(np.int64) - tensor.zero_point


def value_of(graph: Graph, values: Values, name: str) -> npt.NDArray:
    """Return a tensor's value: the constant it is, or that in ``values``."""
    data = graph.tensors[name].data
    return values[name] if data is None else data


def _requantised(total: npt.NDArray, how: Requantisation, dtype: str, scale: npt.NDArray | None = None) -> npt.NDArray:
    product = total.astype(np.float32) * (how.scale if scale is None else scale)
    result = np.clip(np.rint(product) + np.float32(how.zero_point), how.lo, how.hi).astype(dtype)
    return result if how.table is None else how.table[result.view(np.uint8)].view(dtype)


def _conv(op: Conv, graph: Graph, values: Values) -> npt.NDArray:
    x = _centred(graph, values, op.inputs[0]).astype(np.float64)
    weights = op.weights.astype(np.float64) - op.weight_zero_point
    top, left, bottom, right = op.pads
    x = np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)))
    n, height, width = graph.tensors[op.output].nhwc[:3]
    channels, kh, kw, depth = weights.shape
    groups, per = op.groups, channels // op.groups
    # One product per kernel position keeps memory small and lets BLAS do the work.
    weights = weights.reshape(groups, per, kh, kw, depth).transpose(2, 3, 0, 4, 1)
    total = np.zeros((groups, n * height * width, per))
    (sh, sw), (dh, dw) = op.strides, op.dilations
    for i in range(kh):
        for j in range(kw):
            rows = slice(i * dh, i * dh + (height - 1) * sh + 1, sh)
            columns = slice(j * dw, j * dw + (width - 1) * sw + 1, sw)
            tap = x[:, rows, columns].reshape(-1, groups, depth)
            if depth == 1:
                total += tap.transpose(1, 0, 2) * weights[i, j]
            else:
                total += np.matmul(tap.transpose(1, 0, 2), weights[i, j])
    total = total.transpose(1, 0, 2).reshape(n, height, width, channels) + op.bias
    return _requantised(total, op.requantise, graph.tensors[op.output].dtype)


def _eltwise(op: Eltwise, graph: Graph, values: Values) -> npt.NDArray:
    a = _centred(graph, values, op.inputs[0])
    b = _centred(graph, values, op.inputs[1])
    total = a * op.ma + b * op.mb if op.kind_ == "add" else a * b
    return _requantised(total + op.bias, op.requantise, graph.tensors[op.output].dtype)


def _windows(op: Pool, x: npt.NDArray, fill: float, size: tuple[int, int]) -> list[npt.NDArray]:
    """Return the values under each kernel position for all output pixels."""
    top, left, bottom, right = op.pads
    x = np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=fill)
    (kh, kw), (sh, sw) = op.kernel, op.strides
    return [
        x[:, i : i + (size[0] - 1) * sh + 1 : sh, j : j + (size[1] - 1) * sw + 1 : sw]
        for i in range(kh)
        for j in range(kw)
    ]


def _pool(op: Pool, graph: Graph, values: Values) -> npt.NDArray:
    x = _centred(graph, values, op.inputs[0])
    output = graph.tensors[op.output]
    size = output.nhwc[1:3]
    if op.kind_ == "max":
        total = np.maximum.reduce(_windows(op, x, -(2**15), size))
        return _requantised(total, op.requantise, output.dtype)
    counted = np.ones((1, *x.shape[1:3], 1), np.int64)
    count = np.add.reduce(_windows(op, counted, int(op.count_include_pad), size))
    total = np.add.reduce(_windows(op, x, 0, size)) + op.bias * count
    scale = op.requantise.scale / count.astype(np.float32)
    return _requantised(total, op.requantise, output.dtype, scale)


def window_mean(op: Pool, x: npt.NDArray[np.float64], size: tuple[int, int]) -> npt.NDArray[np.float64]:
    """Exact means of real (N, H, W, C) ``x`` over the pool's windows, for outputs of ``size`` pixels."""
    counted = np.ones((1, *x.shape[1:3], 1), np.int64)
    count = np.add.reduce(_windows(op, counted, int(op.count_include_pad), size))
    return np.add.reduce(_windows(op, x, 0, size)) / count


def _product(op: Product, graph: Graph, values: Values) -> npt.NDArray:
    output = graph.tensors[op.output]
    a, b = (_heads(graph, values, name, op, joined) for name, joined in zip(op.inputs, op.joined, strict=False))
    total = a @ (b.transpose(0, 2, 1) if op.transposed else b)
    if op.joined[2]:
        total = total.reshape(-1, op.heads, *total.shape[1:]).transpose(0, 2, 1, 3)
    return _requantised(total, op.requantise, output.dtype)


def _heads(graph: Graph, values: Values, name: str, op: Product, joined: bool) -> npt.NDArray[np.float64]:
    """Return an operand minus its zero point as (N * heads, rows, columns)."""
    centred = _centred(graph, values, name)
    images, _, rows, columns = centred.shape
    if joined:
        split = centred.reshape(images, rows, op.all_heads, columns // op.all_heads)
        split = split[:, :, op.first : op.first + op.heads].transpose(0, 2, 1, 3)
        centred = split.reshape(images * op.heads, 1, rows, columns // op.all_heads)
    return centred[:, 0].astype(np.float64)


def _softmax(op: Softmax, graph: Graph, values: Values) -> npt.NDArray:
    x = _centred(graph, values, op.inputs[0])
    place = x.max(axis=-1, keepdims=True) - x
    factor = row_factor(op.sums.astype(np.int64)[place].sum(axis=-1, keepdims=True), False, op.exponent)
    result = np.rint(op.values[place].astype(np.float32) * factor) + np.float32(op.zero_point)
    return np.clip(result, op.lo, op.hi).astype(graph.tensors[op.output].dtype)


def _layer_norm(op: LayerNorm, graph: Graph, values: Values) -> npt.NDArray:
    x = _centred(graph, values, op.inputs[0])
    total, squares = x.sum(axis=-1, keepdims=True), (x * x).sum(axis=-1, keepdims=True)
    factor = row_factor(x.shape[-1] * squares - total * total + op.epsilon, True, op.exponent)
    normal = np.rint((x.shape[-1] * x - total).astype(np.float32) * factor)
    normal = np.clip(normal, -(1 << 23), (1 << 23) - 1).astype(np.int64)
    return _requantised(normal + op.bias, op.requantise, graph.tensors[op.output].dtype)


def _table(op: Table, graph: Graph, values: Values) -> npt.NDArray:
    x = np.ascontiguousarray(values[op.inputs[0]])
    return op.table[x.view(np.uint8)].view(graph.tensors[op.output].dtype)


def _concat(op: Concat, graph: Graph, values: Values) -> npt.NDArray:
    parts = [value_of(graph, values, name).reshape(graph.tensors[name].shape) for name in op.inputs]
    return np.concatenate(parts, op.axis)


def _slice(op: Slice, graph: Graph, values: Values) -> npt.NDArray:
    count = graph.tensors[op.output].shape[op.axis]
    x = value_of(graph, values, op.inputs[0]).reshape(graph.tensors[op.inputs[0]].shape)
    return np.take(x, range(op.first, op.first + count), axis=op.axis)


def _permute(op: Permute, graph: Graph, values: Values) -> npt.NDArray:
    return values[op.inputs[0]].transpose(op.perm)


def _reshape(op: Reshape, graph: Graph, values: Values) -> npt.NDArray:
    return values[op.inputs[0]]


def _pad(op: Pad, graph: Graph, values: Values) -> npt.NDArray:
    top, left, bottom, right = op.pads
    x = values[op.inputs[0]].reshape(graph.tensors[op.inputs[0]].nhwc)
    fill = np.array([op.value], np.uint8).view(x.dtype)[0]
    return np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=fill)


_RUN: dict[type[Operation], Callable[..., npt.NDArray]] = {
    Conv: _conv,
    Eltwise: _eltwise,
    Pool: _pool,
    Product: _product,
    Softmax: _softmax,
    LayerNorm: _layer_norm,
    Table: _table,
    Concat: _concat,
    Permute: _permute,
    Slice: _slice,
    Reshape: _reshape,
    Pad: _pad,
}
