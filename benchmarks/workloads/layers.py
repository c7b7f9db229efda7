"""A network as a list of layers with shapes: what MAC counts, layer tables and the ONNX export are derived from."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

Shape = tuple[int, ...]  #: of one sample: (channels, height, width), or (features,) after ``flatten``
Window = int | tuple[int, int]  #: height and width of a kernel, or what is on both sides of them; one number if equal


class Kind(Enum):
    """What a layer computes; the values are ONNX operator types."""

    CONV = "Conv"
    GEMM = "Gemm"
    ADD = "Add"
    CONCAT = "Concat"
    MAX_POOL = "MaxPool"
    AVERAGE_POOL = "AveragePool"  #: padding counts as zeros
    GLOBAL_AVERAGE_POOL = "GlobalAveragePool"
    FLATTEN = "Flatten"
    SHUFFLE = "Transpose"  #: of channels, between two reshapes


class Activation(Enum):
    """What follows the sum of a layer."""

    NONE = ""
    RELU = "Relu"
    RELU6 = "Clip"


@dataclass(frozen=True)
class NetworkLayer:
    """One layer. ``name`` is also the name of its output; ``sources`` are names of layers, or of the network's input.

    ``pads`` are top, left, bottom, right, as ONNX orders them. ``residual`` marks the last layer of a branch that is
    added to a shortcut.
    """

    name: str
    kind: Kind
    sources: tuple[str, ...]
    in_shape: Shape
    out_shape: Shape
    kernel: Window = 1
    stride: int = 1
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)
    groups: int = 1
    activation: Activation = Activation.NONE
    residual: bool = False

    @property
    def window(self) -> tuple[int, int]:
        """Return height and width of the kernel."""
        return both(self.kernel)

    @property
    def weight_shape(self) -> Shape:
        """Shape of the weights as ONNX has them: (cout, cin / groups, k, k), or (n, k) of a Gemm; () without any."""
        if self.kind is Kind.CONV:
            return (self.out_shape[0], self.in_shape[0] // self.groups, *self.window)
        return (self.out_shape[0], self.in_shape[0]) if self.kind is Kind.GEMM else ()

    @property
    def fan_in(self) -> int:
        """Products summed for one output."""
        return math.prod(self.weight_shape[1:])

    @property
    def macs(self) -> int:
        """Return the multiply-accumulates for one sample, padding counted as usual; additions and pooling count
        nothing."""
        return math.prod(self.out_shape) * self.fan_in if self.weight_shape else 0

    @property
    def is_depthwise(self) -> bool:
        """Return whether each channel is convolved on its own."""
        return self.kind is Kind.CONV and self.groups == self.in_shape[0] > 1


@dataclass
class Network:
    """Layers in topological order, appended by the methods below; each returns the new layer's name.

    The last layer is the output.
    """

    name: str
    in_shape: Shape
    input: str = "image"
    layers: list[NetworkLayer] = field(default_factory=list)
    _shapes: dict[str, Shape] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self._shapes[self.input] = self.in_shape

    @property
    def macs(self) -> int:
        """Return the multiply-accumulates for one sample."""
        return sum(layer.macs for layer in self.layers)

    def shape(self, name: str) -> Shape:
        """Return the shape of a layer's output, or of the input."""
        return self._shapes[name]

    def channels(self, name: str) -> int:
        """Return the channels of a layer's output, or of the input."""
        return self._shapes[name][0]

    def conv(
        self,
        name: str,
        source: str,
        cout: int,
        kernel: Window = 1,
        stride: int = 1,
        pad: Window = 0,
        groups: int = 1,
        activation: Activation = Activation.RELU,
        residual: bool = False,
    ) -> str:
        """Convolution with the same padding above and below, and on the left and on the right."""
        out = (cout, *self._slid(source, kernel, stride, pad))
        pads = (*both(pad), *both(pad))
        return self._append(name, Kind.CONV, (source,), out, kernel, stride, pads, groups, activation, residual)

    def average_pool(self, name: str, source: str, kernel: int, stride: int, pad: int = 0) -> str:
        """Return the mean over windows, in which padding counts as zeros."""
        out = (self.channels(source), *self._slid(source, kernel, stride, pad))
        return self._append(name, Kind.AVERAGE_POOL, (source,), out, kernel, stride, (pad,) * 4)

    def max_pool(self, name: str, source: str, kernel: int, stride: int, pad: int = 0, ceil: bool = False) -> str:
        """Maximum over windows. With ``ceil`` a last window may stand over the lower or right edge: explicit pads."""
        channels, *sizes = self._shapes[source]
        below, right = (pad + (-(size + 2 * pad - kernel) % stride if ceil else 0) for size in sizes)
        height = windows(pad + sizes[0] + below, kernel, stride)
        width = windows(pad + sizes[1] + right, kernel, stride)
        pads = (pad, pad, below, right)
        return self._append(name, Kind.MAX_POOL, (source,), (channels, height, width), kernel, stride, pads)

    def shuffle(self, name: str, source: str, groups: int) -> str:
        """Return the channels dealt out anew: the first of each of ``groups``, then the second of each, and so on."""
        return self._append(name, Kind.SHUFFLE, (source,), self._shapes[source], groups=groups)

    def global_average_pool(self, name: str, source: str) -> str:
        """Return the mean over height and width, which stay as dimensions of one."""
        return self._append(name, Kind.GLOBAL_AVERAGE_POOL, (source,), (self.channels(source), 1, 1))

    def add(self, name: str, first: str, second: str, activation: Activation = Activation.NONE) -> str:
        """Return the sum of two tensors of one shape."""
        shape = self._shapes[first]
        return self._append(name, Kind.ADD, (first, second), shape, activation=activation)

    def concat(self, name: str, *sources: str) -> str:
        """Concatenation of channels."""
        _, height, width = self._shapes[sources[0]]
        channels = sum(self.channels(source) for source in sources)
        return self._append(name, Kind.CONCAT, sources, (channels, height, width))

    def flatten(self, name: str, source: str) -> str:
        """Return all of a sample's values in one dimension."""
        return self._append(name, Kind.FLATTEN, (source,), (math.prod(self._shapes[source]),))

    def gemm(self, name: str, source: str, features: int, activation: Activation = Activation.NONE) -> str:
        """Fully connected layer of a flat tensor."""
        return self._append(name, Kind.GEMM, (source,), (features,), activation=activation)

    def _slid(self, source: str, kernel: Window, stride: int, pad: Window) -> Iterator[int]:
        """Yield how many windows there are in height and in width."""
        for size, length, beside in zip(self._shapes[source][1:], both(kernel), both(pad), strict=True):
            yield windows(size + 2 * beside, length, stride)

    def _append(
        self,
        name: str,
        kind: Kind,
        sources: tuple[str, ...],
        out_shape: Shape,
        kernel: Window = 1,
        stride: int = 1,
        pads: tuple[int, int, int, int] = (0, 0, 0, 0),
        groups: int = 1,
        activation: Activation = Activation.NONE,
        residual: bool = False,
    ) -> str:
        in_shape = self._shapes[sources[0]]
        self.layers.append(
            NetworkLayer(name, kind, sources, in_shape, out_shape, kernel, stride, pads, groups, activation, residual)
        )
        self._shapes[name] = out_shape
        return name


def windows(size: int, kernel: int, stride: int) -> int:
    """Return windows of ``kernel`` that fit into ``size`` (padding included), ``stride`` apart."""
    return (size - kernel) // stride + 1


def both(value: Window) -> tuple[int, int]:
    """Return what ``value`` says of height and of width."""
    return (value, value) if isinstance(value, int) else value
