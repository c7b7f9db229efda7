"""Single convolutions: int8 [1, cin, h, w] → int8 [1, cout, oh, ow], with bias."""

import re
from dataclasses import dataclass

import onnx

from benchmarks.workloads import qdq
from benchmarks.workloads.layers import Kind, NetworkLayer, Shape, windows

_NAME = re.compile(
    r"conv_(?P<cin>\d+)x(?P<height>\d+)x(?P<width>\d+)_(?P<cout>\d+)_k(?P<kernel>\d+)_s(?P<stride>\d+)_p(?P<pad>\d+)"
    r"(_g(?P<groups>\d+))?"
)


@dataclass(frozen=True)
class ConvShape:
    """A convolution with a square kernel and the same padding on all four sides."""

    cin: int
    height: int
    width: int
    cout: int
    kernel: int
    stride: int
    pad: int
    groups: int = 1

    @property
    def name(self) -> str:
        """Return the name of the workload, such as ``conv_64x56x56_64_k3_s1_p1`` (input shape, output channels, kernel,
        stride, padding) and ``_g64`` at the end for groups."""
        name = f"conv_{self.cin}x{self.height}x{self.width}_{self.cout}_k{self.kernel}_s{self.stride}_p{self.pad}"
        return name if self.groups == 1 else f"{name}_g{self.groups}"

    @property
    def in_shape(self) -> Shape:
        """Return the shape of the activations."""
        return (1, self.cin, self.height, self.width)

    @property
    def out_shape(self) -> Shape:
        """Return the shape of the result."""
        sizes = (windows(size + 2 * self.pad, self.kernel, self.stride) for size in (self.height, self.width))
        return (1, self.cout, *sizes)

    @property
    def macs(self) -> int:
        """Return the multiply-accumulates, padding counted as usual."""
        _, cout, height, width = self.out_shape
        return cout * height * width * self.cin // self.groups * self.kernel**2

    def problem(self) -> str | None:
        """Return what is wrong with the numbers, if anything."""
        if min(self.cin, self.height, self.width, self.cout, self.kernel, self.stride, self.groups) < 1:
            return "all numbers but the padding must be at least 1"
        if self.cin % self.groups or self.cout % self.groups:
            return f"{self.groups} groups do not divide {self.cin} input and {self.cout} output channels"
        if self.kernel > min(self.height, self.width) + 2 * self.pad:
            return f"the {self.kernel}x{self.kernel} kernel is larger than the padded input"
        return None


def parse(name: str) -> ConvShape | None:
    """Return the convolution that a workload's name stands for; None for other names."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    return ConvShape(**{key: int(value) for key, value in match.groupdict().items() if value is not None})


def of_layer(layer: NetworkLayer) -> ConvShape:
    """Return the convolution of a network's layer."""
    if layer.kind is not Kind.CONV:
        raise ValueError(f"{layer.name} is a {layer.kind.value}, not a convolution")
    if isinstance(layer.kernel, tuple):
        raise ValueError(f"{layer.name} has a {layer.kernel[0]}x{layer.kernel[1]} kernel, which is not square")
    cin, height, width = layer.in_shape
    return ConvShape(cin, height, width, layer.out_shape[0], layer.kernel, layer.stride, layer.pads[0], layer.groups)


def model(conv: ConvShape, seed: int) -> onnx.ModelProto:
    """QDQ model of one Conv, weights quantised per output channel."""
    attributes = {
        "kernel_shape": [conv.kernel] * 2,
        "strides": [conv.stride] * 2,
        "pads": [conv.pad] * 4,
        "group": conv.groups,
    }
    return qdq.model(
        qdq.QdqOperator(
            conv.name,
            "Conv",
            conv.in_shape,
            conv.out_shape,
            weight_shape=(conv.cout, conv.cin // conv.groups, conv.kernel, conv.kernel),
            channel_axis=0,
            has_bias=True,
            attributes=attributes,
        ),
        seed,
    )
