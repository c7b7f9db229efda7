"""ResNets as torchvision builds them: of basic blocks, of bottlenecks, wide ones, and with groups."""

from benchmarks.workloads.exported.graph import ExportedGraph
from benchmarks.workloads.exported.mobile import RESIDUAL_GAIN

CHANNELS = (64, 128, 256, 512)
EXPANSION = 4  #: output channels of a bottleneck, in channels of its stage


def resnet18(net: ExportedGraph) -> tuple[str, ...]:
    """ResNet-18 without softmax."""
    return _resnet(net, (2, 2, 2, 2), 0, 1)


def resnet50_kin(net: ExportedGraph, width: int, groups: int = 1) -> tuple[str, ...]:
    """ResNet-50 v1.5 without softmax, of another width: channels of a group of the first stage's 3×3 convolutions."""
    return _resnet(net, (3, 4, 6, 3), width, groups)


def _resnet(net: ExportedGraph, stages: tuple[int, ...], width: int, groups: int) -> tuple[str, ...]:
    x = net.max_pool(net.conv("input", 64, 7, stride=2, act="relu"), 3, 2, 1)
    for stage, (channels, blocks) in enumerate(zip(CHANNELS, stages, strict=True)):
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            if width:
                x = _bottleneck(net, x, channels * EXPANSION, (width << stage) * groups, stride, groups)
            else:
                x = _basic(net, x, channels, stride)
    return net.classified(x)


def _basic(net: ExportedGraph, source: str, channels: int, stride: int) -> str:
    x = net.conv(source, channels, 3, stride, act="relu")
    x = net.conv(x, channels, 3, gain=RESIDUAL_GAIN)
    return net.relu(net.add(x, _shortcut(net, source, channels, stride)))


def _bottleneck(net: ExportedGraph, source: str, channels: int, inner: int, stride: int, groups: int) -> str:
    x = net.conv(source, inner, act="relu")
    x = net.conv(x, inner, 3, stride, groups=groups, act="relu")
    x = net.conv(x, channels, gain=RESIDUAL_GAIN)
    return net.relu(net.add(x, _shortcut(net, source, channels, stride)))


def _shortcut(net: ExportedGraph, source: str, channels: int, stride: int) -> str:
    whole = stride == 1 and net.channels(source) == channels
    return source if whole else net.conv(source, channels, stride=stride)
