"""Detectors up to their raw heads: SSDLite as torchvision builds it, and one of the shape of YOLOv8n."""

from benchmarks.workloads.exported import mobile
from benchmarks.workloads.exported.graph import ExportedGraph

CLASSES, ANCHORS = 91, 6
EXTRA = (512, 256, 256, 128)  #: channels of the maps behind the backbone's
C4 = 12  #: the block whose expansion is the first map

YOLO_CLASSES, YOLO_BINS = 80, 64


def ssdlite320(net: ExportedGraph) -> tuple[str, ...]:
    """SSDLite320 on MobileNetV3-large: scores [1, anchors, 91] and boxes [1, anchors, 4]."""
    blocks = mobile.REDUCED
    x = mobile.mobilenet_v3_features(net, blocks[:C4])[-1]
    maps = [mobile.mobile3_expanded(net, x, blocks[C4])]
    x = mobile.mobile3_rest(net, maps[0], x, blocks[C4])
    for block in blocks[C4 + 1 :]:
        x = mobile.mobile3_rest(net, mobile.mobile3_expanded(net, x, block), x, block)
    maps.append(net.conv(x, 6 * net.channels(x), act="hardswish"))
    for channels in EXTRA:
        x = net.conv(maps[-1], channels // 2, act="relu6")
        x = net.conv(x, channels // 2, 3, 2, groups=channels // 2, act="relu6")
        maps.append(net.conv(x, channels, act="relu6"))
    return _head(net, maps, CLASSES), _head(net, maps, 4)


def _head(net: ExportedGraph, maps: list[str], columns: int) -> str:
    """What each anchor of all maps has: [1, anchors, columns]."""
    found = []
    for x in maps:
        x = net.conv(x, net.channels(x), 3, groups=net.channels(x), act="relu6")
        x = net.conv(x, ANCHORS * columns, norm=False)
        _, _, height, width = net.shapes[x]
        x = net.transpose(net.reshape(x, 1, -1, columns, height, width), 0, 3, 4, 1, 2)
        found.append(net.reshape(x, 1, -1, columns))
    return net.concat(*found, axis=1)


def yolov8n(net: ExportedGraph) -> tuple[str, ...]:
    """A detector of the shape of YOLOv8n: bins of boxes and scores of each pixel of three maps, [1, 144, H, W] each."""
    x = net.conv(net.conv("input", 16, 3, 2, act="silu"), 32, 3, 2, act="silu")
    x = _c2f(net, x, 32, 1, residual=True)
    p3 = _c2f(net, net.conv(x, 64, 3, 2, act="silu"), 64, 2, residual=True)
    p4 = _c2f(net, net.conv(p3, 128, 3, 2, act="silu"), 128, 2, residual=True)
    p5 = _c2f(net, net.conv(p4, 256, 3, 2, act="silu"), 256, 1, residual=True)
    p5 = _pyramid_pool(net, p5, 256)
    n4 = _c2f(net, net.concat(_doubled(net, p5), p4), 128, 1)
    n3 = _c2f(net, net.concat(_doubled(net, n4), p3), 64, 1)
    n4 = _c2f(net, net.concat(net.conv(n3, 64, 3, 2, act="silu"), n4), 128, 1)
    n5 = _c2f(net, net.concat(net.conv(n4, 128, 3, 2, act="silu"), p5), 256, 1)
    return tuple(net.concat(_branch(net, x, YOLO_BINS), _branch(net, x, YOLO_CLASSES)) for x in (n3, n4, n5))


def _c2f(net: ExportedGraph, x: str, channels: int, blocks: int, residual: bool = False) -> str:
    """Half of the channels go through ``blocks`` one behind the other; all that comes between is joined."""
    half = channels // 2
    made = net.split(net.conv(x, channels, act="silu"), half, half)
    for _ in range(blocks):
        y = net.conv(net.conv(made[-1], half, 3, act="silu"), half, 3, act="silu")
        made.append(net.add(made[-1], y) if residual else y)
    return net.conv(net.concat(*made), channels, act="silu")


def _pyramid_pool(net: ExportedGraph, x: str, channels: int) -> str:
    made = [net.conv(x, channels // 2, act="silu")]
    for _ in range(3):
        made.append(net.max_pool(made[-1], 5, 1, 2))
    return net.conv(net.concat(*made), channels, act="silu")


def _doubled(net: ExportedGraph, x: str) -> str:
    return net.resize(x, 2 * net.shapes[x][2], 2 * net.shapes[x][3], "nearest")


def _branch(net: ExportedGraph, x: str, columns: int) -> str:
    for _ in range(2):
        x = net.conv(x, columns, 3, act="silu")
    return net.conv(x, columns, norm=False)
