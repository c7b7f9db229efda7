"""Rotation written out in single operators in a float model: ``x * cos + concat(-second, first) * sin`` with halves of
x, and rows of tables at a position. The sign goes to the table, before the model is quantised: Neg would be stored in
steps of its own, and what is joined with it in others."""

import numpy as np
import onnx
from onnx import numpy_helper

from compiler.quantise.written_nodes import ModelValues, with_nodes


def signed_tables(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model whose shapes are inferred without Neg of halves that only meet rows of a constant table: the rows
    are negative there. Rows that anything else reads stay, and so does Neg."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    graph = _Halves(made)
    changed = [node for node in made.graph.node if node.op_type == "Gather" and graph.sign(node)]
    if not changed:
        return model
    read = {name for node in made.graph.node for name in node.input} | {value.name for value in made.graph.output}
    return with_nodes(made, [node for node in made.graph.node if node.op_type != "Neg" or node.output[0] in read])


class _Halves:
    def __init__(self, model: onnx.ModelProto) -> None:
        self._graph, self._known = model.graph, ModelValues.of(model)
        self._makers = {name: node for node in model.graph.node for name in node.output}
        self._readers = dict[str, list[onnx.NodeProto]]()
        for node in model.graph.node:
            for name in node.input:
                self._readers.setdefault(name, []).append(node)

    def sign(self, gather: onnx.NodeProto) -> bool:
        """Make the rows that ``gather`` takes negative where all that they meet is, and that not; return whether."""
        table, rows = self._known.constants.get(gather.input[0]), gather
        if table is None or table.ndim != 2 or any(one.name == "axis" and one.i for one in gather.attribute):
            return False
        readers = self._readers.get(rows.output[0], [])
        while len(readers) == 1 and readers[0].op_type in ("Unsqueeze", "Reshape"):
            rows = readers[0]
            readers = self._readers.get(rows.output[0], [])
        joined = [self._joined(node, rows.output[0]) for node in readers]
        widths = {self._negative(node) for node in joined}
        if len(widths) != 1 or not (width := widths.pop()) or self._last(rows.output[0]) != table.shape[-1]:
            return False
        name = f"{gather.name or gather.output[0]}/signed"
        signs = np.where(np.arange(table.shape[-1]) < width, -1, 1).astype(table.dtype)
        self._graph.initializer.append(numpy_helper.from_array(table * signs, name))
        gather.input[0] = name
        for node in joined:
            if node is not None and (negative := self._makers[node.input[0]]).op_type == "Neg":
                node.input[0] = negative.input[0]
        return True

    def _last(self, name: str) -> int:
        return (self._known.shape(name) or (0,))[-1]

    def _joined(self, product: onnx.NodeProto, rows: str) -> onnx.NodeProto | None:
        """Return the Concat along the last axis that ``product`` multiplies ``rows`` by, if nothing else reads it."""
        if product.op_type != "Mul" or len(set(product.input)) != 2:
            return None
        (other,) = (name for name in product.input if name != rows)
        node = self._makers.get(other)
        if node is None or node.op_type != "Concat" or len(self._readers[other]) != 1:
            return None
        axis = next(one.i for one in node.attribute if one.name == "axis")
        return node if axis in (-1, len(self._known.shape(other) or ()) - 1) else None

    def _negative(self, node: onnx.NodeProto | None) -> int:
        """Return how many of what Concat ``node`` joins are negative, from the first; 0 if that is not all of Neg."""
        first = self._makers.get(node.input[0]) if node is not None else None
        if first is None or first.op_type != "Neg" or len(self._readers[first.output[0]]) != 1:
            return 0
        return max(self._last(first.output[0]), 0)
