"""What is known about ONNX tensors during the walk over the graph: constants, 8-bit tensors in memory, their
dequantised views, and real tensors of host operators. Results in no memory yet are in :mod:`compiler.frontend.draft`.
"""

import dataclasses
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from compiler.frontend.layout import Shape, TensorLayout


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
