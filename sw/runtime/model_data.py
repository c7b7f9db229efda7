"""Moves the data of a loaded model between host and device, and computes its steps on the CPU: small ONNX models inside
the image, and the cycles that they are charged.

What the user sees of a model are ONNX shapes and float32; tensors in device memory are another thing."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from hw.contract.bus import LINE_BYTES, HostCosts
from hw.image import Image, ImageError, NumberProblem, ParameterInfo, PortInfo, StepInfo, TensorInfo, parameter_values
from sim.host import DEFAULT_LIMITS, ContainedModels, HostLimits, HostModelError, HostStepError, HostWork, work_of
from sw.driver import Device, LoadedModel

_NUMBERS = "biufc"  #: kinds of arrays of numbers: the dtype of an input is compared with its port's


class InputError(ValueError):
    """Says that the model does not take an input; names the input, what was given and what is expected."""


def by_name(names: Sequence[str], inputs: npt.ArrayLike | Mapping[str, npt.ArrayLike]) -> dict[str, npt.ArrayLike]:
    """Return what was given for each input: a mapping as it is, anything else for the first of ``names``. Raises
    :class:`InputError` for a mapping that cannot be read."""
    if not isinstance(inputs, Mapping):
        return dict.fromkeys(names[:1], inputs)
    try:
        return dict(inputs)
    except Exception as error:  # of whatever mapping was given
        raise InputError(f"inputs cannot be read from this {type(inputs).__name__}: {error!r}") from error


def to_array(name: str, value: npt.ArrayLike) -> npt.NDArray:
    """Return the array of numbers that was given for the input called ``name``. Raises :class:`InputError` for what is
    none, such as lists of different lengths, strings or None."""
    try:
        array = np.asarray(value)
    except Exception as error:  # of NumPy, or of whatever object was given
        told = str(error).partition("\n")[0] or type(error).__name__
        raise InputError(f"input {name!r}: no array can be made of this {type(value).__name__}: {told}") from error
    if array.dtype.kind not in _NUMBERS:
        held = "None" if value is None else f"a {type(value).__name__} of dtype {array.dtype}"
        raise InputError(f"input {name!r}: {held} was given, expected an array of numbers")
    return array


def to_tensor(port: PortInfo, tensor: TensorInfo, value: npt.ArrayLike) -> npt.NDArray:
    """Return ``value`` as it is stored: checked, quantised if the port says so, transposed, of ``tensor``'s shape.

    Raises :class:`InputError` unless shape and dtype are exactly the port's, and for NaN where it is quantised.
    """
    array = to_array(port.name, value)
    if list(array.shape) != port.shape:
        several = array.ndim and list(array.shape[1:]) == port.shape[1:]
        entries = f": give {port.shape[0]} along the first axis, or compile for another batch" if several else ""
        raise InputError(f"input {port.name!r}: shape {list(array.shape)}, expected {port.shape}{entries}")
    if array.dtype != port.dtype:
        if array.dtype.kind == "f" and np.dtype(port.dtype).kind in "iu" and np.isnan(array).any():
            raise InputError(f"input {port.name!r}: holds NaN, which no {port.dtype} stands for")
        raise InputError(f"input {port.name!r}: dtype {array.dtype}, expected {port.dtype}; convert it with .astype()")
    if port.quantise:
        if np.isnan(array).any():
            raise InputError(f"input {port.name!r}: holds NaN, which no {tensor.dtype} stands for")
        array = quantise(array, tensor)
    if port.perm:
        array = array.transpose(port.perm)
    return np.ascontiguousarray(array).reshape(tensor.shape)


def from_tensor(port: PortInfo, tensor: TensorInfo, value: npt.NDArray) -> npt.NDArray:
    """Return the array that the user gets, the inverse of :func:`to_tensor`, for outputs."""
    if port.perm:
        value = value.transpose(port.perm)
    if port.quantise:
        value = dequantise(value, tensor)
    return np.ascontiguousarray(value, dtype=port.dtype).reshape(port.shape)


def quantise(value: npt.NDArray, tensor: TensorInfo) -> npt.NDArray:
    """Return ``saturate(round_half_even(value / scale) + zero_point)`` in float32, as ONNX QuantizeLinear."""
    limits = np.iinfo(tensor.dtype)
    scaled = np.rint(value.astype(np.float32) / np.float32(tensor.scale)) + np.float32(tensor.zero_point)
    return np.clip(scaled, limits.min, limits.max).astype(tensor.dtype)


def dequantise(value: npt.NDArray, tensor: TensorInfo) -> npt.NDArray[np.float32]:
    """Return ``(value - zero_point) * scale`` in float32, as ONNX DequantizeLinear."""
    return (value.astype(np.int32) - tensor.zero_point).astype(np.float32) * np.float32(tensor.scale)


class HostSteps:
    """Holds the host models of an image, ready to run in a process of their own within ``limits``. Raises
    ``ImageError`` if one is refused."""

    def __init__(self, image: Image, limits: HostLimits = DEFAULT_LIMITS) -> None:
        self._models, self._name = image.host_models, image.meta.model
        self._tensors = {t.name: (np.dtype(t.dtype), tuple(t.shape)) for t in image.meta.tensors}
        self._contained = _opened(image, limits) if image.host_models else None
        self._work: dict[int, HostWork] = {}

    def run(self, step: StepInfo, tensors: Mapping[str, npt.NDArray]) -> dict[str, npt.NDArray]:
        """Return the outputs of ``step`` by tensor name, from its input tensors by name. Raises ``HostStepError``,
        which names the model and the step."""
        assert self._contained is not None
        try:
            return self._contained.run(step.host, tensors, {name: self._tensors[name] for name in step.outputs})
        except HostStepError as error:
            where = f"model {self._name!r}, step on the CPU for {', '.join(map(repr, step.outputs))}"
            raise HostStepError(f"{where} ({step.reason}): {error}") from None

    def cycles(self, step: StepInfo, costs: HostCosts) -> int:
        """Return the cycles that ``step`` takes the CPU: its operators, and the cache lines of what it reads and
        writes."""
        if step.host not in self._work:
            self._work[step.host] = work_of(self._models[step.host])
        work = self._work[step.host]
        lines = sum(-(-self._size(name) // LINE_BYTES) for name in (*step.inputs, *step.outputs))
        operators = work.elements * costs.cpu_element + work.functions * costs.cpu_function + work.macs * costs.cpu_mac
        return costs.cpu_step + round(operators) + lines * costs.memory_line

    def _size(self, name: str) -> int:
        dtype, shape = self._tensors[name]
        return dtype.itemsize * math.prod(shape)


def _opened(image: Image, limits: HostLimits) -> ContainedModels:
    try:
        return ContainedModels(image.host_models, limits)
    except HostModelError as error:
        raise ImageError(f"image {image.meta.model!r}, host model {error.number}: {error}") from None


Arrays = dict[str, npt.NDArray]


class ModelData:
    """Knows the tensors of one loaded model, and has its host models ready to run."""

    def __init__(self, device: Device, model: LoadedModel) -> None:
        self.device, self.model = device, model
        self._tensors = {tensor.name: tensor for tensor in model.image.meta.tensors}
        self._host = HostSteps(model.image)
        self.state: int | None = (
            None  #: first byte of the memory that inferences find their state in, if not the model's
        )
        self.numbers: dict[str, int] = {}  #: of the inference whose inputs were stored

    @property
    def inputs(self) -> list[PortInfo]:
        """Return what an inference is given."""
        return self.model.image.meta.inputs

    @property
    def outputs(self) -> list[PortInfo]:
        """Return what an inference gives."""
        return self.model.image.meta.outputs

    def rows(self, info: ParameterInfo) -> int:
        """Return the number of ``info``: how many rows of the state an inference finds filled. What it is given is
        whole."""
        return info.high

    def read_tensor(self, name: str) -> npt.NDArray:
        """Return a tensor of the last inference as it is stored, by the image's name for it."""
        return self.model.read_tensor(name)

    def _by_name(self, inputs: npt.ArrayLike | Mapping[str, npt.ArrayLike]) -> dict[str, npt.ArrayLike]:
        names = [port.name for port in self.inputs]
        given = by_name(names, inputs)
        for name in [n for n in names if n not in given] + [n for n in given if n not in names]:
            problem = "is missing" if name in names else "does not exist"
            raise InputError(f"input {name!r} {problem}; model {self.model.name!r} takes {', '.join(map(repr, names))}")
        return given

    def store(self, inputs: npt.ArrayLike | Mapping[str, npt.ArrayLike]) -> None:
        """Convert inputs, given as for ``Session.run``, and write them to the device; raises :class:`InputError` as it
        does."""
        given = self._by_name(inputs)
        self._put({port.tensor: to_tensor(port, self._tensors[port.tensor], given[port.name]) for port in self.inputs})

    def _put(self, stored: Mapping[str, npt.NDArray]) -> None:
        self.numbers = self._numbers(stored)
        self.model.use_state(self.state)
        for name, value in stored.items():
            self.model.write_tensor(name, value)

    def _numbers(self, stored: Mapping[str, npt.NDArray]) -> dict[str, int]:
        """Return the numbers that the parameters of jobs follow from: inputs, and how many rows of a state are filled.
        Raises :class:`InputError` for one out of its range."""
        table, numbers = self.model.image.meta.parameters, dict[str, int]()
        tensors = {port.name: port.tensor for port in self.inputs}
        for info in table:
            tensor = tensors.get(info.name)
            numbers[info.name] = self.rows(info) if tensor is None else int(stored[tensor].reshape(-1)[0])
        try:
            parameter_values(table, numbers)
        except NumberProblem as problem:
            raise InputError(f"model {self.model.name!r}: {problem}") from None
        return numbers

    def fetch(self) -> Arrays:
        """Return the outputs of the last inference by name."""
        return {
            port.name: from_tensor(port, self._tensors[port.tensor], self.model.read_tensor(port.tensor))
            for port in self.outputs
        }

    def host_cycles(self, step: StepInfo) -> int:
        """Return the cycles that ``step`` takes the CPU, which are 0 for one that runs on the accelerator."""
        return self._host.cycles(step, self.device.bus.costs) if step.kind == "host" else 0

    def compute_host(self, step: StepInfo) -> Arrays:
        """Return outputs by name of a step that belongs to the CPU, from what it reads on the device."""
        return self._host.run(step, {name: self.model.read_tensor(name) for name in step.inputs})

    def store_host(self, values: Arrays) -> None:
        """Write outputs of a step on the CPU to the device."""
        for name, value in values.items():
            self.model.write_tensor(name, value)
