"""Topologies of the networks of published loads of several tenants. ``width`` scales the channels, ``size`` the image.

Normalisation is folded into the convolutions beside it. DenseNet normalises what a layer *reads* as well, which cannot
be folded: it is left out here. AlexNet and GoogLeNet have no normalisation across channels, nor GoogLeNet its two
classifiers that only training uses.
"""

from collections.abc import Sequence

from benchmarks.workloads.branchy import INCEPTION_MODULES
from benchmarks.workloads.layers import Activation, Network

POOL = "pool"
VGG16: Sequence[int | str] = [64, 64, POOL, 128, 128, POOL, 256, 256, 256, POOL, *[512] * 3, POOL, *[512] * 3, POOL]
VGG19: Sequence[int | str] = [64, 64, POOL, 128, 128, POOL, *[256] * 4, POOL, *[512] * 4, POOL, *[512] * 4, POOL]
VGG_HIDDEN = 4096

DENSENET201 = (6, 12, 48, 32)  #: layers of each block
DENSENET_BOTTLENECK = 4  #: channels of the 1×1 convolution, in growths

# channels, kernel, stride, padding
ALEXNET: Sequence[tuple[int, int, int, int] | str] = [
    (64, 11, 4, 2), POOL, (192, 5, 1, 2), POOL, (384, 3, 1, 1), (256, 3, 1, 1), (256, 3, 1, 1), POOL,
]  # fmt: skip

# Output channels and stride of each separable convolution of MobileNet v1.
MOBILENETV1 = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1)]

GOOGLENET_LAST = [(256, (160, 320), (32, 128), 128), (384, (192, 384), (48, 128), 128)]  #: modules 5a and 5b


def vgg16(width: float = 1.0, size: int = 224, classes: int = 1000) -> Network:
    """VGG-16 without softmax."""
    return _vgg("vgg16", VGG16, width, size, classes)


def vgg19(width: float = 1.0, size: int = 224, classes: int = 1000) -> Network:
    """VGG-19 without softmax."""
    return _vgg("vgg19", VGG19, width, size, classes)


def _vgg(name: str, table: Sequence[int | str], width: float, size: int, classes: int) -> Network:
    net = Network(name, (3, size, size))
    x = net.input
    for number, channels in enumerate(table, start=1):
        if isinstance(channels, str):
            x = net.max_pool(f"pool{number}", x, 2, stride=2)
        else:
            x = net.conv(f"conv{number}", x, scaled(channels, width), 3, pad=1)
    return _two_hidden(net, x, scaled(VGG_HIDDEN, width), classes)


def alexnet(width: float = 1.0, size: int = 224, classes: int = 1000) -> Network:
    """AlexNet on one processor, without softmax: no groups."""
    net = Network("alexnet", (3, size, size))
    x = net.input
    for number, layer in enumerate(ALEXNET, start=1):
        if isinstance(layer, str):
            x = net.max_pool(f"pool{number}", x, 3, stride=2)
        else:
            channels, kernel, stride, pad = layer
            x = net.conv(f"conv{number}", x, scaled(channels, width), kernel, stride, pad)
    return _two_hidden(net, x, scaled(VGG_HIDDEN, width), classes)


def _two_hidden(net: Network, x: str, hidden: int, classes: int) -> Network:
    x = net.gemm("hidden1", net.flatten("flat", x), hidden, Activation.RELU)
    x = net.gemm("hidden2", x, hidden, Activation.RELU)
    net.gemm("logits", x, classes)
    return net


def densenet201(width: float = 1.0, size: int = 224, classes: int = 1000) -> Network:
    """DenseNet-201 without softmax and without what normalises the inputs of layers."""
    growth = scaled(32, width)
    net = Network("densenet201", (3, size, size))
    x = net.conv("stem", net.input, 2 * growth, 7, stride=2, pad=3)
    x = net.max_pool("stem.pool", x, 3, stride=2, pad=1)
    for block, layers in enumerate(DENSENET201, start=1):
        for layer in range(1, layers + 1):
            name = f"block{block}.{layer}"
            made = net.conv(f"{name}.bottleneck", x, DENSENET_BOTTLENECK * growth)
            x = net.concat(f"{name}.concat", x, net.conv(f"{name}.conv", made, growth, 3, pad=1))
        if block < len(DENSENET201):
            x = net.conv(f"transition{block}", x, net.channels(x) // 2)
            x = net.average_pool(f"transition{block}.pool", x, 2, stride=2)
    return classified(net, x, classes)


def mobilenetv1(width: float = 1.0, size: int = 224, classes: int = 1000) -> Network:
    """MobileNet v1 without softmax."""
    net = Network("mobilenetv1", (3, size, size))
    x = net.conv("conv1", net.input, scaled(32, width), 3, stride=2, pad=1)
    for number, (channels, stride) in enumerate(MOBILENETV1, start=1):
        depth = net.channels(x)
        x = net.conv(f"depthwise{number}", x, depth, 3, stride, 1, groups=depth)
        x = net.conv(f"pointwise{number}", x, scaled(channels, width))
    return classified(net, x, classes)


def googlenet(width: float = 1.0, size: int = 224, classes: int = 1000) -> Network:
    """GoogLeNet (Inception v1) without softmax."""
    net = Network("googlenet", (3, size, size))
    x = net.conv("stem1", net.input, scaled(64, width), 7, stride=2, pad=3)
    x = net.max_pool("pool1", x, 3, stride=2, ceil=True)
    x = net.conv("stem3", net.conv("stem2", x, scaled(64, width)), scaled(192, width), 3, pad=1)
    modules: list[tuple | str] = [*INCEPTION_MODULES[:2], POOL, *INCEPTION_MODULES[2:], POOL, *GOOGLENET_LAST]
    x = net.max_pool("pool2", x, 3, stride=2, ceil=True)
    for number, module in enumerate(modules, start=1):
        if isinstance(module, str):
            x = net.max_pool(f"pool{number}.between", x, 3, stride=2, ceil=True)
        else:
            x = _module(net, f"module{number}", x, module, width)
    return classified(net, x, classes)


def _module(net: Network, name: str, x: str, module: tuple, width: float) -> str:
    direct, three, five, pooled = module
    one = net.conv(f"{name}.one", x, scaled(direct, width))
    threes = net.conv(f"{name}.squeeze3", x, scaled(three[0], width))
    threes = net.conv(f"{name}.three", threes, scaled(three[1], width), 3, pad=1)
    fives = net.conv(f"{name}.squeeze5", x, scaled(five[0], width))
    fives = net.conv(f"{name}.five", fives, scaled(five[1], width), 5, pad=2)
    pool = net.conv(f"{name}.project", net.max_pool(f"{name}.pool", x, 3, stride=1, pad=1), scaled(pooled, width))
    return net.concat(f"{name}.concat", one, threes, fives, pool)


def classified(net: Network, x: str, classes: int) -> Network:
    """Return the network with the mean of each channel of ``x`` and a fully connected layer at its end."""
    net.gemm("logits", net.flatten("flat", net.global_average_pool("last.pool", x)), classes)
    return net


def scaled(channels: int, width: float) -> int:
    """Return ``channels`` times ``width``: a multiple of 4, and 4 at least."""
    return max(4, round(channels * width / 4) * 4)
