"""Networks of torchvision whose blocks join channels: ShuffleNetV2 and DenseNet."""

from benchmarks.workloads.exported.graph import ExportedGraph

SHUFFLENET_STAGES = [(116, 4), (232, 8), (464, 4)]
DENSENET121 = (6, 12, 24, 16)
GROWTH, BOTTLENECK = 32, 128


def shufflenet_v2(net: ExportedGraph) -> tuple[str, ...]:
    """ShuffleNetV2 ×1.0 without softmax."""
    x = net.max_pool(net.conv("input", 24, 3, stride=2, act="relu"), 3, 2, 1)
    for channels, units in SHUFFLENET_STAGES:
        for unit in range(units):
            x = _shuffle_unit(net, x, channels) if unit else _halving_unit(net, x, channels)
    x = net.conv(x, 1024, act="relu")
    return (net.linear(net.reduced("ReduceMean", x, (2, 3)), 1000),)


def _halving_unit(net: ExportedGraph, x: str, channels: int) -> str:
    beside = net.conv(x, net.channels(x), 3, 2, groups=net.channels(x))
    beside = net.conv(beside, channels // 2, act="relu")
    return _shuffled(net, net.concat(beside, _branch(net, x, channels // 2, 2)))


def _shuffle_unit(net: ExportedGraph, x: str, channels: int) -> str:
    beside, x = net.split(x, channels // 2, channels // 2)
    return _shuffled(net, net.concat(beside, _branch(net, x, channels // 2, 1)))


def _branch(net: ExportedGraph, x: str, channels: int, stride: int) -> str:
    x = net.conv(net.conv(x, channels, act="relu"), channels, 3, stride, groups=channels)
    return net.conv(x, channels, act="relu")


def _shuffled(net: ExportedGraph, x: str) -> str:
    _, channels, height, width = net.shapes[x]
    x = net.transpose(net.reshape(x, 1, 2, channels // 2, height, width), 0, 2, 1, 3, 4)
    return net.reshape(x, 1, channels, height, width)


def densenet121(net: ExportedGraph) -> tuple[str, ...]:
    """DenseNet-121 without softmax. Layers normalise what they read, which cannot be folded."""
    x = net.max_pool(net.conv("input", 64, 7, stride=2, act="relu"), 3, 2, 1)
    for block, layers in enumerate(DENSENET121):
        made = [x]
        for _ in range(layers):
            made.append(_dense_layer(net, net.concat(*made)))
        x = net.batch_norm(net.concat(*made), "relu")
        if block < len(DENSENET121) - 1:
            x = net.average_pool(net.conv(x, net.channels(x) // 2, norm=False, bias=False), 2, 2)
    return net.classified(x)


def _dense_layer(net: ExportedGraph, x: str) -> str:
    x = net.conv(net.batch_norm(x, "relu"), BOTTLENECK, act="relu")
    return net.conv(x, GROWTH, 3, norm=False, bias=False)
