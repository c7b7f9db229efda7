"""Topologies of the networks, from compact tables. ``width`` scales the channels and ``size`` the image, for tests.

ResNets are version 1.5: the stride of a bottleneck sits on its 3×3 convolution, not on its first 1×1.
"""

from benchmarks.workloads.layers import Activation, Network

# (width of the bottleneck, blocks, stride of the first block)
RESNET50_STAGES = [(64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)]
RESNET152_STAGES = [(64, 3, 1), (128, 8, 2), (256, 36, 2), (512, 3, 2)]
RESNET_EXPANSION = 4

# (expansion, output channels, blocks, stride of the first block)
MOBILENETV2_STAGES = [
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
]

POOL = "pool"
# ("pool") or (squeeze, expand of each size) of a fire module, after the first convolution (channels, kernel)
SQUEEZENET_1_0 = (96, 7), [POOL, (16, 64), (16, 64), (32, 128), POOL, (32, 128), (48, 192), (48, 192), (64, 256),
                           POOL, (64, 256)]  # fmt: skip
SQUEEZENET_1_1 = (64, 3), [POOL, (16, 64), (16, 64), POOL, (32, 128), (32, 128), POOL, (48, 192), (48, 192),
                           (64, 256), (64, 256)]  # fmt: skip


def resnet50(width: float = 1.0, size: int = 224, classes: int = 1000) -> Network:
    """ResNet-50 v1.5 without softmax."""
    return _resnet("resnet50", RESNET50_STAGES, width, size, classes)


def resnet152(width: float = 1.0, size: int = 224, classes: int = 1000) -> Network:
    """ResNet-152 v1.5 without softmax."""
    return _resnet("resnet152", RESNET152_STAGES, width, size, classes)


def _resnet(name: str, stages: list[tuple[int, int, int]], width: float, size: int, classes: int) -> Network:
    net = Network(name, (3, size, size))
    x = net.conv("conv1", net.input, _scaled(64, width), 7, stride=2, pad=3)
    x = net.max_pool("pool1", x, 3, stride=2, pad=1)
    for stage, (channels, blocks, stride) in enumerate(stages, start=1):
        for block in range(1, blocks + 1):
            x = _bottleneck(net, f"layer{stage}.{block}", x, _scaled(channels, width), stride if block == 1 else 1)
    x = net.flatten("flat", net.global_average_pool("pool2", x))
    net.gemm("logits", x, classes)
    return net


def _bottleneck(net: Network, name: str, source: str, channels: int, stride: int) -> str:
    cout = channels * RESNET_EXPANSION
    x = net.conv(f"{name}.conv1", source, channels)
    x = net.conv(f"{name}.conv2", x, channels, 3, stride, pad=1)
    x = net.conv(f"{name}.conv3", x, cout, activation=Activation.NONE, residual=True)
    shortcut = source
    if stride != 1 or net.channels(source) != cout:
        shortcut = net.conv(f"{name}.shortcut", source, cout, stride=stride, activation=Activation.NONE)
    return net.add(f"{name}.add", x, shortcut, Activation.RELU)


def mobilenetv2(width: float = 1.0, size: int = 224, classes: int = 1000) -> Network:
    """MobileNetV2 without softmax. Channels are multiples of 8 and the head is never narrowed, as published."""
    net = Network("mobilenetv2", (3, size, size))
    x = net.conv("conv1", net.input, _divisible(32 * width), 3, stride=2, pad=1, activation=Activation.RELU6)
    for stage, (expansion, channels, blocks, stride) in enumerate(MOBILENETV2_STAGES, start=1):
        for block in range(1, blocks + 1):
            name = f"block{stage}.{block}"
            x = _inverted_residual(net, name, x, _divisible(channels * width), expansion, stride if block == 1 else 1)
    x = net.conv("conv2", x, _divisible(1280 * max(1.0, width)), activation=Activation.RELU6)
    x = net.flatten("flat", net.global_average_pool("pool", x))
    net.gemm("logits", x, classes)
    return net


def _inverted_residual(net: Network, name: str, source: str, cout: int, expansion: int, stride: int) -> str:
    cin = net.channels(source)
    skip = stride == 1 and cin == cout
    hidden = cin * expansion
    x = source
    if expansion != 1:
        x = net.conv(f"{name}.expand", x, hidden, activation=Activation.RELU6)
    x = net.conv(f"{name}.depthwise", x, hidden, 3, stride, pad=1, groups=hidden, activation=Activation.RELU6)
    x = net.conv(f"{name}.project", x, cout, activation=Activation.NONE, residual=skip)
    return net.add(f"{name}.add", source, x) if skip else x


def squeezenet(width: float = 1.0, size: int = 224, classes: int = 1000) -> Network:
    """SqueezeNet 1.1 without softmax."""
    return _squeezenet("squeezenet", SQUEEZENET_1_1, width, size, classes)


def squeezenet1_0(width: float = 1.0, size: int = 224, classes: int = 1000) -> Network:
    """SqueezeNet 1.0 without softmax."""
    return _squeezenet("squeezenet1_0", SQUEEZENET_1_0, width, size, classes)


def _squeezenet(name: str, table: tuple, width: float, size: int, classes: int) -> Network:
    (channels, kernel), modules = table
    net = Network(name, (3, size, size))
    x = net.conv("conv1", net.input, _scaled(channels, width), kernel, stride=2)
    fires = pools = 0
    for module in modules:
        if module == POOL:
            pools += 1
            x = net.max_pool(f"pool{pools}", x, 3, stride=2, ceil=True)
        else:
            fires += 1
            squeeze, expand = (_scaled(channels, width) for channels in module)
            x = _fire(net, f"fire{fires}", x, squeeze, expand)
    x = net.conv("classifier", x, classes)
    net.flatten("logits", net.global_average_pool("pool", x))
    return net


def _fire(net: Network, name: str, source: str, squeeze: int, expand: int) -> str:
    x = net.conv(f"{name}.squeeze", source, squeeze)
    narrow = net.conv(f"{name}.expand1", x, expand)
    wide = net.conv(f"{name}.expand3", x, expand, 3, pad=1)
    return net.concat(f"{name}.concat", narrow, wide)


def _scaled(channels: int, width: float) -> int:
    return max(1, round(channels * width))


def _divisible(channels: float, divisor: int = 8) -> int:
    rounded = max(divisor, int(channels + divisor / 2) // divisor * divisor)
    return rounded if rounded >= 0.9 * channels else rounded + divisor
