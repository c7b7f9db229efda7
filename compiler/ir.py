"""The compiler's intermediate representation: quantised tensors and the operators the accelerator runs.

Everything is *physical*: tensors are dense, row-major, channels last ((N, H, W, C) for images, (M, C) for matrices);
the front end has already resolved ONNX layouts, folded constants and fused what belongs together. Operators state
their integer arithmetic in full, so that a back end, the functional model and a NumPy reference need nothing else.

Requantisation, everywhere: ``clip(rint(float32(s) * scale) + zero_point, lo, hi)`` with float32 products and round
half to even; then, if there is a table, ``table[y & 0xff]``.
"""

from dataclasses import dataclass, field
from typing import Any

import networkx as nx
import numpy as np
import numpy.typing as npt


class CompileError(ValueError):
    """The model cannot be compiled; names the file, node and reason, and the way out."""


@dataclass
class Tensor:
    """A value of the graph. ``data`` is set for constants. ``onnx_name``/``view``/``perm``: the ONNX tensor it equals
    after ``numpy.transpose(onnx_value.reshape(view), perm).reshape(shape)`` (view () = the ONNX shape, perm () = same
    order), for layer-by-layer checks."""

    name: str
    shape: tuple[int, ...]
    dtype: str  #: int8 or uint8; float32, int32, int64 only between host operators
    scale: float = 1.0
    zero_point: int = 0
    data: npt.NDArray | None = None
    onnx_name: str = ""
    perm: tuple[int, ...] = ()
    view: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """Return the bytes."""
        return int(np.prod(self.shape, dtype=np.int64)) * np.dtype(self.dtype).itemsize

    @property
    def nhwc(self) -> tuple[int, int, int, int]:
        """Return the shape as (N, H, W, C): (M, C) becomes (1, 1, M, C), (N, M, C) becomes (N, 1, M, C)."""
        lead = self.shape[:-1]
        if len(lead) > 3:
            lead = (int(np.prod(lead[:-2])), *lead[-2:])
        if len(lead) == 2:
            lead = (lead[0], 1, lead[1])
        return (*(1,) * (3 - len(lead)), *lead, self.shape[-1])  # type: ignore[return-value]


@dataclass
class Requantisation:
    """How an int32 result becomes the output. ``scale``: float32, one per output channel or a single one."""

    scale: npt.NDArray[np.float32]
    zero_point: int
    lo: int
    hi: int
    table: npt.NDArray[np.uint8] | None = None  #: 256 raw bytes, indexed by the raw byte of the clamped result


@dataclass
class Operation:
    """Is an operator: ``inputs`` and ``output`` name tensors; ``nodes`` are the ONNX nodes it stands for."""

    name: str
    inputs: list[str]
    output: str
    nodes: list[str] = field(default_factory=list, kw_only=True)

    @property
    def kind(self) -> str:
        """Lower-case class name, as reports show it."""
        return type(self).__name__.lower()


@dataclass
class Conv(Operation):
    """Convolution, grouped and depthwise ones too, and fully connected layers (1x1 on (1, 1, M, C)).

    ``acc[n,y,x,o] = bias[o] + sum (X[n, y*sh + i*dh - pad_t, x*sw + j*dw - pad_l, c] - x_zp) * (W[o,i,j,c] - w_zp)``;
    outside of X the difference is 0. Groups split input and output channels evenly, in order.
    """

    weights: npt.NDArray  #: (O, kh, kw, I / groups), int8 or uint8
    weight_zero_point: int
    bias: npt.NDArray[np.int32]  #: (O,)
    requantise: Requantisation
    strides: tuple[int, int] = (1, 1)
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)  #: top, left, bottom, right
    dilations: tuple[int, int] = (1, 1)
    groups: int = 1
    repeated: int = 0  #: pixels of the result that another part of the same operator computes too, if it was split


@dataclass
class Eltwise(Operation):
    """``add``: s = (A - a_zp)*ma + (B - b_zp)*mb + bias; ``mul``: s = (A - a_zp)*(B - b_zp) + bias. ma, mb are integers
    below 2^22 in magnitude chosen so that ``requantise.scale`` (one value) makes the exact real result. The bias
    (int32, the vector unit's) carries an output zero point that is added *before* rounding, as onnxruntime's kernels
    do; ``requantise.zero_point`` is then 0. B has A's shape, or (N, 1, 1, C) or (1, ..., 1): broadcast over pixels, or
    over everything."""

    kind_: str
    requantise: Requantisation
    ma: int = 1
    mb: int = 1
    bias: int = 0


@dataclass
class Pool(Operation):
    """``max``: maximum of the window, pads never win. ``avg``: sum of (X - x_zp) over the window's valid pixels,
    requantised with ``requantise.scale`` (one value) / count, where count is the number of valid pixels, or the
    window size with ``count_include_pad``. The division is float32: ``float32(scale) / float32(count)``. ``bias`` (avg)
    is added to the sum once per counted pixel, so it is the same as subtracting x_zp - bias instead of x_zp."""

    kind_: str
    kernel: tuple[int, int]
    strides: tuple[int, int]
    pads: tuple[int, int, int, int]
    requantise: Requantisation
    count_include_pad: bool = False
    bias: int = 0


@dataclass
class Table(Operation):
    """Any unary function or requantisation of 8-bit values: ``y = table[x & 0xff]`` on raw bytes."""

    table: npt.NDArray[np.uint8]


@dataclass
class Product(Operation):
    """Products of two computed matrices, one for each of ``heads`` heads of each image.

    ``acc[h, i, j] = sum over k of (A[h, i, k] - a_zp) * (B[h, k, j] - b_zp)``. An operand that is ``joined`` (A, B,
    result) holds the heads side by side: (N, rows, heads * columns); one that is not holds them one after the other:
    (N * heads, rows, columns). With ``transposed`` B lies as (columns of the result, K) rather than (K, columns).

    A joined A or B holds ``of`` heads, of which those from number ``first`` on take part."""

    heads: int
    joined: tuple[bool, bool, bool]
    transposed: bool
    requantise: Requantisation  #: one scale
    first: int = 0
    of: int = 0  #: 0: as many as take part

    @property
    def all_heads(self) -> int:
        """Heads that joined operands hold."""
        return self.of or self.heads


@dataclass
class Softmax(Operation):
    """Softmax over the last axis. With ``d = max - x`` and ``sums``, ``values`` (int32 tables of 256):
    ``y = clip(rint(float32(values[d]) * f) + zero_point, lo, hi)`` with
    ``f = row_factor(sum of sums[d], False, exponent)`` (see :mod:`hw.contract.row_function`)."""

    sums: npt.NDArray[np.int32]
    values: npt.NDArray[np.int32]
    exponent: int
    zero_point: int
    lo: int
    hi: int


@dataclass
class LayerNorm(Operation):
    """Layer normalisation over the last axis of C elements. With ``S`` and ``Q`` the sums of ``x - x_zp`` and of its
    square: ``f = row_factor(C * Q - S * S + epsilon, True, exponent)``, ``t = rint(float32(C * (x - x_zp) - S) * f)``
    clamped to 24 bits, ``y = clip(rint(float32(t + bias) * scale) + zero_point, lo, hi)`` with bias and scale per
    channel; scales may be negative."""

    epsilon: int
    exponent: int
    bias: npt.NDArray[np.int32]
    requantise: Requantisation


@dataclass
class Concat(Operation):
    """Join along physical ``axis``; all inputs already have the output's quantisation."""

    axis: int


@dataclass
class Slice(Operation):
    """A stretch of physical ``axis`` from index ``first`` on, as long as the result's."""

    axis: int
    first: int


@dataclass
class Permute(Operation):
    """``numpy.transpose(x, perm)`` on physical axes, dense result."""

    perm: tuple[int, ...]


@dataclass
class Reshape(Operation):
    """Same bytes, other shape; costs nothing."""


@dataclass
class Pad(Operation):
    """Constant padding of H and W (top, left, bottom, right) with raw byte value ``value``."""

    pads: tuple[int, int, int, int]
    value: int


@dataclass
class Host(Operation):
    """ONNX nodes that run on the CPU. ``model`` is a serialised ONNX model whose input and output names are
    ``inputs`` and ``outputs``; tensors between host operators may have any dtype."""

    model: bytes
    outputs: list[str]
    reason: str


@dataclass
class Port:
    """A model input or output and its host-side conversion; see ``hw.image.image.PortInfo``."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    tensor: str
    perm: tuple[int, ...]
    quantise: bool


@dataclass
class Graph:
    """A model: ``ops`` in a topological order, ``tensors`` by name."""

    name: str
    tensors: dict[str, Tensor] = field(default_factory=dict)
    ops: list[Operation] = field(default_factory=list)
    inputs: list[Port] = field(default_factory=list)
    outputs: list[Port] = field(default_factory=list)
    source: Any = field(default=None, repr=False, compare=False)  #: the ONNX model, for ``compiler.golden``

    def producer(self, tensor: str) -> Operation | None:
        """Return the operator that computes ``tensor``; None for inputs and constants."""
        for op in self.ops:
            if tensor == op.output or (isinstance(op, Host) and tensor in op.outputs):
                return op
        return None

    def roots(self) -> dict[str, str]:
        """Return tensor by tensor the one whose bytes it is: a reshape makes another name only."""
        roots = {name: name for name in self.tensors}
        for op in self.ops:
            if isinstance(op, Reshape):
                roots[op.output] = roots[op.inputs[0]]
        return roots

    def dataflow(self) -> nx.DiGraph:
        """Return the operators as nodes (by name, attribute ``op``), an edge for each tensor (attribute ``tensor``)."""
        flow: nx.DiGraph = nx.DiGraph()
        made = {}
        for op in self.ops:
            flow.add_node(op.name, op=op)
            for name in op.outputs if isinstance(op, Host) else [op.output]:
                made[name] = op.name
        for op in self.ops:
            for name in op.inputs:
                if name in made:
                    flow.add_edge(made[name], op.name, tensor=name)
        return flow
