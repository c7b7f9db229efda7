"""Lets attentions of a model begin and end where tensors lie token by token, as what is around them reads and writes
them: what splits heads, and what joins them again, is theirs.

Exporters store queries, keys and values before heads are split or behind, and sums before they are joined or behind.
Quantising does the same to each element wherever it lies, so the pair of QuantizeLinear and DequantizeLinear may stand
on either side of what only moves them."""

from collections.abc import Iterable

import onnx
from onnx import numpy_helper

_MOVES = {"Reshape", "Transpose", "Flatten", "Squeeze", "Unsqueeze", "Identity"}


def with_edges(proto: onnx.ModelProto, given: Iterable[str]) -> onnx.ModelProto:
    """Return the model with the 8-bit tensors before and behind its attentions stored token by token. ``given``: its
    inputs."""
    made = onnx.ModelProto()
    made.CopyFrom(proto)
    _AttentionEdges(made.graph, given).move()
    return made


class _AttentionEdges:
    def __init__(self, graph: onnx.GraphProto, given: Iterable[str]) -> None:
        self.graph = graph
        self.makers = {name: node for node in graph.node for name in node.output}
        self.readers: dict[str, list[onnx.NodeProto]] = {}
        self.varying = {*given}
        for node in graph.node:
            for name in node.input:
                self.readers.setdefault(name, []).append(node)
            if {*node.input} & self.varying:
                self.varying.update(node.output)
        self.results = {value.name for value in graph.output}
        self.whole = {one.name for one in graph.initializer if numpy_helper.to_array(one).size == 1}

    def move(self) -> None:
        """Change the graph."""
        for node in [*self.graph.node]:
            if node.op_type != "QuantizeLinear" or node.input[1] not in self.whole:
                continue
            back = self._only_reader(node.output[0])
            if back is None or back.op_type != "DequantizeLinear":
                continue
            before, behind = self._moves_before(node), self._moves_behind(back)
            maker = self.makers.get(before[0].input[0] if before else node.input[0])
            if maker is not None and self._is_product(maker):
                if behind and not before:
                    self._swap(behind, node, back, first=False)
            elif before and any(self._is_product(reader) for reader in self.readers.get(back.output[0], [])):
                self._swap(before, node, back, first=True)
        self._sort()

    def _swap(self, moves: list[onnx.NodeProto], node: onnx.NodeProto, back: onnx.NodeProto, *, first: bool) -> None:
        """Let a pair stand before (``first``) or behind ``moves``, which are on its other side."""
        head, tail = moves[0], moves[-1]
        if first:
            source, end, between = head.input[0], back.output[0], f"{back.output[0]}:whole"
            node.input[0], back.output[0] = source, between
            head.input[0], tail.output[0] = between, end
        else:
            source, end, between = node.input[0], tail.output[0], f"{tail.output[0]}:whole"
            head.input[0], tail.output[0] = source, between
            node.input[0], back.output[0] = between, end

    def _moves_before(self, node: onnx.NodeProto) -> list[onnx.NodeProto]:
        found: list[onnx.NodeProto] = []
        maker = self.makers.get(node.input[0])
        while maker is not None and maker.op_type in _MOVES and self._only_reader(maker.output[0]) is not None:
            found.insert(0, maker)
            maker = self.makers.get(maker.input[0])
        return found

    def _moves_behind(self, node: onnx.NodeProto) -> list[onnx.NodeProto]:
        found: list[onnx.NodeProto] = []
        reader = self._only_reader(node.output[0])
        while reader is not None and reader.op_type in _MOVES:
            found.append(reader)
            reader = self._only_reader(reader.output[0])
        return found

    def _only_reader(self, name: str) -> onnx.NodeProto | None:
        readers = self.readers.get(name, [])
        return readers[0] if len(readers) == 1 and name not in self.results else None

    def _is_product(self, node: onnx.NodeProto) -> bool:
        """Return whether a node multiplies two tensors of which neither is constant."""
        return node.op_type == "MatMul" and {*node.input} <= self.varying

    def _sort(self) -> None:
        """Bring the nodes into an order in which each reads what those before it made."""
        left, known = [*self.graph.node], {one.name for one in self.graph.initializer}
        made = {name for node in left for name in node.output}
        order: list[onnx.NodeProto] = []
        while left:
            ready = next(node for node in left if all(name in known or name not in made for name in node.input))
            left.remove(ready)
            known.update(ready.output)
            copy = onnx.NodeProto()
            copy.CopyFrom(ready)
            order.append(copy)
        del self.graph.node[:]
        self.graph.node.extend(order)
