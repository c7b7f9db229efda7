"""Functions of one 8-bit tensor, element by element: a 256-entry table evaluated with onnxruntime.

Any chain of the operators below between DequantizeLinear and QuantizeLinear is one table, also where constants take
part or one tensor comes together with a function of itself (x * sigmoid(x)).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import onnx

from compiler.frontend.draft import Draft, Pending, Value, operator
from compiler.frontend.problems import Unsupported, first_line
from compiler.frontend.source import OnnxSource, Signature
from compiler.frontend.values import Const, Quant, QuantConst, Quantisation, Real
from compiler.ir import Table
from sim.host import session

MOVES = (
    "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "DepthToSpace", "SpaceToDepth", "Identity", "Dropout",
)  # fmt: skip
#: They choose elements or add some, and change no value.
_EXTENTS = ("Pad", "Slice", "Split", "Gather", "GatherND", "Resize", "Upsample", "Expand", "Tile")
#: They change no value of axes with one element, and only over such ones does a table follow them.
_REDUCTIONS = ("ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum")
_UNARY = (
    "Abs", "Celu", "Ceil", "Cos", "Elu", "Erf", "Exp", "Floor", "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu", "Log",
    "Mish", "Neg", "Reciprocal", "Round", "Selu", "Sigmoid", "Sign", "Sin", "Softplus", "Softsign", "Sqrt", "Tanh",
    "ThresholdedRelu",
)  # fmt: skip
_WITH_CONSTANT = ("Div", "Pow")


@dataclass(frozen=True, kw_only=True)
class Pointwise(Pending):
    """A function of ``x``; the ONNX nodes between x and the result define it."""

    clampable: ClassVar[bool] = False
    x: Real

    def emit(self, draft: Draft, target: Quantisation, name: str) -> Quant:
        """Return one ``ir.Table``."""
        return tabulated(draft, self.x, self.node, target, name, self.base_shape)


def identity(x: Real, node: str) -> Pointwise:
    """``x`` itself, to be stored with other parameters."""
    return Pointwise(shape=x.shape, node=node, roots=(x.quant.tensor,), x=x)


def tabulated(draft: Draft, x: Real, node: str, target: Quantisation, name: str, shape: tuple[int, ...]) -> Quant:
    """Return the 8-bit ONNX tensor ``name``, a function of ``x``, in x's layout."""
    quant = draft.dense(x.quant)
    table = evaluated(draft.source, x.name, quant.dtype, name)
    made = draft.new_tensor(name, shape, quant.layout, target)
    draft.graph.tensors[made.tensor].shape = draft.graph.tensors[quant.tensor].shape
    draft.add(Table(node, [quant.tensor], made.tensor, table=table))
    return made


def evaluated(source: OnnxSource, begin: str, dtype: str, end: str) -> npt.NDArray[np.uint8]:
    """Return the table of the nodes that compute 8-bit ONNX tensor ``end`` from ``begin``, which is of ``dtype``. Nodes
    that only move elements are passed over. Raises :class:`Unsupported` where onnxruntime cannot evaluate them."""
    alias: dict[str, str] = {}
    nodes = []
    for original in source.between([end], [begin]):
        if original.op_type in (*MOVES, *_EXTENTS, *_REDUCTIONS) and end not in original.output:
            alias |= dict.fromkeys(original.output, alias.get(original.input[0], original.input[0]))
            continue
        node = onnx.NodeProto()
        node.CopyFrom(original)
        node.input[:] = [alias.get(name, name) for name in original.input]
        nodes.append(node)
    elem_type = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    model = source.submodel(nodes, [(begin, Signature(elem_type, (256,)))], [end])
    try:
        result = session(model).run(None, {begin: np.arange(256, dtype=np.uint8).view(dtype)})[0]
    except Exception as error:  # onnxruntime's exceptions have no common base class
        raise Unsupported(f"onnxruntime cannot evaluate it: {first_line(error)}") from None
    return np.ascontiguousarray(result).reshape(256).view(np.uint8)


def requantisation_table(source: Quantisation, target: Quantisation) -> npt.NDArray[np.uint8]:
    """Stored values of ``source`` as stored values of ``target``, in float32 as onnxruntime's look-up tables."""
    stored = np.arange(256, dtype=np.uint8).view(source.dtype).astype(np.int32)
    real = (stored - source.zero_point).astype(np.float32) * source.scale
    result = np.rint(real / target.scale) + target.zero_point
    return np.clip(result, *target.limits).astype(target.dtype).view(np.uint8)


@operator(*_UNARY, *_WITH_CONSTANT)
@operator("Gelu", "QuickGelu", domain="com.microsoft")
def extended(draft: Draft, node: onnx.NodeProto) -> list[Value]:
    """Return the function that ``node`` computes of the only tensor that its inputs depend on."""
    root: Real | None = None
    for name in dict.fromkeys(filter(None, node.input)):
        value = draft.value(name)
        if isinstance(value, Const | QuantConst):
            if value.array.size != 1:
                raise Unsupported(f"its constant {name!r} has shape {value.shape}; a table needs single values")
            continue
        if isinstance(value, Pointwise) and not value.reshapes:
            found, shape = value.x, value.shape
        else:
            found, shape = draft.real(name), value.shape
        if root is not None and (found.quant != root.quant or found.quantisation != root.quantisation):
            raise Unsupported("it combines several tensors; the accelerator adds and multiplies two at a time")
        root, result_shape = found, shape
    assert root is not None
    return [Pointwise(shape=result_shape, node=node.name, roots=(root.quant.tensor,), x=root)]


@operator("Relu", "Clip")
def clamp(draft: Draft, node: onnx.NodeProto) -> list[Value]:
    """Part of the requantisation behind an operator, a table elsewhere."""
    value = draft.value(node.input[0])
    if isinstance(value, Quant):
        params = draft.quantisation(value.tensor)
        real = Real(value, params, node.input[0])
        return [tabulated(draft, real, node.name, params, node.output[0], value.shape)]
    if isinstance(value, Pending) and value.clampable:
        return [value.clamped(*_limits(draft, node))]
    return extended(draft, node)


def _limits(draft: Draft, node: onnx.NodeProto) -> tuple[float, float]:
    if node.op_type == "Relu":
        return 0.0, np.inf
    given = {attribute.name: attribute.f for attribute in node.attribute}  # opset < 11
    low, high = draft.constant(node, 1, "minimum"), draft.constant(node, 2, "maximum")
    return (
        float(low.reshape(-1)[0]) if low is not None else given.get("min", -np.inf),
        float(high.reshape(-1)[0]) if high is not None else given.get("max", np.inf),
    )
