"""MobileNets and their kin, as torchvision builds them: inverted residuals, with squeeze-and-excitation or without."""

from typing import NamedTuple

from benchmarks.workloads.exported.graph import ExportedGraph

RESIDUAL_GAIN = 0.5  #: of a branch that is added to its shortcut
EXCITED_GAIN = 2.0  #: behind factors of about a half


class Mobile3(NamedTuple):
    """A block of MobileNetV3: kernel, expanded and output channels, squeeze-and-excitation, activation, stride."""

    kernel: int
    expanded: int
    channels: int
    excited: bool
    act: str
    stride: int


_RE, _HS = "relu", "hardswish"
LARGE = [
    Mobile3(3, 16, 16, False, _RE, 1), Mobile3(3, 64, 24, False, _RE, 2), Mobile3(3, 72, 24, False, _RE, 1),
    Mobile3(5, 72, 40, True, _RE, 2), *[Mobile3(5, 120, 40, True, _RE, 1)] * 2,
    Mobile3(3, 240, 80, False, _HS, 2), Mobile3(3, 200, 80, False, _HS, 1), *[Mobile3(3, 184, 80, False, _HS, 1)] * 2,
    Mobile3(3, 480, 112, True, _HS, 1), Mobile3(3, 672, 112, True, _HS, 1),
    Mobile3(5, 672, 160, True, _HS, 2), *[Mobile3(5, 960, 160, True, _HS, 1)] * 2,
]  # fmt: skip
SMALL = [
    Mobile3(3, 16, 16, True, _RE, 2), Mobile3(3, 72, 24, False, _RE, 2), Mobile3(3, 88, 24, False, _RE, 1),
    Mobile3(5, 96, 40, True, _HS, 2), *[Mobile3(5, 240, 40, True, _HS, 1)] * 2, Mobile3(5, 120, 48, True, _HS, 1),
    Mobile3(5, 144, 48, True, _HS, 1), Mobile3(5, 288, 96, True, _HS, 2), *[Mobile3(5, 576, 96, True, _HS, 1)] * 2,
]  # fmt: skip

#: LARGE for detection: half of the channels in the last three blocks.
REDUCED = [*LARGE[:-3], Mobile3(5, 672, 80, True, _HS, 2), *[Mobile3(5, 480, 80, True, _HS, 1)] * 2]

# expansion, kernel, stride of the first block, output channels, blocks
EFFICIENTNET_B0 = [
    (1, 3, 1, 16, 1), (6, 3, 2, 24, 2), (6, 5, 2, 40, 2), (6, 3, 2, 80, 3), (6, 5, 1, 112, 3), (6, 5, 2, 192, 4),
    (6, 3, 1, 320, 1),
]  # fmt: skip
# whether the expansion and the depthwise convolution are one, expansion, stride, output channels, blocks
EFFICIENTNET_V2_S = [
    (True, 1, 1, 24, 2), (True, 4, 2, 48, 4), (True, 4, 2, 64, 4), (False, 4, 2, 128, 6), (False, 6, 1, 160, 9),
    (False, 6, 2, 256, 15),
]  # fmt: skip
# kernel, stride, expansion, output channels, blocks
MNASNET1_0 = [
    (3, 2, 3, 24, 3),
    (5, 2, 3, 40, 3),
    (5, 2, 6, 80, 3),
    (3, 1, 6, 96, 2),
    (5, 2, 6, 192, 4),
    (3, 1, 6, 320, 1),
]


def mobilenet_v3(net: ExportedGraph, blocks: list[Mobile3], hidden: int) -> tuple[str, ...]:
    """MobileNetV3; ``hidden`` features are in its classifier."""
    *_, last = mobilenet_v3_features(net, blocks)
    x = net.conv(last, 6 * net.channels(last), act="hardswish")
    x = net.linear(net.flatten(net.global_average_pool(x)), hidden, "hardswish")
    return (net.linear(x, 1000),)


def mobilenet_v3_features(net: ExportedGraph, blocks: list[Mobile3], dilated: int = 0) -> list[str]:
    """Return the results of the stem and of all blocks; the last ``dilated`` of these keep the size."""
    results = [net.conv("input", 16, 3, stride=2, act="hardswish")]
    for left, block in zip(range(len(blocks), 0, -1), blocks, strict=True):
        x = results[-1]
        results.append(mobile3_rest(net, mobile3_expanded(net, x, block), x, block, 2 if left <= dilated else 1))
    return results


def mobile3_expanded(net: ExportedGraph, x: str, block: Mobile3) -> str:
    """Return the expansion of a block, if it has one."""
    return net.conv(x, block.expanded, act=block.act) if block.expanded != net.channels(x) else x


def mobile3_rest(net: ExportedGraph, x: str, source: str, block: Mobile3, dilation: int = 1) -> str:
    """Depthwise convolution, squeeze-and-excitation, projection, sum. What is dilated has no stride."""
    residual = block.stride == 1 and net.channels(source) == block.channels
    stride, groups = block.stride if dilation == 1 else 1, block.expanded
    x = net.conv(x, block.expanded, block.kernel, stride, groups=groups, dilation=dilation, act=block.act)
    if block.excited:
        x = net.squeeze_excite(x, divisible(block.expanded // 4), "relu", "hardsigmoid")
    gain = (RESIDUAL_GAIN if residual else 1.0) * (EXCITED_GAIN if block.excited else 1.0)
    x = net.conv(x, block.channels, gain=gain)
    return net.add(x, source) if residual else x


def efficientnet_b0(net: ExportedGraph) -> tuple[str, ...]:
    """EfficientNet-B0 without softmax."""
    x = net.conv("input", 32, 3, stride=2, act="silu")
    for expansion, kernel, stride, channels, blocks in EFFICIENTNET_B0:
        for block in range(blocks):
            x = _mbconv(net, x, expansion, kernel, 1 if block else stride, channels)
    return net.classified(net.conv(x, 1280, act="silu"))


def efficientnet_v2_s(net: ExportedGraph) -> tuple[str, ...]:
    """EfficientNetV2-S without softmax."""
    x = net.conv("input", 24, 3, stride=2, act="silu")
    for fused, expansion, stride, channels, blocks in EFFICIENTNET_V2_S:
        for block in range(blocks):
            if fused:
                x = _fused_mbconv(net, x, expansion, 1 if block else stride, channels)
            else:
                x = _mbconv(net, x, expansion, 3, 1 if block else stride, channels)
    return net.classified(net.conv(x, 1280, act="silu"))


def _mbconv(net: ExportedGraph, source: str, expansion: int, kernel: int, stride: int, channels: int) -> str:
    cin = net.channels(source)
    expanded, residual = cin * expansion, stride == 1 and cin == channels
    x = net.conv(source, expanded, act="silu") if expansion != 1 else source
    x = net.conv(x, expanded, kernel, stride, groups=expanded, act="silu")
    x = net.squeeze_excite(x, cin // 4, "silu", "sigmoid")
    x = net.conv(x, channels, gain=EXCITED_GAIN * (RESIDUAL_GAIN if residual else 1.0))
    return net.add(x, source) if residual else x


def _fused_mbconv(net: ExportedGraph, source: str, expansion: int, stride: int, channels: int) -> str:
    cin = net.channels(source)
    residual = stride == 1 and cin == channels
    if expansion == 1:
        x = net.conv(source, channels, 3, stride, act="silu")
    else:
        x = net.conv(source, cin * expansion, 3, stride, act="silu")
        x = net.conv(x, channels, gain=RESIDUAL_GAIN if residual else 1.0)
    return net.add(x, source) if residual else x


def mnasnet1_0(net: ExportedGraph) -> tuple[str, ...]:
    """MNASNet 1.0 without softmax. Its last mean is a ReduceMean."""
    x = net.conv("input", 32, 3, stride=2, act="relu")
    x = net.conv(net.conv(x, 32, 3, groups=32, act="relu"), 16)
    for kernel, stride, expansion, channels, blocks in MNASNET1_0:
        for block in range(blocks):
            x = inverted_residual(net, x, expansion, kernel, 1 if block else stride, channels, "relu")
    x = net.conv(x, 1280, act="relu")
    return (net.linear(net.reduced("ReduceMean", x, (2, 3)), 1000),)


def inverted_residual(
    net: ExportedGraph, source: str, expansion: int, kernel: int, stride: int, channels: int, act: str
) -> str:
    """Expansion, depthwise convolution, projection, sum; no squeeze-and-excitation."""
    cin = net.channels(source)
    expanded, residual = cin * expansion, stride == 1 and cin == channels
    x = net.conv(source, expanded, act=act) if expansion != 1 else source
    x = net.conv(x, expanded, kernel, stride, groups=expanded, act=act)
    x = net.conv(x, channels, gain=RESIDUAL_GAIN if residual else 1.0)
    return net.add(x, source) if residual else x


def divisible(channels: float) -> int:
    """Return the multiple of 8 next to ``channels``, 8 at least, and not more than a tenth below."""
    rounded = max(8, int(channels + 4) // 8 * 8)
    return rounded if rounded >= 0.9 * channels else rounded + 8
