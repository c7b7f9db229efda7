"""Which single layers are measured, derived from the networks they come from."""

from collections.abc import Iterable
from dataclasses import dataclass

from benchmarks.workloads import networks
from benchmarks.workloads.conv import ConvShape, of_layer
from benchmarks.workloads.gemm import Gemm
from benchmarks.workloads.layers import Kind, NetworkLayer

LARGE_LAYER_MACS = 10_000_000

GEMMS = (Gemm(1024, 1024, 1024), Gemm(512, 512, 512))


@dataclass(frozen=True)
class ConvolutionCase:
    """A distinct convolution and the layers of the network that have its shape."""

    conv: ConvShape
    layers: tuple[str, ...]

    @property
    def count(self) -> int:
        """Return how often the network contains it."""
        return len(self.layers)

    @property
    def macs(self) -> int:
        """Return the multiply-accumulates of all its occurrences."""
        return self.count * self.conv.macs


def resnet50_convolutions() -> list[ConvolutionCase]:
    """Return the distinct 1×1 and 3×3 convolutions of ResNet-50 with at least 10 MMAC, in order of first use."""
    layers = networks.resnet50().layers
    return _distinct(layer for layer in layers if layer.kernel in (1, 3) and layer.macs >= LARGE_LAYER_MACS)


def first_layers() -> list[ConvolutionCase]:
    """Return the 7×7 stride 2 convolution of three channels that ResNet-50 begins with."""
    return _distinct(networks.resnet50().layers[:1])


def depthwise_convolutions(stride: int | None = None) -> list[ConvolutionCase]:
    """Return the distinct depthwise convolutions of MobileNetV2 in order of first use; of one stride, or of both."""
    layers = (layer for layer in networks.mobilenetv2().layers if layer.is_depthwise)
    return _distinct(layer for layer in layers if stride in (None, layer.stride))


def _distinct(layers: Iterable[NetworkLayer]) -> list[ConvolutionCase]:
    users: dict[ConvShape, list[str]] = {}
    for layer in layers:
        if layer.kind is Kind.CONV:
            users.setdefault(of_layer(layer), []).append(layer.name)
    return [ConvolutionCase(conv, tuple(names)) for conv, names in users.items()]
