"""States: what a model is given of the past and hands on with one row more, such as the keys and values of a decoder.

ONNX has an input for the past, and an output for what `Concat` makes of it and of what is new. On the accelerator both
are one tensor that stays in device memory, with a row to spare: what is new is written behind the rows that are there.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import onnx

from compiler.frontend.source import OnnxSource
from compiler.frontend.values import Shape, TensorLayout

_STORED = ("QuantizeLinear", "DequantizeLinear", "Identity")
_LENGTH = "past"  #: what the number of filled rows is called where the model has no name for it


@dataclass(frozen=True)
class State:
    """The input ``past``, to which the Concat ``node`` adds along ``axis`` what comes out as ``present``. ``length``:
    the name of the number of rows that are filled."""

    past: str
    node: str
    present: str
    axis: int
    length: str


def states_of(source: OnnxSource) -> dict[str, State]:
    """Return the states of a model by the names of their inputs, of their Concats, and of their outputs."""
    found: dict[str, State] = {}
    for value in source.model.graph.input:
        if (state := _state(source, value.name)) is not None:
            found |= {state.past: state, state.node: state, state.present: state}
    return found


def _state(source: OnnxSource, past: str) -> State | None:
    """Return the state whose input is ``past``; None if that is none."""
    shape = source.signatures[past].shape
    for name in _same(source, past):
        for node in source.consumers.get(name, []):
            if node.op_type != "Concat" or len(node.input) != 2 or node.input[0] != name:
                continue
            axis = next(one.i for one in node.attribute if one.name == "axis") % len(shape)
            present = [other for other in _same(source, node.output[0]) if other in source.outputs]
            if axis and shape[0] == 1 and present:
                return State(past, node.name, present[0], axis, source.labels.get((past, axis), _LENGTH))
    return None


def _same(source: OnnxSource, name: str) -> Iterator[str]:
    """Yield the names of what has the values of ``name``, stored in 8 bits or real again, with ``name`` itself."""
    todo = [name]
    while todo:
        yield (name := todo.pop())
        todo += [node.output[0] for node in source.consumers.get(name, []) if _keeps(node, name)]


def _keeps(node: onnx.NodeProto, name: str) -> bool:
    return node.op_type in _STORED and node.input[0] == name


def layout_of(shape: Shape, axis: int) -> TensorLayout:
    """Return how a state of ``shape`` lies in memory: rows along ``axis`` one behind the other."""
    return TensorLayout(shape, (0, axis, *(other for other in range(1, len(shape)) if other != axis)))
