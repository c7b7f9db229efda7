"""RegNets as torchvision builds them: bottlenecks of grouped convolutions, with squeeze-and-excitation in RegNetY."""

from benchmarks.workloads.exported.graph import ExportedGraph
from benchmarks.workloads.exported.mobile import EXCITED_GAIN, RESIDUAL_GAIN

# channels and blocks of each stage
REGNET_Y_400MF = [(48, 1), (104, 3), (208, 6), (440, 6)]
REGNET_X_400MF = [(32, 1), (64, 2), (160, 7), (400, 12)]
SQUEEZED = 1 / 4  #: channels of a block's input


def regnet_y_400mf(net: ExportedGraph) -> tuple[str, ...]:
    """RegNetY-400MF without softmax: groups of 8 channels."""
    return _regnet(net, REGNET_Y_400MF, 8, excited=True)


def regnet_x_400mf(net: ExportedGraph) -> tuple[str, ...]:
    """RegNetX-400MF without softmax: groups of 16 channels."""
    return _regnet(net, REGNET_X_400MF, 16, excited=False)


def _regnet(net: ExportedGraph, stages: list[tuple[int, int]], width: int, excited: bool) -> tuple[str, ...]:
    x = net.conv("input", 32, 3, stride=2, act="relu")
    for channels, blocks in stages:
        for block in range(blocks):
            x = _block(net, x, channels, 1 if block else 2, channels // width, excited)
    return net.classified(x)


def _block(net: ExportedGraph, source: str, channels: int, stride: int, groups: int, excited: bool) -> str:
    shortcut = source
    if stride != 1 or net.channels(source) != channels:
        shortcut = net.conv(source, channels, stride=stride)
    x = net.conv(source, channels, act="relu")
    x = net.conv(x, channels, 3, stride, groups=groups, act="relu")
    if excited:
        x = net.squeeze_excite(x, round(SQUEEZED * net.channels(source)), "relu", "sigmoid")
    x = net.conv(x, channels, gain=RESIDUAL_GAIN * (EXCITED_GAIN if excited else 1.0))
    return net.relu(net.add(shortcut, x))
