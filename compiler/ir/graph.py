"""Graphs of quantised tensors and operators, and what every operator says of itself.

Everything is *physical*: tensors are dense, row-major, channels last ((N, H, W, C) for images, (M, C) for matrices);
the front end has already resolved ONNX layouts, folded constants and fused what belongs together. Operators state
their integer arithmetic in full, so that a back end, the functional model and a NumPy reference need nothing else.

Requantisation, everywhere: ``clip(rint(float32(s) * scale) + zero_point, lo, hi)`` with float32 products and round
half to even; then, if there is a table, ``table[y & 0xff]``.
"""

import enum
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import networkx as nx
import numpy as np
import numpy.typing as npt

EIGHT_BIT = ("int8", "uint8")


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
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize

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

    @classmethod
    def unchanged(cls, dtype: str, zero_point: int) -> "Requantisation":
        """Return that of values that stay what they are, whose ``zero_point`` was subtracted."""
        info = np.iinfo(dtype)
        return cls(np.ones(1, np.float32), zero_point, int(info.min), int(info.max))

    def of(self, total: npt.NDArray, dtype: str, scale: npt.NDArray | None = None) -> npt.NDArray:
        """Return integers ``total`` in 8 bits; with another ``scale``, if that is given."""
        product = total.astype(np.float32) * (self.scale if scale is None else scale)
        result = np.clip(np.rint(product) + np.float32(self.zero_point), self.lo, self.hi).astype(dtype)
        return result if self.table is None else self.table[result.view(np.uint8)].view(dtype)

    def problems(self, output: Tensor, channels: int) -> Iterator[str]:
        """Yield what would keep it from making ``output``, of so many channels."""
        if self.scale.dtype != np.float32 or self.scale.shape not in ((1,), (channels,)):
            yield f"scale is {self.scale.dtype} {self.scale.shape}, not float32 (1,) or ({channels},)"
        if not np.isfinite(self.scale).all():
            yield "a scale is not finite"
        yield from clamp_problems(self.lo, self.hi, output)
        if not -(2**15) <= self.zero_point < 2**15:
            yield f"zero point {self.zero_point} is not int16"
        if self.table is not None and (self.table.shape != (256,) or self.table.dtype != np.uint8):
            yield "table is not 256 bytes"


def clamp_problems(lo: int, hi: int, output: Tensor) -> Iterator[str]:
    """Yield what is wrong with limits of the values of ``output``."""
    info = np.iinfo(output.dtype)
    if not info.min <= lo <= hi <= info.max:
        yield f"clamp [{lo}, {hi}] is not within {output.dtype}"


@dataclass(frozen=True)
class TensorValue:
    """An input of an operator with its value, as it lies in memory."""

    tensor: Tensor
    value: npt.NDArray

    @property
    def shaped(self) -> npt.NDArray:
        """Return the value in the shape of its tensor."""
        return self.value.reshape(self.tensor.shape)

    @property
    def centred(self) -> npt.NDArray[np.int64]:
        """Return the value minus its zero point, as (N, H, W, C)."""
        return self.value.reshape(self.tensor.nhwc).astype(np.int64) - self.tensor.zero_point

    @property
    def real(self) -> npt.NDArray[np.float64]:
        """Return the real numbers that the value stands for, as (N, H, W, C)."""
        return self.centred * np.float64(np.float32(self.tensor.scale))


class GoldenRule(enum.Enum):
    """How near the result of an operator must be to that of onnxruntime: see :mod:`compiler.golden`."""

    EXACT = "equal"
    INTEGER = "equal, where onnxruntime has an integer kernel"
    NEAR = "near"
    WRITTEN = "near the nodes as they are written, in float"


@dataclass
class Operation:
    """Is an operator: ``inputs`` and ``output`` name tensors; ``nodes`` are the ONNX nodes it stands for.

    A kind of operator is a subclass that says all that holds of it wherever it runs: its parameters, what must be true
    of them (``_problems``), the integers it computes (``_compute``, which all back ends equal bit for bit), how near
    those are to onnxruntime's (``rule``), and whatever else a class variable here says.
    """

    name: str
    inputs: list[str]
    output: str
    nodes: list[str] = field(default_factory=list, kw_only=True)
    operands: ClassVar[int] = 1  #: how many inputs it has; 0: any number
    rule: ClassVar[GoldenRule] = GoldenRule.NEAR
    renames: ClassVar[bool] = False  #: its result is its input, under another name and shape

    @property
    def kind(self) -> str:
        """Lower-case class name, as reports show it."""
        return type(self).__name__.lower()

    @property
    def results(self) -> list[str]:
        """Return the tensors it computes."""
        return [self.output]

    @property
    def places(self) -> dict[str, str]:
        """Return the results that take the bytes of an input, which it changes, and that input."""
        return {}

    def problems(self, inputs: Sequence[Tensor], output: Tensor) -> Iterator[str]:
        """Yield what is wrong with its parameters, or with the number and shapes of its tensors."""
        if self.operands and len(inputs) != self.operands:
            yield f"{len(inputs)} inputs"
        else:
            yield from self._problems(inputs, output)

    def compute(self, inputs: Sequence[TensorValue], output: Tensor) -> npt.NDArray:
        """Return the value of ``output`` as it lies in memory."""
        return np.ascontiguousarray(self._compute(inputs, output).reshape(output.shape))

    def _problems(self, inputs: Sequence[Tensor], output: Tensor) -> Iterator[str]:
        yield "unknown kind of operator"

    def _compute(self, inputs: Sequence[TensorValue], output: Tensor) -> npt.NDArray:
        """Accumulations are exact: products of 9-bit operands are summed in float64, which holds integers below
        2^53."""
        raise NotImplementedError(f"nothing computes a {self.kind}")

    def before_rounding(self, inputs: Sequence[TensorValue], output: Tensor) -> npt.NDArray | None:
        """Return the real result, as (N, H, W, C); None where onnxruntime's rounding is not in doubt."""
        return None

    def constants_error(self, output: Tensor) -> npt.NDArray[np.float64]:
        """Return how far at most the real result is off, for each channel or for all, because constants became
        integers."""
        return np.zeros(1)


@dataclass
class Port:
    """A model input or output and its host-side conversion; see ``hw.image.image.PortInfo``."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    tensor: str
    perm: tuple[int, ...]
    quantise: bool


@dataclass(frozen=True)
class NumberRange:
    """A whole number that each inference gives: ``low`` to ``high``."""

    low: int
    high: int


@dataclass
class Graph:
    """A model: ``ops`` in a topological order, ``tensors`` by name. ``numbers``: those tensors that are numbers which
    jobs get as parameters. One that is no input says how many rows of a state are filled."""

    name: str
    tensors: dict[str, Tensor] = field(default_factory=dict)
    ops: list[Operation] = field(default_factory=list)
    inputs: list[Port] = field(default_factory=list)
    outputs: list[Port] = field(default_factory=list)
    numbers: dict[str, NumberRange] = field(default_factory=dict)
    source: Any = field(default=None, repr=False, compare=False)  #: the ONNX model, for ``compiler.golden``

    def producer(self, tensor: str) -> Operation | None:
        """Return the operator that computes ``tensor``; None for inputs and constants."""
        for op in self.ops:
            if tensor in op.results:
                return op
        return None

    def roots(self) -> dict[str, str]:
        """Return tensor by tensor the one whose bytes it is: a reshape makes another name only."""
        roots = {name: name for name in self.tensors}
        for op in self.ops:
            if op.renames:
                roots[op.output] = roots[op.inputs[0]]
        return roots

    def homes(self) -> dict[str, str]:
        """Return tensor by tensor the one whose bytes it has: :meth:`roots`, and what is changed in place."""
        homes = {name: name for name in self.tensors}
        for op in self.ops:
            changed = {op.output: op.inputs[0]} if op.renames else op.places
            homes |= {name: homes[before] for name, before in changed.items()}
        return homes

    def dataflow(self) -> nx.DiGraph:
        """Return the operators as nodes (by name, attribute ``op``), an edge for each tensor (attribute ``tensor``)."""
        flow: nx.DiGraph = nx.DiGraph()
        made = {}
        for op in self.ops:
            flow.add_node(op.name, op=op)
            for name in op.results:
                made[name] = op.name
        for op in self.ops:
            for name in op.inputs:
                if name in made:
                    flow.add_edge(made[name], op.name, tensor=name)
        return flow
