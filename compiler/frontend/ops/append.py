"""Concat that makes a state longer: a row is written behind those that are there."""

import math
from dataclasses import dataclass

import onnx

from compiler.frontend.draft import Draft, Pending, Value, operator
from compiler.frontend.ops import move
from compiler.frontend.problems import Unsupported
from compiler.frontend.states import layout_of
from compiler.frontend.values import Quant, Quantisation, Real
from compiler.ir import Append, NumberRange, StateLoad, Tensor
from compiler.states import ModelState


@dataclass(frozen=True, kw_only=True)
class Appended(Pending):
    """The state ``past`` with ``rows`` behind it."""

    state: ModelState
    past: Real
    rows: Real

    def emit(self, draft: Draft, target: Quantisation, name: str) -> Quant:
        """Return the rows on chip. They are added to what is loaded of the past, and to the state in memory, too: so
        what was there may be loaded long before."""
        if target != self.past.quantisation or (self.low, self.high) != (-math.inf, math.inf):
            raise Unsupported(
                f"its result is not stored like the input {self.state.past!r}, to which it comes back; quantise both "
                "with one scale and zero point, as caesura quantise does"
            )
        layout = layout_of(self.base_shape, self.state.axis)
        rows = draft.relayout(self.rows.quant, layout_of(self.rows.shape, self.state.axis))
        rows = move.requantised(draft, rows, self.rows.quantisation, target)
        made = draft.new_tensor(name, self.base_shape, layout, target)
        number = _length(draft, self.state, self.past.shape[self.state.axis])
        axis, past = layout.perm.index(self.state.axis), self.past.quant
        loaded = draft.new_inner(f"{past.tensor}:loaded", past.layout, target)
        draft.add(StateLoad(loaded.tensor, [past.tensor], loaded.tensor))
        kept = draft.held[self.state.present] = draft.new_inner(f"{name}:kept", layout, target)
        inputs = [loaded.tensor, rows, number, past.tensor]
        draft.add(Append(self.node, inputs, made.tensor, axis=axis, kept=kept.tensor))
        return made


def _length(draft: Draft, state: ModelState, filled: int) -> str:
    """Return the number that says how many rows of a state are there."""
    name = state.label
    assert name is not None
    if name not in draft.graph.numbers:
        if name in draft.graph.tensors:
            raise Unsupported(f"a tensor is called {name!r}, as is the dimension that grows; rename one")
        draft.graph.tensors[name] = Tensor(name, (1,), "int64")
        draft.graph.numbers[name] = NumberRange(0, filled)
    if draft.graph.numbers[name].high != filled:
        raise Unsupported(f"its rows are {filled}, those of another state {draft.graph.numbers[name].high}")
    return name


@operator("Concat")
def concat(draft: Draft, node: onnx.NodeProto) -> list[Value]:
    """Concatenation of quantised tensors and constants; where it makes a state longer, a row behind it."""
    past, *others = (draft.value(name) for name in node.input)
    state = draft.states.get(node.output[0])
    if state is None or not isinstance(past, Real) or not isinstance(others[0], Real):
        return move.concat(draft, node)
    rows, shape = others[0], list(past.shape)
    if rows.shape[state.axis] != 1:
        raise Unsupported(
            f"it adds {rows.shape[state.axis]} rows to the state {state.past!r}; the accelerator adds one, so give the "
            "model one token at a time"
        )
    shape[state.axis] += 1
    roots = (past.quant.tensor, rows.quant.tensor)
    return [Appended(shape=tuple(shape), node=node.name, roots=roots, state=state, past=past, rows=rows)]
