"""LSTM, GRU and RNN of a float model as single operators, before it is quantised: onnxruntime's quantiser leaves such a
node in float as it is, and the accelerator has none. Where the number of steps is known, each step is a cell of its
own.

What a cell makes of the input is one product for all steps. Weights of the state are the same tensor in every cell.
"""

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper

from compiler.quantise.written_nodes import ModelValues, NodeWriter, rewritten

MOST_STEPS = 256
RECURRENT = ("LSTM", "GRU", "RNN")
_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
_ACTIVATIONS = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"], "RNN": ["Tanh"]}
_KNOWN = ("Sigmoid", "Tanh", "Relu")
_DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}


def unrolled(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model whose shapes are inferred with the cells of each recurrent node in its place, where
    :func:`why_rolled` has no reason against it."""

    def write(writer: NodeWriter) -> None:
        if why_rolled(model, writer.node) is None:
            _Cells(writer).add()

    return rewritten(model, write, *RECURRENT)


def why_rolled(model: onnx.ModelProto, node: onnx.NodeProto) -> str | None:
    """Return why a recurrent node of a model cannot be unrolled, to complete a sentence; None if it can."""
    known, given = ModelValues.of(model), {each.name: helper.get_attribute_value(each) for each in node.attribute}
    shape = known.shapes.get(node.input[0])
    if shape is None or len(shape) != 3 or min(shape) < 1:
        return "the number of its steps is not known: give sizes of dynamic dimensions"
    if shape[0] > MOST_STEPS:
        return f"it has {shape[0]} steps, of {MOST_STEPS} at most that are unrolled"
    if any(name not in known.constants for name in filter(None, [*node.input[1:3], *node.input[3:4]])):
        return "its weights are computed"
    if len(node.input) > 4 and node.input[4]:
        lengths = known.constants.get(node.input[4])
        if lengths is None or (lengths != shape[0]).any():
            return "it has sequence_lens; leave them out"
    if len(node.input) > 7 and node.input[7]:
        return "it has peepholes"
    for name, otherwise in (("layout", 0), ("input_forget", 0), ("clip", 0.0)):
        if given.get(name, otherwise) != otherwise:
            return f"it has {name} {given[name]}"
    odd = [name.decode() for name in given.get("activations", []) if name.decode() not in _KNOWN]
    return f"it has activations {odd}" if odd else None


class _Cells:
    """Makes the cells of one node. States are (1, batch, hidden), and None stands for zeros."""

    def __init__(self, writer: NodeWriter) -> None:
        self._writer, self.node, self.known = writer, writer.node, writer.known
        self.op, self.split, self.const = writer.op, writer.split, writer.const

    def add(self) -> None:
        """Add the nodes of all directions and steps, and what makes the node's outputs of their states."""
        given = self._writer.given
        kind, directions = self.node.op_type, _DIRECTIONS[given.get("direction", b"forward").decode()]
        names = [name.decode() for name in given.get("activations", [])] or _ACTIVATIONS[kind] * len(directions)
        each, lines, lasts = len(_ACTIVATIONS[kind]), list[list[str]](), list[tuple[str, str]]()
        for number, backwards in enumerate(directions):
            functions = names[number * each : (number + 1) * each]
            states, last = self._line(number, backwards, functions, bool(given.get("linear_before_reset", 0)))
            lines.append(states)
            lasts.append(last)
        outputs = [*self.node.output, "", "", ""][:3]
        if outputs[0]:
            rows = [self.op("Concat", *states, axis=0) if len(states) > 1 else states[0] for states in lines]
            rows = [self.op("Unsqueeze", row, self.const(np.array([1]), np.int64)) for row in rows]
            self._output(rows, outputs[0], 1)
        for name, found in zip(outputs[1:], zip(*lasts, strict=True), strict=True):
            if name:
                self._output(list(found), name, 0)

    def _line(
        self, number: int, backwards: bool, functions: list[str], before_reset: bool
    ) -> tuple[list[str], tuple[str, str]]:
        """Return the states of one direction in the order of the input, and the last ones."""
        kind, (steps, _, _) = self.node.op_type, self.known.shapes[self.node.input[0]]
        weights, state_weights = (self._weights(index)[number] for index in (1, 2))
        hidden = state_weights.shape[1]
        bias = self._weights(3)[number] if len(self.node.input) > 3 and self.node.input[3] else None
        own, other = np.zeros((2, len(weights)), np.float32) if bias is None else np.split(bias, 2)
        apart = kind == "GRU" and before_reset  # a bias that the reset gate multiplies
        added = np.where(np.arange(len(other)) < 2 * hidden, other, 0) if apart else other
        product = self.op("MatMul", self.node.input[0], self.const(weights.T))
        inputs = self.split(self.op("Add", product, self.const(own + added)), steps, 1, axis=0)
        state, cell = self._initial(5, number), self._initial(6, number)
        recurrence = _Recurrence(self, functions, hidden, state_weights, other[2 * hidden :] if apart else None)
        found = dict[int, str]()
        for step in reversed(range(steps)) if backwards else range(steps):
            state, cell = getattr(recurrence, kind.lower())(inputs[step], state, cell)
            assert state is not None
            found[step] = state
        assert state is not None
        return [found[step] for step in range(steps)], (state, cell or "")

    def _weights(self, index: int) -> npt.NDArray[np.float32]:
        return self.known.constants[self.node.input[index]]

    def _initial(self, index: int, number: int) -> str | None:
        """Return the state that a direction begins with."""
        if index >= len(self.node.input) or not (name := self.node.input[index]):
            return None
        constant = self.known.constants.get(name)
        if constant is not None:
            return self.const(constant[number : number + 1]) if constant[number].any() else None
        directions = self.known.shapes[self.node.input[1]][0]
        return self.split(name, directions, 1, axis=0)[number]

    def _output(self, parts: list[str], name: str, axis: int) -> None:
        self._writer.nodes.append(
            helper.make_node("Concat", parts, [name], f"{self.node.name}/{name}", axis=axis)
            if len(parts) > 1
            else helper.make_node("Identity", parts, [name], f"{self.node.name}/{name}")
        )


class _Recurrence:
    """Adds one cell: of what the input gives and the states before, it makes the states behind."""

    def __init__(
        self, cells: _Cells, functions: list[str], hidden: int, weights: npt.NDArray, reset_bias: npt.NDArray | None
    ) -> None:
        self._cells, self._functions, self._hidden = cells, functions, hidden
        self._weights, self._reset_bias = weights, reset_bias
        self._constants: dict[tuple[int, int], str] = {}

    def lstm(self, given: str, state: str | None, cell: str | None) -> tuple[str, str]:
        """Gates are in the order input, output, forget, cell."""
        op, (gate, inner, outer) = self._cells.op, self._functions
        parts = self._split(self._plus(given, state, 0, 4), 4)
        fresh = op("Mul", op(gate, parts[0]), op(inner, parts[3]))
        made = fresh if cell is None else op("Add", op("Mul", op(gate, parts[2]), cell), fresh)
        return op("Mul", op(gate, parts[1]), op(outer, made)), made

    def gru(self, given: str, state: str | None, cell: str | None) -> tuple[str, None]:
        """Gates are in the order update, reset, hidden."""
        op, (gate, inner) = self._cells.op, self._functions
        parts = self._split(given, 3)
        update = op(gate, self._plus(parts[0], state, 0, 1))
        reset = op(gate, self._plus(parts[1], state, 1, 2))
        if self._reset_bias is not None:  # the reset gate multiplies the product
            bias = self._cells.const(self._reset_bias)
            product = None if state is None else op("Add", self._product(state, 2, 3), bias)
            hidden = op("Add", parts[2], op("Mul", reset, bias if product is None else product))
        else:
            hidden = self._plus(parts[2], None if state is None else op("Mul", reset, state), 2, 3)
        fresh = op(inner, hidden)
        rest = op("Mul", op("Sub", self._cells.const(1.0), update), fresh)
        return (rest if state is None else op("Add", rest, op("Mul", update, state))), None

    def rnn(self, given: str, state: str | None, cell: str | None) -> tuple[str, None]:
        """One function of the sum."""
        return self._cells.op(self._functions[0], self._plus(given, state, 0, 1)), None

    def _plus(self, given: str, state: str | None, first: int, end: int) -> str:
        return given if state is None else self._cells.op("Add", given, self._product(state, first, end))

    def _product(self, state: str, first: int, end: int) -> str:
        if (first, end) not in self._constants:
            part = self._weights[first * self._hidden : end * self._hidden]
            self._constants[first, end] = self._cells.const(part.T)
        return self._cells.op("MatMul", state, self._constants[first, end])

    def _split(self, name: str, count: int) -> list[str]:
        return self._cells.split(name, count, self._hidden, axis=2)
