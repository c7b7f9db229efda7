"""Where with a constant condition: a causal mask, as exporters write it."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import onnx

from compiler.frontend.draft import Draft, Pending, Value, operator
from compiler.frontend.ops import move
from compiler.frontend.problems import Unsupported
from compiler.frontend.values import Const, Quant, QuantConst, Quantisation, Real, TensorLayout
from compiler.ir import Eltwise, Requantisation


@dataclass(frozen=True, kw_only=True)
class Masked(Pending):
    """``x`` where ``mask``, of its shape, is true, ``otherwise`` elsewhere."""

    x: Real
    mask: npt.NDArray[np.bool_]
    otherwise: float

    def emit(self, draft: Draft, target: Quantisation, name: str) -> Quant:
        """Return one ``ir.Eltwise``: the mask times what x is more than the other value, plus that. It is exact."""
        quant = draft.dense(self.x.quant)
        layout = move.own_axes(quant) or TensorLayout.default(self.base_shape)
        stored = move.requantised(draft, draft.relayout(quant, layout), self.x.quantisation, target)
        other = target.stored(self.otherwise)
        less = Quantisation(target.scale, other, target.dtype)
        x = draft.alias(Quant(stored, self.base_shape, layout, target.dtype), less).tensor
        ones = Quantisation(np.float32(1), 0, "uint8")
        mask = draft.new_constant(f"{name}:mask", self.mask.astype(np.uint8).transpose(layout.perm), ones)
        lo, hi = target.clamp(self.low, self.high)
        made = draft.new_tensor(name, self.base_shape, layout, target)
        keep = Requantisation(np.ones(1, np.float32), other, lo, hi)
        draft.add(Eltwise(self.node, [x, mask], made.tensor, kind_="mul", requantise=keep))
        return made


@operator("Where")
def where(draft: Draft, node: onnx.NodeProto) -> list[Value]:
    """Return a tensor where a constant condition is true, or where it is false, and a single constant elsewhere."""
    mask = draft.constant(node, 0, "condition")
    assert mask is not None
    values = [draft.value(name) for name in node.input[1:]]
    constant = next((index for index, value in enumerate(values) if isinstance(value, Const | QuantConst)), None)
    if constant is None:
        raise Unsupported("it chooses between two computed tensors; multiply them by constant masks, and add")
    other = values[constant]
    assert isinstance(other, Const | QuantConst)
    if other.array.size != 1:
        raise Unsupported(f"its constant {node.input[1 + constant]!r} has shape {other.shape}; it may be one value")
    x = draft.real(node.input[2 - constant])
    if np.broadcast_shapes(mask.shape, x.shape, other.shape) != x.shape:
        raise Unsupported(f"a condition of shape {mask.shape} broadcasts {x.shape}; expand the tensor in front")
    full = np.broadcast_to(mask if constant else ~mask, x.shape)
    return [Masked(
        shape=x.shape, node=node.name, roots=(x.quant.tensor,), x=x, mask=full, otherwise=other.array.item()
    )]  # fmt: skip
