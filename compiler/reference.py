"""NumPy reference of the IR: what every back end must compute, bit for bit."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from compiler.ir import Graph, Host, Operation, Port, TensorValue
from sim.host import run_host

Values = Mapping[str, npt.NDArray]


def run(graph: Graph, inputs: Values) -> dict[str, npt.NDArray]:
    """Model outputs by port name, for inputs by port name (ONNX shapes and dtypes), and numbers that are no inputs. See
    :func:`run_all`."""
    values = run_all(graph, inputs)
    return {port.name: from_memory(port, values[port.tensor], graph) for port in graph.outputs}


def run_all(graph: Graph, inputs: Values) -> dict[str, npt.NDArray]:
    """Return the value of every tensor, as it lies in memory."""
    values = {name: tensor.data for name, tensor in graph.tensors.items() if tensor.data is not None}
    for name, number in graph.numbers.items():  # if it is not said how many rows of a state are filled, all are
        values[name] = np.full(graph.tensors[name].shape, inputs.get(name, number.high))
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
    inputs = [TensorValue(graph.tensors[name], value_of(graph, values, name)) for name in op.inputs]
    return dict.fromkeys(op.results, op.compute(inputs, graph.tensors[op.output]))


def value_of(graph: Graph, values: Values, name: str) -> npt.NDArray:
    """Return a tensor's value: the constant it is, or that in ``values``."""
    data = graph.tensors[name].data
    return values[name] if data is None else data
