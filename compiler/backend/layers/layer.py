"""What the back end executes: operators of the graph in the few forms the units know, still without addresses."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from compiler.ir import Eltwise, Op, Requantise
from hw.contract.isa import VecOp


@dataclass
class Layer:
    """A step of the model. ``inputs`` and ``output`` are names of tensors."""

    op: Op
    inputs: list[str]
    output: str
    kind: str

    @property
    def name(self) -> str:
        """Name in reports: that of the operator."""
        return self.op.name

    @property
    def nodes(self) -> list[str]:
        """The ONNX nodes it stands for."""
        return list(self.op.nodes)


@dataclass(frozen=True)
class ChannelTile:
    """Output channels computed side by side, and the input channels they need."""

    out: int
    outs: int
    first: int
    channels: int


@dataclass
class OutputArea:
    """A rectangle of output pixels with its own bias and scale (one of each per output channel)."""

    y: int
    rows: int
    x: int
    cols: int
    bias: npt.NDArray[np.int32]
    scale: npt.NDArray[np.float32]


@dataclass(frozen=True)
class Addition:
    """A sum that a convolution adds to its tiles before they leave LV1: ``own`` is the convolution's result, which
    exists nowhere else, ``other`` the second operand; ``m_own`` and ``m_other`` are their multipliers."""

    op: Eltwise
    own: str
    other: str
    m_own: int
    m_other: int


@dataclass
class ConvLayer(Layer):
    """Sums of products on the MAC arrays. ``weights``: (O, kh, kw, I per group); ``groups`` as in the IR.

    With ``addition``, its other operand is the second input and its result the output.
    """

    weights: npt.NDArray
    weight_zero_point: int
    regions: list[OutputArea]
    requantise: Requantise  #: its scale is not used, those of the regions are
    depthwise: bool
    tiles: list[ChannelTile]
    groups: int
    strides: tuple[int, int]
    pads: tuple[int, int]  #: top, left
    dilations: tuple[int, int]
    flat: bool  #: one pixel in, one pixel out: images may be taken as a single row of pixels
    addition: Addition | None = None

    @property
    def kernel(self) -> tuple[int, int]:
        """Rows and columns of the kernel."""
        return self.weights.shape[1], self.weights.shape[2]

    @property
    def nodes(self) -> list[str]:
        """The ONNX nodes it stands for."""
        return [*self.op.nodes, *(self.addition.op.nodes if self.addition else ())]


@dataclass
class EltwiseLayer(Layer):
    """A vector operation on one or two tensors, byte by byte. ``broadcast`` of B: "", "pixels" or "all"."""

    op_code: VecOp
    requantise: Requantise
    ma: int = 1
    mb: int = 1
    bias: int = 0
    broadcast: str = ""
    raw: bool = False  #: A is taken as raw bytes, without zero point


@dataclass
class MaxLayer(Layer):
    """Maximum over windows."""

    kernel: tuple[int, int]
    strides: tuple[int, int]
    pads: tuple[int, int]  #: top, left
    requantise: Requantise


@dataclass
class PadLayer(Layer):
    """Constant padding of rows and columns: (top, left)."""

    pads: tuple[int, int]
    value: int


@dataclass
class StridedCopy:
    """A strided copy from dense tensor ``src``: loops of (count, source stride, destination stride), outermost first,
    from the start of the source to byte ``offset`` of the destination."""

    src: str
    offset: int
    dims: list[tuple[int, int, int]]


@dataclass
class MoveLayer(Layer):
    """Copies that change the order of bytes (concatenation, permutation)."""

    moves: list[StridedCopy] = field(default_factory=list)


@dataclass
class HostLayer(Layer):
    """An operator that runs on the CPU."""
