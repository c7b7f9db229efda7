"""The prepared ONNX model: unique node names, fixed dimensions, constants by name, and sub-models cut out of it."""

from collections.abc import Container
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper

from compiler.states import ModelState
from sim.host import session

MOST_ELEMENTS = 1 << 28  #: of one tensor: a quarter of the largest DRAM


def free_name(wanted: str, taken: Container[str]) -> str:
    """Return ``wanted``, with a number behind if it is taken."""
    name, count = wanted, 1
    while name in taken:
        count += 1
        name = f"{wanted}#{count}"
    return name


@dataclass(frozen=True)
class Signature:
    """Element type (``onnx.TensorProto.DataType``) and shape of an ONNX tensor; ValueError if no memory holds it."""

    elem_type: int
    shape: tuple[int, ...]

    @property
    def dtype(self) -> str:
        """Return the element type as NumPy calls it."""
        return np.dtype(helper.tensor_dtype_to_np_dtype(self.elem_type)).name

    def __post_init__(self) -> None:
        if prod(self.shape) > MOST_ELEMENTS:
            raise ValueError(f"shape {list(self.shape)} has more than {MOST_ELEMENTS:,} elements")


@dataclass(eq=False)
class OnnxSource:
    """A checked model. ``constants`` starts as the initialisers and grows as the importer folds nodes."""

    name: str
    model: onnx.ModelProto
    constants: dict[str, npt.NDArray]
    signatures: dict[str, Signature] = field(default_factory=dict)  #: of tensors that sub-models may begin with
    int4: frozenset[str] = frozenset()  #: constants that had four bits
    states: list[ModelState] = field(default_factory=list)
    producers: dict[str, onnx.NodeProto] = field(default_factory=dict)
    consumers: dict[str, list[onnx.NodeProto]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        graph = self.model.graph
        for node in graph.node:
            for name in node.output:
                self.producers[name] = node
            for name in node.input:
                self.consumers.setdefault(name, []).append(node)
        self.order = {node.name: i for i, node in enumerate(graph.node)}
        self.outputs = {value.name for value in graph.output}

    def copied(self) -> "OnnxSource":
        """Return the same model with constants and signatures of its own, for a walk to add to."""
        return OnnxSource(self.name, self.model, dict(self.constants), dict(self.signatures), self.int4, self.states)

    @cached_property
    def inferred(self) -> dict[str, Signature]:
        """Return the types and shapes that ONNX's inference finds, of tensors where it finds both."""
        values = onnx.shape_inference.infer_shapes(self.model).graph.value_info
        found = {}
        for value in (*values, *self.model.graph.output):
            tensor = value.type.tensor_type
            sizes = tuple(dim.dim_value for dim in tensor.shape.dim if dim.HasField("dim_value"))
            if tensor.HasField("shape") and len(sizes) == len(tensor.shape.dim):
                found[value.name] = Signature(tensor.elem_type, sizes)
        return found

    def between(self, outputs: list[str], inputs: list[str]) -> list[onnx.NodeProto]:
        """Nodes needed to compute ``outputs`` from ``inputs`` and constants, in order. Quantised constants stay
        behind their DequantizeLinear, so that onnxruntime sees the pattern of its integer kernels."""
        found: dict[str, onnx.NodeProto] = {}
        stops, todo = set(inputs), [name for name in outputs if name not in inputs]
        while todo:
            name = todo.pop()
            node = self.producers.get(name)
            if name in stops or node is None or node.name in found:
                continue
            if name in self.constants and node.op_type != "DequantizeLinear":
                continue
            found[node.name] = node
            todo.extend(node.input)
        return sorted(found.values(), key=lambda node: self.order[node.name])

    def submodel(
        self,
        nodes: list[onnx.NodeProto],
        inputs: list[tuple[str, Signature]],
        outputs: list[str],
    ) -> onnx.ModelProto:
        """``nodes`` as a model of their own. Output types are left to onnxruntime's inference."""
        made = {name for node in nodes for name in node.output} | {name for name, _ in inputs}
        needed = dict.fromkeys(name for node in nodes for name in node.input if name and name not in made)
        graph = helper.make_graph(
            list(nodes),
            "part",
            [helper.make_tensor_value_info(name, sig.elem_type, sig.shape) for name, sig in inputs],
            [onnx.ValueInfoProto(name=name) for name in outputs],
            [numpy_helper.from_array(self.constants[name], name) for name in needed],
        )
        domains = {node.domain for node in nodes} | {""}
        opsets = {entry.domain: entry.version for entry in self.model.opset_import}
        imports = [helper.make_opsetid(d, opsets.get(d, 1)) for d in domains if d != "ai.onnx"]
        return helper.make_model(graph, opset_imports=imports, ir_version=min(self.model.ir_version, 10))

    def evaluate(self, node: onnx.NodeProto) -> list[npt.NDArray]:
        """Return the outputs of a node whose inputs are all constants."""
        model = self.submodel([node], [], [name for name in node.output if name])
        return session(model).run(None, {})
