"""Small quantised networks over a dynamic length, for tests."""

import onnx

from tests.support.onnx_models import Net

X, H = (0.05, 3), (0.06, -5)  #: scale and zero point of the input and of what follows


def conv_net(*pads: tuple[int, int], stride: int = 1, kernel: int = 3, channels: int = 8, dimension="L", seed: int = 0):
    """A Conv, Relu, quantisation for each of ``pads`` (begin, end), over (1, 4, L)."""
    net = Net(seed=seed)
    x, scale, fan = net.dq(net.input((1, 4, dimension)), *X), X[0], 4
    for pad in pads:
        x = net.conv(x, scale, (channels, fan, kernel), pads=list(pad), strides=[stride])
        x = net.dq(net.q(net.node("Relu", [x]), *H), *H)
        scale, fan = H[0], channels
    return net.model(net.q(x, *H))


def length_net(build, shape=(1, 4, "L"), seed: int = 0) -> onnx.ModelProto:
    """A net of what ``build(net, x)`` makes of the dequantised input."""
    net = Net(seed=seed)
    return net.model(net.q(build(net, net.dq(net.input(shape), *X)), *H))
