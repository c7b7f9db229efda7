"""Along which dimension an operator may be split, by its type, and what of its operands a part of its result needs."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

Extents = tuple[int, int, int, int]  #: frames, channels, height, width
Box4 = tuple[tuple[int, int], ...]  #: (first, end) along each of the four


class Dimension(IntEnum):
    """The dimensions of data, as indices into extents."""

    FRAMES = 0
    CHANNELS = 1
    HEIGHT = 2
    WIDTH = 3


FRAMES, CHANNELS, HEIGHT, WIDTH = Dimension


@dataclass(frozen=True)
class SlidingWindow:
    """Kernel, strides and pads (top, left), height first."""

    kernel: tuple[int, int] = (1, 1)
    strides: tuple[int, int] = (1, 1)
    pads: tuple[int, int] = (0, 0)


ONE_PIXEL = SlidingWindow()


@dataclass(frozen=True)
class OperandNeed:
    """What decides which part of an operand is needed. ``before``: channels of the operands in front of it in a
    concatenation."""

    extents: Extents
    result: Extents
    window: SlidingWindow
    groups: int
    number: int
    before: int


Needs = Callable[[OperandNeed, Box4], Box4]


@dataclass(frozen=True)
class SplitRule:
    """The dimensions of the result along which a type of operator may be split, first choice first, and what a part
    ``needs``."""

    dimensions: tuple[Dimension, ...]
    needs: Needs


def _whole(operand: OperandNeed, *dimensions: Dimension) -> dict[Dimension, tuple[int, int]]:
    return {dimension: (0, operand.extents[dimension]) for dimension in dimensions}


def _box(result: Box4, changed: dict[Dimension, tuple[int, int]]) -> Box4:
    return tuple(changed.get(dimension, result[dimension]) for dimension in Dimension)


def _rows_and_columns(operand: OperandNeed, result: Box4) -> dict[Dimension, tuple[int, int]]:
    """Under the windows of the result's rows and columns."""
    found = {}
    for axis, dimension in enumerate((HEIGHT, WIDTH)):
        first, end = result[dimension]
        stride, pad, extent = operand.window.strides[axis], operand.window.pads[axis], operand.extents[dimension]
        low = min(max(0, first * stride - pad), extent)
        high = max(low, min(extent, (end - 1) * stride - pad + operand.window.kernel[axis]))
        found[dimension] = (low, high)
    return found


def _convolved(operand: OperandNeed, result: Box4) -> Box4:
    """Of each group that the output channels belong to all input channels."""
    outs, ins = (extents[CHANNELS] // operand.groups for extents in (operand.result, operand.extents))
    first, end = result[CHANNELS]
    channels = (first // outs * ins, -(-end // outs) * ins)
    return _box(result, {CHANNELS: channels, **_rows_and_columns(operand, result)})


def _slid(operand: OperandNeed, result: Box4) -> Box4:
    """The same channels."""
    return _box(result, _rows_and_columns(operand, result))


def _connected(operand: OperandNeed, result: Box4) -> Box4:
    return _box(result, _whole(operand, CHANNELS, HEIGHT, WIDTH))


def _over_pixels(operand: OperandNeed, result: Box4) -> Box4:
    return _box(result, _whole(operand, HEIGHT, WIDTH))


def _over_channels(operand: OperandNeed, result: Box4) -> Box4:
    return _box(result, _whole(operand, CHANNELS))


def _transposed(operand: OperandNeed, result: Box4) -> Box4:
    """Channels and width change places."""
    return _box(result, {CHANNELS: result[WIDTH], WIDTH: result[CHANNELS]})


def _multiplied(operand: OperandNeed, result: Box4) -> Box4:
    """Rows of the first matrix are its height; its channels are the rows of the second."""
    reduced = CHANNELS if operand.number == 0 else HEIGHT
    return _box(result, _whole(operand, reduced))


def _alike(operand: OperandNeed, result: Box4) -> Box4:
    """Element by element; where the operand has one alone, that one."""
    broadcast = [d for d in Dimension if operand.extents[d] == 1]
    return _box(result, _whole(operand, *broadcast))


def _joined(operand: OperandNeed, result: Box4) -> Box4:
    """Those of the channels that come from this operand; maybe none."""
    first, end = (min(max(0, c - operand.before), operand.extents[CHANNELS]) for c in result[CHANNELS])
    return _box(result, {CHANNELS: (first, end)})


#: By type. Convolution, fully connected and depthwise: frames first, then channels; what is image data also by height
#: and width. Resize and pooling reduce over height and width. The others never along a dimension they reduce over, and
#: among the rest what is simplest first: the dimension whose parts are whole runs of bytes, channels being innermost.
RULES: dict[str, SplitRule] = {
    "conv": SplitRule((FRAMES, CHANNELS, HEIGHT, WIDTH), _convolved),
    "depthwise": SplitRule((FRAMES, CHANNELS, HEIGHT, WIDTH), _slid),
    "fully_connected": SplitRule((FRAMES, CHANNELS), _connected),
    "pool": SplitRule((FRAMES, CHANNELS), _slid),
    "resize": SplitRule((FRAMES, CHANNELS), _over_pixels),
    "mean": SplitRule((FRAMES, CHANNELS), _over_pixels),
    "transpose": SplitRule((FRAMES, HEIGHT), _transposed),
    "matmul": SplitRule((FRAMES, HEIGHT, CHANNELS), _multiplied),
    "softmax": SplitRule((FRAMES, HEIGHT, WIDTH), _over_channels),
    "elementwise": SplitRule((FRAMES, HEIGHT, WIDTH, CHANNELS), _alike),
    "concat": SplitRule((FRAMES, HEIGHT, WIDTH), _joined),
}
