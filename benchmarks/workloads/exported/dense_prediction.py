"""Networks that say something of every pixel: segmentation and super-resolution."""

from benchmarks.workloads.exported import mobile
from benchmarks.workloads.exported.graph import ExportedGraph

CLASSES = 21
DILATED = 3  #: blocks at the end of MobileNetV3 that keep the size
LOW = 4  #: the block whose result is joined with that of the end
RATES = (12, 24, 36)


def lraspp(net: ExportedGraph) -> tuple[str, ...]:
    """LR-ASPP on MobileNetV3-large: [1, 21, H, W]."""
    low, high = _backbone(net)
    x = net.conv(high, 128, act="relu")
    scale = net.sigmoid(net.conv(net.global_average_pool(high), 128, norm=False, bias=False))
    x = _resized(net, net.mul(x, scale), low)
    x = net.add(net.conv(low, CLASSES, norm=False), net.conv(x, CLASSES, norm=False))
    return (_resized(net, x, "input"),)


def deeplab_v3(net: ExportedGraph) -> tuple[str, ...]:
    """DeepLabv3 on MobileNetV3-large, without its second classifier: [1, 21, H, W]."""
    _, high = _backbone(net)
    made = [net.conv(high, 256, act="relu")]
    made += [net.conv(high, 256, 3, dilation=rate, act="relu") for rate in RATES]
    made.append(_resized(net, net.conv(net.global_average_pool(high), 256, act="relu"), high))
    x = net.conv(net.concat(*made), 256, act="relu")
    x = net.conv(net.conv(x, 256, 3, act="relu"), CLASSES, norm=False)
    return (_resized(net, x, "input"),)


def _backbone(net: ExportedGraph) -> tuple[str, str]:
    results = mobile.mobilenet_v3_features(net, mobile.LARGE, DILATED)
    return results[LOW], net.conv(results[-1], 6 * net.channels(results[-1]), act="hardswish")


def _resized(net: ExportedGraph, x: str, like: str) -> str:
    _, _, height, width = net.shapes[like]
    return net.resize(x, height, width, "linear")


def unet(net: ExportedGraph, upsampling: str, channels: int = 32) -> tuple[str, ...]:
    """U-Net with four levels, as published for segmentation of brains; ``upsampling`` is ``transposed`` or
    ``nearest``, which has a 3×3 convolution behind it."""
    x, levels = _pair(net, "input", channels), []
    for level in range(1, 5):
        levels.append(x)
        x = _pair(net, net.max_pool(x, 2, 2), channels << level)
    for level, beside in reversed(list(enumerate(levels))):
        if upsampling == "transposed":
            x = net.conv_transpose(x, channels << level, 2, 2)
        else:
            x = net.resize(x, 2 * net.shapes[x][2], 2 * net.shapes[x][3], "nearest")
            x = net.conv(x, channels << level, 3, act="relu")
        x = _pair(net, net.concat(x, beside), channels << level)
    return (net.sigmoid(net.conv(x, 1, norm=False)),)


def _pair(net: ExportedGraph, x: str, channels: int) -> str:
    return net.conv(net.conv(x, channels, 3, act="relu"), channels, 3, act="relu")


def espcn(net: ExportedGraph) -> tuple[str, ...]:
    """ESPCN: three times as many pixels in height and width, of one channel."""
    x = net.conv("input", 64, 5, act="relu", norm=False)
    x = net.conv(x, 64, 3, act="relu", norm=False)
    x = net.conv(net.conv(x, 32, 3, act="relu", norm=False), 9, 3, norm=False)
    _, _, height, width = net.shapes[x]
    return (net.node("DepthToSpace", [x], (1, 1, 3 * height, 3 * width), blocksize=3, mode="CRD"),)
