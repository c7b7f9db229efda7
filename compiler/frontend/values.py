"""What is known about ONNX tensors during the walk over the graph: constants, 8-bit tensors in memory, their
dequantised views, and real tensors of host operators. Results in no memory yet are in :mod:`compiler.frontend.draft`.

A layout says where the elements of a tensor lie: memory holds ``transpose(onnx_value.reshape(view), perm)``, dense.
Images are channels last, so an NCHW tensor of rank 4 has perm (0, 2, 3, 1). Reshapes and transposes of ONNX only change
the layout; data moves when an operator needs another one.
"""

import dataclasses
import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Shape = tuple[int, ...]
NHWC = (0, 2, 3, 1)


def default_perm(rank: int) -> Shape:
    """Return the layout operators prefer: channels last for images, the ONNX order otherwise."""
    return NHWC if rank == 4 else tuple(range(rank))


@dataclass(frozen=True)
class TensorLayout:
    """See the module's text; ``view`` and the ONNX shape hold the same elements in the same order."""

    view: Shape
    perm: Shape

    @classmethod
    def plain(cls, shape: Shape) -> "TensorLayout":
        """Return the layout of memory in the order of ONNX."""
        return cls(shape, tuple(range(len(shape))))

    @classmethod
    def default(cls, shape: Shape) -> "TensorLayout":
        """Return the layout that operators prefer for this rank."""
        return cls(shape, default_perm(len(shape)))

    @classmethod
    def image(cls, shape: Shape) -> "TensorLayout":
        """Return the layout of an image (N, C, H, W) or (N, C, L) that operators on images prefer: channels last."""
        return cls(shape, NHWC if len(shape) == 4 else (0, 2, 1))

    @property
    def physical(self) -> Shape:
        """Return the shape in memory, where a scalar is a vector of one element."""
        return tuple(self.view[axis] for axis in self.perm) or (1,)

    def canonical(self) -> tuple[Shape, Shape]:
        """Equal for two layouts of the same size exactly if they order the bytes alike: extents of 1 are dropped and
        axes merged that stay neighbours."""
        axes = [axis for axis, size in enumerate(self.view) if size != 1]
        runs: list[list[int]] = []
        for axis in (a for a in self.perm if self.view[a] != 1):
            if runs and axes.index(axis) == axes.index(runs[-1][-1]) + 1:
                runs[-1].append(axis)
            else:
                runs.append([axis])
        onnx_order = sorted(runs)
        sizes = tuple(math.prod(self.view[a] for a in run) for run in onnx_order)
        return sizes, tuple(onnx_order.index(run) for run in runs)

    def same_order(self, other: "TensorLayout") -> bool:
        """True if both put every element at the same place."""
        return self.canonical() == other.canonical()

    def transposed(self, axes: Shape) -> "TensorLayout":
        """Return the layout of ``transpose(x, axes)`` in the same memory (``view`` must be x's shape)."""
        return TensorLayout(tuple(self.view[a] for a in axes), tuple(axes.index(p) for p in self.perm))


@dataclass(frozen=True)
class Quantisation:
    """Per-tensor parameters of 8-bit values: real = scale * (q - zero_point)."""

    scale: np.float32
    zero_point: int
    dtype: str

    @property
    def limits(self) -> tuple[int, int]:
        """Return the smallest and largest stored value."""
        info = np.iinfo(self.dtype)
        return int(info.min), int(info.max)

    def clamp(self, low: float, high: float) -> tuple[int, int]:
        """Limits of stored values that stand for real numbers in [low, high]."""
        qmin, qmax = self.limits
        lo = qmin if low == -np.inf else self.stored(low)
        hi = qmax if high == np.inf else self.stored(high)
        return lo, hi

    def stored(self, real: float) -> int:
        """Return the stored value of a real number, as QuantizeLinear rounds it."""
        with np.errstate(over="ignore"):  # infinity is limited like any other
            value = float(np.rint(np.float32(real) / self.scale)) + self.zero_point
        return int(np.clip(value, *self.limits))


@dataclass(frozen=True)
class Const:
    """A constant; ``array`` is its value."""

    array: npt.NDArray

    @property
    def shape(self) -> Shape:
        """ONNX shape."""
        return self.array.shape


@dataclass(frozen=True)
class QuantConst:
    """A constant behind DequantizeLinear: integers with one scale and zero point, or one per index of ``axis``."""

    data: npt.NDArray
    scale: npt.NDArray[np.float32]
    zero_point: npt.NDArray
    axis: int | None
    int4: bool = False  #: all integers are int4 by their type, and the zero point is 0

    @property
    def shape(self) -> Shape:
        """ONNX shape."""
        return self.data.shape

    @property
    def array(self) -> npt.NDArray[np.float32]:
        """Real value, float32 as DequantizeLinear computes it."""
        extent = [1] * self.data.ndim
        if self.axis is not None:
            extent[self.axis] = -1
        scale, zero = self.scale.reshape(extent), self.zero_point.reshape(extent)
        return (self.data.astype(np.int32) - zero.astype(np.int32)).astype(np.float32) * scale.astype(np.float32)

    @property
    def quantisation(self) -> Quantisation | None:
        """Return the parameters of all of it; None if it is not 8-bit, or has several."""
        if self.scale.size > 1 or self.data.dtype.name not in ("int8", "uint8"):
            return None
        return Quantisation(np.float32(self.scale[0]), int(self.zero_point[0]), self.data.dtype.name)

    def transposed(self, axes: Shape) -> "QuantConst":
        """numpy.transpose of data and axis."""
        axis = None if self.axis is None else axes.index(self.axis)
        return dataclasses.replace(self, data=self.data.transpose(axes), axis=axis)


@dataclass(frozen=True)
class Padding:
    """Pixels around an image that exist only on paper so far: top, left, bottom, right, their raw value, and the number
    that ONNX gives for it, which the raw value may only come near."""

    pads: tuple[int, int, int, int]
    value: int
    amount: float


@dataclass(frozen=True)
class Quant:
    """An 8-bit ONNX tensor of ``shape`` that lies in IR tensor ``tensor``. ``padding`` (NCHW only) is not in memory;
    ``shape`` includes it, the layout does not."""

    tensor: str
    shape: Shape
    layout: TensorLayout
    dtype: str
    padding: Padding | None = None

    @property
    def inner(self) -> "Quant":
        """Return what is in memory of it."""
        if self.padding is None:
            return self
        top, left, bottom, right = self.padding.pads
        n, c, h, w = self.shape
        return dataclasses.replace(self, shape=(n, c, h - top - bottom, w - left - right), padding=None)


def common_layout(shape: Shape, operands: Iterable[Quant]) -> TensorLayout:
    """Return in which order an operator on 8-bit ``operands``, each as large as its result or a part of that, should
    make its result of ``shape``: that of ONNX if the last axis of one of them is the innermost in memory, and none lies
    as an image does; else the default."""
    plain, as_image = False, False
    for quant in operands:
        orders = TensorLayout.plain(quant.shape), TensorLayout.default(quant.shape)
        if quant.padding is not None:
            as_image = True
        elif not orders[0].same_order(orders[1]):
            _, runs = quant.layout.canonical()
            plain |= runs[-1] == len(runs) - 1
            as_image |= quant.layout.same_order(orders[1])
    return TensorLayout.plain(shape) if plain and not as_image else TensorLayout.default(shape)


@dataclass(frozen=True)
class Real:
    """An 8-bit tensor seen through DequantizeLinear (and reshapes behind it); ``name`` is the ONNX tensor it read."""

    quant: Quant
    quantisation: Quantisation
    name: str

    @property
    def shape(self) -> Shape:
        """ONNX shape."""
        return self.quant.shape


@dataclass(frozen=True)
class Float:
    """A tensor of another dtype in memory, in ONNX order: a float model input or a host operator's result."""

    tensor: str
    shape: Shape
    dtype: str
