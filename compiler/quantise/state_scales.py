"""The states of a quantised step model in one scale and zero point each, so that a present that comes back as the past
is the same bytes."""

import onnx

from compiler.states import ModelState, states_of

_MOVES = ("Reshape", "Transpose", "Squeeze", "Unsqueeze", "Identity")  #: values stay as they are


class StateNotStored(ValueError):
    """Says which part of a state has no 8 bits."""


def one_scale_each(model: onnx.ModelProto) -> None:
    """Let past and new rows of each state be stored in the steps of the present, whose range holds both."""
    graph = _Quantised(model.graph)
    for state in states_of(model).found:
        graph.share(state)


class _Quantised:
    def __init__(self, graph: onnx.GraphProto) -> None:
        self._makers = {name: node for node in graph.node for name in node.output}
        self._readers = dict[str, list[onnx.NodeProto]]()
        for node in graph.node:
            for name in node.input:
                self._readers.setdefault(name, []).append(node)

    def share(self, state: ModelState) -> None:
        """Give all parts of ``state`` the scale and the zero point of its present."""
        concat = self._makers[state.node]
        readers = self._readers.get(state.node, [])
        present = next((node for node in readers if node.op_type == "QuantizeLinear"), None)
        if present is None:
            raise StateNotStored(f"what Concat {concat.name!r} makes of past {state.past!r} is not stored in 8 bits")
        for name, told in ((concat.input[0], f"past {state.past!r}"), (concat.input[1], f"what {state.past!r} takes")):
            self._store(name, list(present.input[1:]), told)

    def _store(self, name: str, parameters: list[str], told: str) -> None:
        """Let real numbers come from 8 bits with ``parameters``, and what is moved before, too."""
        back = self._makers.get(name)
        kept = self._makers.get(back.input[0]) if back is not None and back.op_type == "DequantizeLinear" else None
        if back is None or kept is None or kept.op_type != "QuantizeLinear":
            raise StateNotStored(f"{told} is not stored in 8 bits")
        kept.input[1:] = back.input[1:] = parameters
        for other in self._readers[kept.output[0]]:
            other.input[1:] = parameters
        move = self._makers.get(kept.input[0])
        if move is None or move.op_type not in _MOVES or len(self._readers[move.output[0]]) > 1:
            return
        before = self._makers.get(move.input[0])
        if before is not None and before.op_type == "DequantizeLinear" and len(self._readers[before.output[0]]) == 1:
            source = self._makers.get(before.input[0])
            if source is not None and source.op_type == "QuantizeLinear" and len(self._readers[before.input[0]]) == 1:
                self._store(move.input[0], parameters, told)
