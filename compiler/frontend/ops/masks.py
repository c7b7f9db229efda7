"""Where with a constant condition, and Add of a constant that leaves values or takes them below all that is stored: a
causal mask, as exporters write it."""

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


def summed(
    node: str, x: Real, constant: QuantConst, target: Quantisation, low: float, high: float
) -> Masked | None:  # fmt: skip
    """Return ``x`` plus a constant of its shape, stored as ``target``, if each element of that is zero or so low that
    the sum is less than all stored values; None if it is another constant. As a sum, the steps of the constant would be
    too coarse for ``x``."""
    added = np.broadcast_to(constant.array, x.shape)
    kept = added == 0
    lowest = (target.limits[0] - 1 - target.zero_point) * float(target.scale)
    largest = (x.quantisation.limits[1] - x.quantisation.zero_point) * float(x.quantisation.scale)
    if kept.all() or not (added[~kept].astype(np.float64) + largest <= lowest).all():
        return None
    return Masked(
        shape=x.shape, node=node, roots=(x.quant.tensor,), x=x, mask=kept, otherwise=lowest, low=low, high=high
    )


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
    if np.unique(other.array).size != 1:
        raise Unsupported(f"its constant {node.input[1 + constant]!r} has shape {other.shape}; it may be one value")
    x = draft.real(node.input[2 - constant])
    if np.broadcast_shapes(mask.shape, x.shape, other.shape) != x.shape:
        raise Unsupported(f"a condition of shape {mask.shape} broadcasts {x.shape}; expand the tensor in front")
    full = np.broadcast_to(mask if constant else ~mask, x.shape)
    return [Masked(
        shape=x.shape, node=node.name, roots=(x.quant.tensor,), x=x, mask=full, otherwise=float(other.array.flat[0])
    )]  # fmt: skip
