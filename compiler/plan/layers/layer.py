"""Layers: the operators of a model in the few forms that the units know, still without addresses."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from compiler.ir import Conv, Eltwise, Graph, Host, Operation, Requantisation, maximum_steps, spanned
from hw.contract.isa import VecOp
from hw.image import ParameterInfo


@dataclass(eq=False)
class Layer:
    """Is a step of the model. ``inputs`` and ``output`` are names of tensors. The first ``pieces`` inputs, their
    channels one behind the other, are what it reads as its first operand."""

    op: Operation
    inputs: list[str]
    output: str
    kind: str
    pieces: int = field(default=1, kw_only=True)
    strided: ClassVar[bool] = True  #: whether it reads and writes tensors with gaps between pixels

    @property
    def name(self) -> str:
        """Return the name in reports, which is that of the operator."""
        return self.op.name

    @property
    def nodes(self) -> list[str]:
        """Return the ONNX nodes that the layer stands for."""
        return list(self.op.nodes)

    @property
    def outputs(self) -> list[str]:
        """Return the tensors it writes."""
        return [self.output]

    @property
    def replaceable(self) -> list[str]:
        """Return the operands whose place the result may take if they die here: every byte is read once, just before
        the result at its place is written."""
        return []

    @property
    def numbers(self) -> list[ParameterInfo]:
        """Return the parameters that its jobs need, which follow from numbers of the inference."""
        return []

    def macs(self, graph: Graph) -> int:
        """Return the multiply-accumulates, as the model states them."""
        return 0


@dataclass(frozen=True)
class ChannelTile:
    """Output channels computed side by side, and the input channels they need."""

    out: int
    outs: int
    first: int
    channels: int


@dataclass
class OutputArea:
    """Is a rectangle of output pixels with its own bias and scale (one of each per output channel)."""

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
    broadcast: bool = False  #: the second operand is one pixel, the same for all
    constant: npt.NDArray | None = None  #: that pixel if the model knows it: then it comes with the parameters


@dataclass(eq=False)
class ConvLayer(Layer):
    """Sums of products on the MAC arrays. ``weights``: (O, kh, kw, I per group); ``groups`` as in the IR.

    With ``addition``, its other operand is the second input unless it is constant, and its result the output.
    """

    weights: npt.NDArray
    weight_zero_point: int
    areas: list[OutputArea]
    requantise: Requantisation  #: its scale is not used, those of the areas are
    depthwise: bool
    tiles: list[ChannelTile]
    groups: int
    strides: tuple[int, int]
    pads: tuple[int, int]  #: top, left
    dilations: tuple[int, int]
    flat: bool  #: one pixel in, one pixel out: images may be taken as a single row of pixels
    addition: Addition | None = None
    pe_channels: int = 0  #: input channels that a PE reads of a tile, if groups are packed; 0: all PEs read all
    int4: bool = False  #: its weights are int4, and their zero point is 0
    uniform: bool = False  #: a depthwise one with equal weights, as an average pool: parts of its kernel are alike

    @property
    def by_channels(self) -> bool:
        """Return whether a channel tile reads input channels of its own, which hardly another tile reads."""
        return self.depthwise or self.pe_channels > 0

    @property
    def kernel(self) -> tuple[int, int]:
        """Return the rows and columns of the kernel."""
        return self.weights.shape[1], self.weights.shape[2]

    @property
    def nodes(self) -> list[str]:
        """Return the ONNX nodes that the layer stands for."""
        return [*self.op.nodes, *(self.addition.op.nodes if self.addition else ())]

    @property
    def replaceable(self) -> list[str]:
        """Return the other operand of an addition of tensors: the sum is stored tile by tile, right after that was
        read."""
        return [self.addition.other] if self.addition and not self.addition.broadcast else []

    @property
    def table(self) -> npt.NDArray[np.uint8] | None:
        """Its table: that of the products, or that of the addition. It has one at most."""
        if self.requantise.table is None and self.addition:
            return self.addition.op.requantise.table
        return self.requantise.table

    def macs(self, graph: Graph) -> int:
        """Return the multiply-accumulates of a convolution, those left out that another part of it counts; 0 for
        average pools and what resizes."""
        if not isinstance(self.op, Conv) or not self.op.counts:
            return 0
        n, h, w, _ = graph.tensors[self.output].nhwc
        return (n * h * w - self.op.repeated) * int(self.op.weights.size)


@dataclass(eq=False)
class EltwiseLayer(Layer):
    """A vector operation on one or two tensors, byte by byte. ``broadcast`` of B: "", "pixels" or "all"."""

    op_code: VecOp
    requantise: Requantisation
    ma: int = 1
    mb: int = 1
    bias: int = 0
    broadcast: str = ""
    raw: bool = False  #: A is taken as raw bytes, without zero point

    @property
    def replaceable(self) -> list[str]:
        """Return all operands but one that is broadcast."""
        return self.inputs[: 1 if self.broadcast else 2]


@dataclass(eq=False)
class WindowLayer(Layer):
    """A maximum or sum over windows: ``op_code``. Only maxima have windows that stand over the edge."""

    op_code: VecOp
    kernel: tuple[int, int]
    strides: tuple[int, int]
    pads: tuple[int, int]  #: top, left
    requantise: Requantisation
    bias: int = 0  #: what is added to a sum
    dilations: tuple[int, int] = (1, 1)

    @property
    def span(self) -> tuple[int, int]:
        """Return how many rows and columns a window reaches over."""
        return spanned(self.kernel, self.dilations)

    def steps(self, cols: int) -> float:
        """Return the vectors read for each of the result, ``cols`` of which are side by side."""
        if self.op_code is VecOp.MAX:
            return maximum_steps(self.kernel, self.strides[1], self.span[1], cols)
        return self.kernel[0] * self.kernel[1]


@dataclass(eq=False)
class ProductLayer(Layer):
    """Products of computed matrices on the MAC arrays, see :class:`compiler.ir.Product`."""

    heads: int
    first: int
    all_heads: int
    joined: tuple[bool, bool, bool]
    transposed: bool
    requantise: Requantisation

    def macs(self, graph: Graph) -> int:
        """Return the multiply-accumulates."""
        a, y = graph.tensors[self.inputs[0]].nhwc, graph.tensors[self.output]
        return y.size * (a[3] // self.all_heads if self.joined[0] else a[3])


@dataclass(frozen=True)
class FilledRow:
    """How many elements of a row there are: ``vectors`` of lanes but one, elements of the ``last`` vector (0: all), and
    the ``end`` of all."""

    vectors: ParameterInfo
    last: ParameterInfo
    end: ParameterInfo


@dataclass(eq=False)
class SoftmaxLayer(Layer):
    """Softmax of rows, see :class:`compiler.ir.Softmax`."""

    sums: npt.NDArray[np.int32]
    values: npt.NDArray[np.int32]
    exponent: int
    zero_point: int
    lo: int
    hi: int
    filled: FilledRow | None = None  #: the elements of a row, if an inference says how many there are

    @property
    def replaceable(self) -> list[str]:
        """Return the scores."""
        return self.inputs

    @property
    def numbers(self) -> list[ParameterInfo]:
        """Return the parameters of the elements of a row."""
        return [self.filled.vectors, self.filled.last, self.filled.end] if self.filled else []


@dataclass(eq=False)
class NormLayer(Layer):
    """Layer normalisation of rows, see :class:`compiler.ir.LayerNorm`, or, if not ``centred``, root mean square
    normalisation, see :class:`compiler.ir.RmsNorm`."""

    epsilon: int
    exponent: int
    bias: npt.NDArray[np.int32]
    requantise: Requantisation
    centred: bool = True


@dataclass(eq=False)
class PadLayer(Layer):
    """Constant padding of rows and columns: (top, left)."""

    pads: tuple[int, int]
    value: int


@dataclass
class StridedCopy:
    """A strided copy from dense tensor ``src``: loops of (count, source stride, destination stride), outermost first,
    from byte ``start`` of the source to byte ``offset`` of the destination, the layer's output if ``dst`` does not say
    another; bytes that follow from a number of the inference come on top."""

    src: str
    offset: int
    dims: list[tuple[int, int, int]]
    start: int = 0
    more_start: ParameterInfo | None = None
    more_offset: ParameterInfo | None = None
    dst: str = ""


@dataclass(eq=False)
class MoveLayer(Layer):
    """Copies that change the order of bytes (concatenation, permutation) or leave some out."""

    copies: list[StridedCopy] = field(default_factory=list)
    strided: ClassVar[bool] = False

    @property
    def numbers(self) -> list[ParameterInfo]:
        """Return the parameters of its copies."""
        return [one for copy in self.copies for one in (copy.more_start, copy.more_offset) if one]


@dataclass(eq=False)
class AppendLayer(MoveLayer):
    """Rows behind those of a state, on chip and in DRAM."""

    @property
    def outputs(self) -> list[str]:
        """Return both tensors that it writes."""
        return [copy.dst for copy in self.copies]


@dataclass(eq=False)
class LoadLayer(MoveLayer):
    """An input of the model, or a state, as it is, from DRAM to LV2. ``ahead``: prologues bring it, while something
    else computes; nothing that the inference does before changes it."""

    ahead: bool = False


@dataclass(eq=False)
class RefillLayer(LoadLayer):
    """A tensor that was in LV2 before, from what DRAM keeps of it back to LV2."""


@dataclass(eq=False)
class StoreLayer(MoveLayer):
    """A tensor, as it is, from LV2 to DRAM, which keeps it for those that read it later."""


@dataclass(eq=False)
class HostLayer(Layer):
    """An operator that runs on the CPU."""

    strided: ClassVar[bool] = False

    @property
    def outputs(self) -> list[str]:
        """Return the tensors it writes, maybe several."""
        return list(self.op.outputs) if isinstance(self.op, Host) else [self.output]
