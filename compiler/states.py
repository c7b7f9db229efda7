"""The states of a step model: what one token leaves for those behind it, such as keys and values of attention. A past
input and a present output make a state; the present is the past with new rows behind."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import onnx
from onnx import helper

_PASSED = ("Identity", "QuantizeLinear", "DequantizeLinear")  #: nothing but a state's own steps may be between
_KEYS = 4  #: input of Attention; past values are behind it
_ROWS = 2  #: axis of Attention's past keys and values


@dataclass(frozen=True)
class ModelState:
    """Input ``past`` and output ``present``, which node ``node`` makes of the past and ``new`` along ``axis``."""

    past: str
    new: str  #: what the node appends; that of Attention may have heads joined
    present: str
    node: str  #: its first result, since a node may have no name
    axis: int
    label: str | None  #: the name of the dynamic dimension; None where the model is for one length


@dataclass(frozen=True)
class ModelStates:
    """The states of a model in the order of its inputs, and why an input that looks like a past is none."""

    found: list[ModelState] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)

    @property
    def label(self) -> str | None:
        """Return the name of the dynamic dimension, which all states share."""
        return self.found[0].label if self.found else None

    def told(self) -> str:
        """Return why inputs are no pasts, as a sentence's end."""
        return "; ".join(f"input {name!r} is no past of a state: {reason}" for name, reason in self.refused.items())


def states_of(model: onnx.ModelProto) -> ModelStates:
    """Return the states of a model, float or quantised. An input looks like a past if it is float, has a dynamic
    dimension behind the first, and is one to Attention, is a part of an output, or has "past" in its name. A model
    without such an input is for one length: what it appends to is believed to be a past."""
    graph, made = _Graph(model.graph), ModelStates()
    for value in model.graph.input:
        if value.name in graph.constants or value.type.tensor_type.elem_type != onnx.TensorProto.FLOAT:
            continue
        found = graph.state(value)
        if isinstance(found, ModelState):
            made.found.append(found)
        elif found is not None:
            made.refused[value.name] = found
    if made.refused or any(state.label for state in made.found):
        made.found[:] = [state for state in made.found if state.label]
    for state in [one for one in made.found if one.label != made.label]:
        made.found.remove(state)
        made.refused[state.past] = f"its dimension is {state.label!r}, and that of states before it {made.label!r}"
    return made


class _Graph:
    """Who reads what in a graph, through nodes that hand on what they get."""

    def __init__(self, graph: onnx.GraphProto) -> None:
        self.constants = {tensor.name for tensor in graph.initializer}
        self.outputs = [value.name for value in graph.output]
        self._readers = dict[str, list[onnx.NodeProto]]()
        for node in graph.node:
            for name in dict.fromkeys(node.input):
                self._readers.setdefault(name, []).append(node)

    def state(self, value: onnx.ValueInfoProto) -> ModelState | str | None:
        """Return the state whose past an input is, why there is none, or None for an input that looks like no past."""
        name, dims = value.name, value.type.tensor_type.shape.dim
        open_axes = [axis for axis, dim in enumerate(dims) if axis and dim.dim_value <= 0]
        appending = [
            (node, alias) for node, alias in self._read(name) if node.op_type in ("Concat", "Attention")
            and (node.op_type == "Concat" or alias in node.input[_KEYS:])
        ]  # fmt: skip
        found = [self._appended(name, node, alias, len(dims), open_axes) for node, alias in appending]
        states = [one for one in found if isinstance(one, ModelState)]
        if len(states) == 1 and len(open_axes) <= 1:
            (state,) = states
            label = dims[state.axis].dim_param or None
            if not open_axes or label:
                return ModelState(state.past, state.new, state.present, state.node, state.axis, label)
        attends = any(node.op_type == "Attention" for node, _ in appending)
        if not open_axes or not (states or attends or "past" in name.lower()):
            return None
        if len(open_axes) > 1:
            return f"it has {len(open_axes)} dynamic dimensions behind the first, and one grows"
        if len(states) > 1:
            return f"outputs {', '.join(repr(state.present) for state in states)} all append to it"
        if states:
            return "its dynamic dimension has no name"
        return next((one for one in found if isinstance(one, str)), "no Concat or Attention appends to it")

    def _appended(
        self, past: str, node: onnx.NodeProto, alias: str, rank: int, open_axes: list[int]
    ) -> ModelState | str:
        """Return the state that a node makes of a past, or why that is none."""
        if node.op_type == "Attention":
            index = list(node.input).index(alias)
            axis, new, result = _ROWS, node.input[index - 3], [*node.output, "", "", ""][index - 3]
        else:
            given = next(helper.get_attribute_value(one) for one in node.attribute if one.name == "axis")
            axis, result = given % rank, node.output[0]
            if len(node.input) != 2 or node.input[0] != alias or node.input[1] == alias:
                return f"Concat {node.name or result!r} does not append one tensor behind it"
            new = node.input[1]
        if open_axes and axis not in open_axes:
            return f"{node.op_type} {node.name or result!r} appends along axis {axis}, and axis {open_axes[0]} grows"
        presents = [name for name in self.outputs if result and name in set(self._names(result))]
        if len(presents) != 1:
            told = f"{len(presents)} outputs are" if presents else "no output is"
            return f"{told} what {node.op_type} {node.name or result!r} makes of it"
        return ModelState(past, new, presents[0], node.output[0], axis, None)

    def _names(self, name: str) -> Iterator[str]:
        """Yield a name, and those of what only hands it on."""
        yield name
        for node in self._readers.get(name, []):
            if node.op_type in _PASSED and node.input[0] == name:
                yield from self._names(node.output[0])

    def _read(self, name: str) -> Iterator[tuple[onnx.NodeProto, str]]:
        """Yield the nodes that read a tensor, and by which name."""
        for alias in self._names(name):
            yield from ((node, alias) for node in self._readers.get(alias, []) if node.op_type not in _PASSED)
