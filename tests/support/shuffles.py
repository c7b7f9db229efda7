"""Parts of networks with shuffles of channels; all tensors are stored in the same steps."""

import numpy as np

from tests.support.onnx_models import Net

SCALE = 0.05


def stored(net: Net, x: str) -> str:
    return net.q(x, SCALE)


def image(net: Net, channels: int, size: tuple[int, int] = (4, 5)) -> str:
    """What a convolution makes of the input; real."""
    x = net.dq(net.input((1, 3, *size)), SCALE)
    return net.dq(pointwise(net, x, 3, channels), SCALE)


def shuffled(net: Net, x: str, groups: int, channels: int, size: tuple[int, int] = (4, 5)) -> str:
    """``x``, the channels of its ``groups`` dealt out in turn, as exporters write it; real."""
    split = net.node("Reshape", [x, net.const([1, groups, channels // groups, *size], np.int64)])
    turned = net.node("Transpose", [split], perm=[0, 2, 1, 3, 4])
    return net.dq(stored(net, net.node("Reshape", [turned, net.const([1, channels, *size], np.int64)])), SCALE)


def half(net: Net, x: str, *, last: bool = False) -> str:
    """The first channels of ``x``, or the last, as many; real."""
    net.node("Split", [x], outputs=2, axis=1)
    return net.dq(stored(net, net.nodes[-1].output[last]), SCALE)


def pointwise(net: Net, x: str, channels: int, outs: int, **attributes) -> str:
    return stored(net, net.conv(x, SCALE, (outs, channels, 1, 1), **attributes))


def depthwise(net: Net, x: str, channels: int, axis: int | None = 0) -> str:
    """Real."""
    made = net.conv(x, SCALE, (channels, 1, 3, 3), axis, group=channels, pads=[1, 1, 1, 1])
    return net.dq(stored(net, made), SCALE)


def window(net: Net, x: str, channels: int) -> str:
    return stored(net, net.conv(x, SCALE, (4, channels, 3, 3)))
