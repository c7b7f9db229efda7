"""Swin-T as torchvision builds it: attention in windows, every second time of a picture that is rolled."""

import numpy as np
import numpy.typing as npt

from benchmarks.workloads.exported.graph import ExportedGraph

STAGES = [(96, 2), (192, 2), (384, 6), (768, 2)]
WINDOW, SHIFT = 7, 3
HEAD = 32  #: channels of a head
HIDDEN = -100.0  #: what is added to scores of pixels that are neighbours only because the picture is rolled


def swin_t(net: ExportedGraph) -> tuple[str, ...]:
    """Swin-T without softmax."""
    x = net.layer_norm(net.transpose(net.conv("input", 96, 4, 4, pad=0, norm=False), 0, 2, 3, 1))
    for stage, (channels, blocks) in enumerate(STAGES):
        if stage:
            x = _merged(net, x, channels)
        for block in range(blocks):
            shift = SHIFT if block % 2 and net.shapes[x][1] > WINDOW else 0
            x = net.add(x, windowed(net, net.layer_norm(x), shift))
            x = net.add(x, net.linear(net.linear(net.layer_norm(x), 4 * channels, "gelu"), channels))
    x = net.transpose(net.layer_norm(x), 0, 3, 1, 2)
    return net.classified(x)


def _merged(net: ExportedGraph, x: str, channels: int) -> str:
    """Four neighbours become one pixel of twice as many channels."""
    x = net.pad(x, *[0] * 8)
    size = net.shapes[x][1]
    places = [(0, 0), (1, 0), (0, 1), (1, 1)]
    parts = [net.slice(net.slice(x, row, size, 1, 2), column, size, 2, 2) for row, column in places]
    return net.linear(net.layer_norm(net.concat(*parts, axis=3)), channels, bias=False)


def windowed(net: ExportedGraph, x: str, shift: int) -> str:
    """Attention within each window of [1, size, size, channels]; the paddings and the last slices change nothing."""
    _, size, _, channels = net.shapes[x]
    count, pixels, heads = (size // WINDOW) ** 2, WINDOW**2, channels // HEAD
    x = _rolled(net, net.pad(x, *[0] * 8), -shift)
    x = net.reshape(x, 1, size // WINDOW, WINDOW, size // WINDOW, WINDOW, channels)
    x = net.reshape(net.transpose(x, 0, 1, 3, 2, 4, 5), count, pixels, channels)
    packed = net.reshape(net.linear(x, 3 * channels), count, pixels, 3, heads, HEAD)
    packed = net.transpose(packed, 2, 0, 3, 1, 4)
    query, key, value = (net.gather(packed, part, 0) for part in range(3))
    query = net.mul(query, net.constant(HEAD**-0.5))
    scores = net.matmul(query, net.transpose(key, 0, 1, 3, 2))
    scores = net.add(scores, _positions(net, heads))
    if shift:
        scores = net.add(net.reshape(scores, 1, count, heads, pixels, pixels), net.constant(_mask(size, shift)))
        scores = net.reshape(scores, -1, heads, pixels, pixels)
    mixed = net.transpose(net.matmul(net.softmax(scores), value), 0, 2, 1, 3)
    x = net.linear(net.reshape(mixed, count, pixels, channels), channels)
    x = net.reshape(x, 1, size // WINDOW, size // WINDOW, WINDOW, WINDOW, channels)
    x = net.reshape(net.transpose(x, 0, 1, 3, 2, 4, 5), 1, size, size, channels)
    x = _rolled(net, x, shift)
    return net.slice(net.slice(x, 0, size, 1), 0, size, 2)


def _rolled(net: ExportedGraph, x: str, shift: int) -> str:
    """Rows and columns moved by ``shift``; what leaves on one side enters on the other."""
    for axis in (1, 2) if shift else ():
        size = net.shapes[x][axis]
        x = net.concat(net.slice(x, -shift, size, axis), net.slice(x, 0, -shift, axis), axis=axis)
    return x


def _positions(net: ExportedGraph, heads: int) -> str:
    """Biases of each head by the distance of two pixels: [1, heads, pixels, pixels]."""
    table = net.drawn(((2 * WINDOW - 1) ** 2, heads), 0.5)
    rows, columns = np.divmod(np.arange(WINDOW**2), WINDOW)
    apart = (rows[:, None] - rows + WINDOW - 1) * (2 * WINDOW - 1) + columns[:, None] - columns + WINDOW - 1
    return net.constant(table[apart].transpose(2, 0, 1)[np.newaxis])


def _mask(size: int, shift: int) -> npt.NDArray[np.float32]:
    """[1, windows, 1, pixels, pixels]: hides from each other what comes from different parts of the picture."""
    strips = np.digitize(np.arange(size), [size - WINDOW, size - shift])
    parts = (3 * strips[:, None] + strips).reshape(size // WINDOW, WINDOW, size // WINDOW, WINDOW)
    regions = parts.swapaxes(1, 2).reshape(-1, WINDOW**2)
    hidden = regions[:, None, :] != regions[:, :, None]
    return np.where(hidden, np.float32(HIDDEN), np.float32(0))[np.newaxis, :, np.newaxis]
