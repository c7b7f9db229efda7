"""Sum of more than two tensors, and Mean of several: one depthwise convolution over the tensors one above the other.

A tensor's weight is how many times its step holds the sum's unit, which is 1/255 of the coarsest step. What a whole
number of units leaves of a step is a tensor of its own, requantised, with a weight of 1. So each tensor is at most half
a unit off, which is far below a step of the result; where it is not, the node is refused.
"""

import dataclasses
import math
from dataclasses import dataclass

import numpy as np
import onnx

from compiler.frontend.draft import Draft, Pending, Value, operator
from compiler.frontend.ops import eltwise, interleave, move, pointwise
from compiler.frontend.problems import Unsupported
from compiler.frontend.requantise import requantise
from compiler.frontend.values import Quant, Quantisation, Real, common_layout
from compiler.ir import Blend, Reshape

_LARGEST = 255  #: weight
_MOST = 32  #: tensors
_FINE = 1 / 64  #: of a step of the result that all tensors together may be off
_WHOLE = 1e-4  #: of a unit that a step may leave and be a whole number of them


@dataclass(frozen=True, kw_only=True)
class Summed(Pending):
    """The sum of ``values``, which have one shape, or their mean."""

    values: tuple[Real, ...]
    mean: bool

    def emit(self, draft: Draft, target: Quantisation, name: str) -> Quant:
        """Return one ``ir.Blend``, behind a concatenation and tables."""
        unit = max(value.quantisation.scale for value in self.values) / np.float32(_LARGEST)
        worth = unit / np.float32(len(self.values) if self.mean else 1)
        if len(self.values) * worth / 2 > _FINE * target.scale:
            raise Unsupported(
                f"it adds {len(self.values)} tensors in steps of up to {unit * _LARGEST:g} to a result in steps of "
                f"{target.scale:g}; the accelerator adds them precisely to a coarser one: write it as Add of Add"
            )
        layout = common_layout(self.base_shape, [value.quant for value in self.values])
        parts, weights, bias = list[str](), list[int](), 0
        first = self.values[0].quantisation
        for value in self.values:
            tensor, own = draft.relayout(value.quant, layout), value.quantisation
            units = float(own.scale) / float(unit)
            whole = math.floor(units + _WHOLE)
            rest = units - whole
            taken = [(tensor, own, whole)]
            if rest > _WHOLE:
                finer = dataclasses.replace(own, scale=np.float32(own.scale / rest))
                taken.append((move.requantised(draft, tensor, own, finer), finer, 1))
            for part, params, weight in taken:
                bias += weight * (first.zero_point - params.zero_point)
                parts.append(self._as_first(draft, part, params, layout.physical))
                weights.append(weight)
        made = self._blended(draft, parts, weights, bias, target, worth)
        return interleave.as_onnx(draft, made, name, self.base_shape, layout)

    def _as_first(self, draft: Draft, tensor: str, params: Quantisation, physical: tuple[int, ...]) -> str:
        """Return the bytes of ``tensor`` as one row of pixels, under the parameters of the first tensor."""
        first, row = self.values[0].quantisation, (1, 1, math.prod(physical[:-1]), physical[-1])
        if params != first:
            before = draft.graph.tensors[tensor]
            name = draft.unique(f"{tensor}:reinterpreted")
            draft.graph.tensors[name] = dataclasses.replace(
                before, name=name, scale=float(first.scale), zero_point=first.zero_point, data=None
            )
            draft.add(Reshape(name, [tensor], name))
            tensor = name
        return draft.reshaped(tensor, row)

    def _blended(
        self, draft: Draft, parts: list[str], weights: list[int], bias: int, target: Quantisation, worth: np.float32
    ) -> str:  # fmt: skip
        """Return the sum of the rows ``parts`` times ``weights``, of which one is worth ``worth``, as a row."""
        row, source = draft.graph.tensors[parts[0]].shape, interleave.joined(draft, self.node, parts, 1)
        kernel = np.broadcast_to(np.array(weights, np.uint8)[:, None, None], (row[-1], len(weights), 1, 1))
        made = interleave.inner(draft, f"{self.node}:sum", row, target)
        draft.add(
            Blend(
                self.node, [source], made, np.ascontiguousarray(kernel), 0, np.full(row[-1], bias, np.int32),
                requantise(worth, target, self.low, self.high), groups=row[-1], halves=len(self.values),
                nodes=[self.node],
            )
        )  # fmt: skip
        return made


@operator("Sum", "Mean")
def sum_(draft: Draft, node: onnx.NodeProto) -> list[Value]:
    """Return the sum or mean of tensors. A sum of two is an Add, and what depends on one tensor alone is a table."""
    values = [draft.value(name) for name in node.input]
    if len(values) == 2 and node.op_type == "Sum":
        return eltwise.binary(draft, node)
    if all(eltwise.one_tensor(values[0], value) for value in values[1:]):
        return pointwise.extended(draft, node)
    return [summed(node, tuple(draft.real(name) for name in node.input))]


def summed(node: onnx.NodeProto, values: tuple[Real, ...]) -> Summed:
    """Return the pending sum or mean of ``values``."""
    shapes = {value.shape for value in values}
    if len(shapes) > 1:
        raise Unsupported(
            f"shapes {', '.join(map(str, sorted(shapes)))}; the accelerator adds several tensors of one shape"
        )
    if len({value.quantisation.dtype for value in values}) > 1:
        raise Unsupported("it adds int8 and uint8 tensors; quantise them alike")
    if len(values) > _MOST:
        raise Unsupported(
            f"it adds {len(values)} tensors; the accelerator adds {_MOST} at most: write it as Add of Sum"
        )
    return Summed(
        shape=values[0].shape, node=node.name, roots=tuple(value.quant.tensor for value in values), values=values,
        mean=node.op_type == "Mean",
    )  # fmt: skip
