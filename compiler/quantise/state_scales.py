"""The states of a quantised step model in one scale and zero point each, so that a present that comes back as the past
is the same bytes."""

import onnx

from compiler.quantise.plain_attention import why_whole
from compiler.quantise.written_nodes import ModelValues, NodeWriter
from compiler.states import ModelState, states_of


class StateNotStored(ValueError):
    """Says which part of a state has no 8 bits."""


def one_scale_each(model: onnx.ModelProto) -> None:
    """Let past and new rows of each state be stored in the steps of the present. Over sequences, all that is new has
    its range, so what moves rows in front keeps these steps; the past lacks the last rows."""
    if states := states_of(model).found:
        graph = _Quantised(model)
        for state in states:
            graph.share(state)


class _Quantised:
    def __init__(self, model: onnx.ModelProto) -> None:
        self._known = ModelValues.of(model)
        self._makers = {name: node for node in model.graph.node for name in node.output}
        self._readers = dict[str, list[onnx.NodeProto]]()
        for node in model.graph.node:
            for name in node.input:
                self._readers.setdefault(name, []).append(node)

    def share(self, state: ModelState) -> None:
        """Give all parts of ``state`` the scale and the zero point of its present."""
        concat = self._makers[state.node]
        if concat.op_type == "Attention":
            why = why_whole(NodeWriter(concat, self._known)) or "it is not written out"
            raise StateNotStored(f"Attention {concat.name!r} stores past {state.past!r} in no 8 bits: {why}")
        readers = self._readers.get(state.node, [])
        present = next((node for node in readers if node.op_type == "QuantizeLinear"), None)
        if present is None:
            raise StateNotStored(f"what Concat {concat.name!r} makes of past {state.past!r} is not stored in 8 bits")
        for name, told in ((concat.input[0], f"past {state.past!r}"), (concat.input[1], f"what {state.past!r} takes")):
            self._store(name, list(present.input[1:]), told)

    def _store(self, name: str, parameters: list[str], told: str) -> None:
        """Let real numbers come from 8 bits with ``parameters``."""
        back = self._makers.get(name)
        kept = self._makers.get(back.input[0]) if back is not None and back.op_type == "DequantizeLinear" else None
        if back is None or kept is None or kept.op_type != "QuantizeLinear":
            raise StateNotStored(f"{told} is not stored in 8 bits")
        kept.input[1:] = back.input[1:] = parameters
        for other in self._readers[kept.output[0]]:
            other.input[1:] = parameters
