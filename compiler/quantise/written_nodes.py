"""Nodes of a float model in the place of another, before the model is quantised: what onnxruntime's quantiser leaves in
float as it is becomes single operators, which it gives scales."""

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper


@dataclass(frozen=True)
class ModelValues:
    """Shapes and constants of a model, by name. ``partial``: shapes of which not all is known, with -1 for that."""

    shapes: dict[str, tuple[int, ...]]
    constants: dict[str, npt.NDArray]
    partial: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def shape(self, name: str) -> tuple[int, ...] | None:
        """Return a shape, in full or partial; None if not even the rank is known."""
        return self.shapes.get(name, self.partial.get(name))

    @classmethod
    def of(cls, model: onnx.ModelProto) -> "ModelValues":
        """Return what is known of ``model``."""
        shapes, partial = dict[str, tuple[int, ...]](), dict[str, tuple[int, ...]]()
        graph = onnx.shape_inference.infer_shapes(model).graph
        for value in (*graph.input, *graph.value_info, *graph.output):
            if not value.type.tensor_type.HasField("shape"):
                continue
            dims = value.type.tensor_type.shape.dim
            known = all(dim.HasField("dim_value") for dim in dims)
            (shapes if known else partial)[value.name] = tuple(
                dim.dim_value if dim.HasField("dim_value") else -1 for dim in dims
            )
        constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
        for node in graph.node:
            if node.op_type == "Constant" and (value := _constant(node.attribute[0])) is not None:
                constants[node.output[0]] = value
        return cls(shapes | {name: value.shape for name, value in constants.items()}, constants, partial)


def _constant(attribute: onnx.AttributeProto) -> npt.NDArray | None:
    """Return the value of a node Constant with this attribute; None for strings and sparse ones."""
    if attribute.name == "value":
        return numpy_helper.to_array(attribute.t)
    dtype = {"value_float": np.float32, "value_floats": np.float32, "value_int": np.int64, "value_ints": np.int64}
    if attribute.name not in dtype:
        return None
    return np.array(helper.get_attribute_value(attribute), dtype[attribute.name])


@dataclass
class NodeWriter:
    """Adds the operators that stand in the place of ``node``; their names begin with its own."""

    node: onnx.NodeProto
    known: ModelValues
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    @property
    def given(self) -> dict[str, Any]:
        """Return the node's attributes."""
        return {each.name: helper.get_attribute_value(each) for each in self.node.attribute}

    @property
    def label(self) -> str:
        """Return what names begin with."""
        return self.node.name or self.node.output[0]

    def input(self, index: int) -> str:
        """Return the name of an input of the node; empty if it is absent."""
        return self.node.input[index] if index < len(self.node.input) else ""

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add an operator; return its result."""
        name = f"{self.label}/{kind}_{next(self._numbers)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [f"{name}/out"], name, **attributes))
        return f"{name}/out"

    def split(self, name: str, count: int, size: int, axis: int) -> list[str]:
        """Add a Split; return ``count`` parts of ``size`` along an axis of a tensor."""
        return [name] if count == 1 else self.parts(name, [size] * count, axis)

    def parts(self, name: str, sizes: list[int], axis: int) -> list[str]:
        """Add a Split; return parts of ``sizes`` along an axis of a tensor."""
        label = f"{self.label}/Split_{next(self._numbers)}"
        parts = [f"{label}/{part}" for part in range(len(sizes))]
        self.nodes.append(helper.make_node("Split", [name, self.const(sizes, np.int64)], parts, label, axis=axis))
        return parts

    def reshape(self, name: str, *shape: int) -> str:
        """Add a Reshape; return its result."""
        return self.op("Reshape", name, self.const(shape, np.int64))

    def const(self, value: npt.ArrayLike, dtype: npt.DTypeLike = np.float32) -> str:
        """Add a constant; return its name."""
        name = f"{self.label}/const_{next(self._numbers)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(np.asarray(value, dtype)), name))
        return name

    def result(self, name: str) -> None:
        """Let the last operator, which made ``name``, make the node's first output."""
        self.named(name, self.node.output[0])

    def named(self, name: str, wanted: str) -> str:
        """Let the last operator, which made ``name``, make ``wanted``; return that."""
        last = self.nodes[-1]
        assert last.output[0] == name
        last.output[0] = wanted
        return wanted


def rewritten(model: onnx.ModelProto, write: Callable[[NodeWriter], None], *kinds: str) -> onnx.ModelProto:
    """Return a model whose shapes are inferred with what ``write`` adds in the place of each node of ``kinds``, where
    it adds something."""
    if not any(node.op_type in kinds for node in model.graph.node):
        return model
    made = onnx.ModelProto()
    made.CopyFrom(model)
    known, nodes = ModelValues.of(model), list[onnx.NodeProto]()
    for node in model.graph.node:
        writer = NodeWriter(node, known)
        if node.op_type in kinds and node.domain in ("", "ai.onnx"):
            write(writer)
        nodes += writer.nodes or [node]
        made.graph.initializer.extend(writer.constants)
    return with_nodes(made, nodes)


def with_nodes(model: onnx.ModelProto, nodes: list[onnx.NodeProto]) -> onnx.ModelProto:
    """Return ``model``, which it changes, with ``nodes`` in the place of its own, no constants but those they read,
    and shapes inferred."""
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    used = {*_read_by(nodes), *(value.name for value in model.graph.output)}
    kept = [tensor for tensor in model.graph.initializer if tensor.name in used]
    del model.graph.initializer[:]
    model.graph.initializer.extend(kept)
    return onnx.shape_inference.infer_shapes(model)


def _read_by(nodes: Iterable[onnx.NodeProto]) -> Iterator[str]:
    """Yield the names that ``nodes`` read, and those of the graphs in them: an If reads constants around it."""
    for node in nodes:
        yield from node.input
        for attribute in node.attribute:
            for graph in (*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])):
                yield from _read_by(graph.node)
                yield from (value.name for value in graph.output)
