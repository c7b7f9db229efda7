"""Cuts a model with a dynamic dimension into operations, each a model of its own with that dimension, so that kernels
are matched for each (**Run-time kernel matching**).

A model is cut where tensors are stored in 8 bits: at outputs of QuantizeLinear. Attention is one operation, fused: the
product of queries and keys, what stands between, the softmax, and the product with the values. What lies before,
between and behind attentions are operations named ``layers``; one that computes nothing in 8 bits is ``moves``, which
is never accelerated. Names within an operation are its own, so equal operations are equal models.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import onnx
from onnx import TensorProto, helper, shape_inference

from compiler.attention_edges import with_edges
from compiler.dynamic_dimension import DynamicDimension
from compiler.frontend.load import inputs_of
from compiler.ir import CompileError

ATTENTION, LAYERS, MOVES = "attention", "layers", "moves"
_PROBES = (5, 11)  #: lengths that tell which axes of a tensor grow
_MOST_STEPS = 8  #: stored tensors from a softmax to the product before or behind it
_MOVING = {
    "QuantizeLinear", "DequantizeLinear", "Reshape", "Transpose", "Flatten", "Squeeze", "Unsqueeze", "Identity",
}  # fmt: skip


@dataclass(frozen=True)
class ModelOperation:
    """Is an operation of a model, and a model itself. ``operator``: ``attention``, ``layers`` or ``moves``. ``sizes``:
    of attention its ``heads`` and its ``width``, all heads together. ``inputs`` and ``outputs``: by the names that they
    have in ``dimension``, those that they have in the whole model. ``axes``: along which outputs have the dynamic
    dimension, of those that have it as it is."""

    name: str
    operator: str
    sizes: Mapping[str, int]
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]
    dimension: DynamicDimension
    axes: Mapping[str, int] = field(default_factory=dict)


@dataclass
class _Part:
    """Stored tensors that one operation makes, and how far it is from the inputs, in attentions."""

    operator: str
    stored: list[str]
    level: int = 0
    sizes: dict[str, int] = field(default_factory=dict)


def operations_of(dimension: DynamicDimension) -> list[ModelOperation]:
    """Return the operations of a model, in an order in which each reads what those before it made. Raises
    :class:`CompileError` where a tensor between them has the dynamic dimension otherwise than as an axis."""
    edged = with_edges(dimension.proto, dimension.inputs)
    return _Cutter(replace(dimension, proto=edged)).operations()


class _Cutter:
    """Knows the stored tensors of a model, and the nodes from which each is computed."""

    def __init__(self, dimension: DynamicDimension) -> None:
        self.dimension = dimension
        self.graph = dimension.proto.graph
        self.producers = {name: node for node in self.graph.node for name in node.output}
        self.given = {value.name for value in inputs_of(dimension.proto)}
        self.results = [value.name for value in self.graph.output]
        self.varying = self._varying()
        for name in self.results:
            if name in self.given or name not in self.varying:
                raise CompileError(f"{dimension.model}: output {name!r} is an input or a constant, so no operation's")
        quantised = [n.output[0] for n in self.graph.node if n.op_type == "QuantizeLinear"]
        self.stored = [name for name in dict.fromkeys((*quantised, *self.results)) if name in self.varying]
        self._ends = {*self.stored, *self.given}
        self.cones = {name: self._cone(name) for name in self.stored}
        self.readers: dict[str, list[str]] = {}
        for name in self.stored:
            for read in self.cones[name][1]:
                self.readers.setdefault(read, []).append(name)

    def operations(self) -> list[ModelOperation]:
        parts = self._parts()
        order = sorted(parts, key=lambda part: (part.level, part.operator == ATTENTION))
        age = {name: (-number, place) for number, part in enumerate(order) for place, name in enumerate(part.stored)}
        return [self._operation(f"{part.operator}.{number}", part, age) for number, part in enumerate(order)]

    # -- which tensors belong together ---------------------------------------------------------------------------
    def _parts(self) -> list[_Part]:
        attentions = list(self._attentions())
        part_of = {name: part for part in attentions for name in part.stored}
        levels: dict[str, int] = {}

        def level(name: str) -> int:
            """Return the attentions before a stored tensor that is none of their own."""
            if name in self.given:
                return 0
            if name not in levels:
                own = part_of.get(name)
                made = own.stored if own else [name]
                read = {each for one in made for each in self.cones[one][1]} - {*made}
                found = max((level(each) + (each in part_of) for each in sorted(read)), default=0)
                levels.update(dict.fromkeys(made, found))
            return levels[name]

        layers: dict[int, _Part] = {}
        for name in self.stored:
            found = level(name)
            if name in part_of:
                part_of[name].level = found
            else:
                layers.setdefault(found, _Part(LAYERS, [], found)).stored.append(name)
        for part in layers.values():
            if not any(self._computes(name) for name in part.stored):
                part.operator = MOVES
        return [*layers.values(), *attentions]

    def _computes(self, name: str) -> bool:
        """Return whether a tensor is stored in 8 bits, and computed rather than moved there."""
        nodes = self.cones[name][0]
        is_stored = self.producers[name].op_type == "QuantizeLinear"
        return is_stored and any(node.op_type not in _MOVING for node in nodes)

    def _attentions(self) -> Iterator[_Part]:
        for name in self.stored:
            if any(node.op_type == "Softmax" for node in self.cones[name][0]):
                before, behind = self._back_to_product(name), self._on_to_product(name)
                if before is None or behind is None:
                    continue
                made = [each for each in self.stored if each in {*before, *behind}]
                inner = (reader for each in made if each != behind[-1] for reader in self.readers.get(each, []))
                if {*inner} <= {*made} and not {*made[:-1]} & {*self.results} and made[-1] == behind[-1]:
                    yield _Part(ATTENTION, made, sizes=self._sizes(before[-1]))

    def _back_to_product(self, name: str, most: int = _MOST_STEPS) -> list[str] | None:
        """Return stored tensors from that of a softmax back to the product of queries and keys; a mask is none of
        them."""
        if self._product(name) is not None:
            return [name]
        for read in self.cones[name][1] if most else ():
            if read in self.cones and (before := self._back_to_product(read, most - 1)) is not None:
                return [name, *before]
        return None

    def _on_to_product(self, name: str) -> list[str] | None:
        """Return stored tensors from that of a softmax on to the product with the values."""
        found = [name]
        while len(found) <= _MOST_STEPS:
            readers = self.readers.get(found[-1], [])
            if len(readers) != 1:
                return None
            found.append(readers[0])
            if self._product(found[-1]) is not None:
                return found
        return None

    def _product(self, name: str) -> onnx.NodeProto | None:
        """Return the product of two tensors of which none is constant that a stored tensor is made by, if it is."""
        products = [node for node in self.cones[name][0] if node.op_type == "MatMul"]
        return next((node for node in products if {*node.input} <= self.varying), None)

    def _sizes(self, name: str) -> dict[str, int]:
        node = self._product(name)
        assert node is not None
        shape = self._shapes[0][node.input[0]]
        heads = shape[-3] if len(shape) > 3 else 1
        return {"heads": heads, "width": heads * shape[-1]}

    # -- nodes ----------------------------------------------------------------------------------------------------
    def _varying(self) -> set[str]:
        """Return the tensors that depend on an input."""
        found = set(self.given)
        for node in self.graph.node:
            if {*node.input} & found:
                found.update(name for name in node.output if name)
        return found

    def _cone(self, name: str) -> tuple[list[onnx.NodeProto], list[str]]:
        """Return the nodes that make a tensor of others that are stored, or given, and these others."""
        nodes, read, wanted = dict[int, onnx.NodeProto](), list[str](), [name]
        while wanted:
            node = self.producers.get(wanted.pop())
            if node is None or id(node) in nodes:
                continue
            nodes[id(node)] = node
            for each in node.input:
                if each in self._ends:
                    read.append(each)
                else:
                    wanted.append(each)
        return list(nodes.values()), list(dict.fromkeys(read))

    # -- an operation as a model ----------------------------------------------------------------------------------
    def _operation(self, name: str, part: _Part, age: Mapping[str, tuple[int, int]]) -> ModelOperation:
        """Return the model of a part. It reads what was made last first, and what one part made as that made it, so
        that it can find them where they were stored."""
        made = {*part.stored}
        wanted = {id(node) for each in part.stored for node in self.cones[each][0]}
        nodes = [node for node in self.graph.node if id(node) in wanted]
        read = [each for one in part.stored for each in self.cones[one][1] if each not in made]
        read = sorted(dict.fromkeys(read), key=lambda each: age.get(each, (1, 0)))
        outside = {each for other in self.stored if other not in made for each in self.cones[other][1]}
        left = [each for each in part.stored if each in outside or each in self.results]
        names = _own_names(read, nodes)
        proto = self._model(nodes, names, read, left)
        label = f"{self.dimension.model}, {name}"
        return ModelOperation(
            name, part.operator, part.sizes, {names[each]: each for each in read},
            {names[each]: each for each in left},
            DynamicDimension.of(proto, self.dimension.label, label),
            {names[each]: axis for each in left if (axis := self._axis(each)) is not None},
        )  # fmt: skip

    def _model(
        self, nodes: Sequence[onnx.NodeProto], names: Mapping[str, str], read: Sequence[str], left: Sequence[str]
    ) -> onnx.ModelProto:
        own = []
        for number, node in enumerate(nodes):
            copy = onnx.NodeProto()
            copy.CopyFrom(node)
            copy.name, copy.doc_string = f"{node.op_type}.{number}", ""
            del copy.input[:], copy.output[:], copy.metadata_props[:]
            copy.input.extend(names.get(each, each) for each in node.input)
            copy.output.extend(names.get(each, each) for each in node.output)
            own.append(copy)
        constants = []
        for tensor in self.graph.initializer:
            if tensor.name in names:
                constant = onnx.TensorProto()
                constant.CopyFrom(tensor)
                constant.name, constant.doc_string = names[tensor.name], ""
                constants.append(constant)
        constants.sort(key=lambda each: each.name)
        graph = helper.make_graph(
            own, "operation", [self._input(each, names[each]) for each in read],
[self._output(each, names[each]) for each in left], constants,
        )  # fmt: skip
        whole = self.dimension.proto
        return helper.make_model(graph, opset_imports=whole.opset_import, ir_version=whole.ir_version)

    def _input(self, name: str, own: str) -> onnx.ValueInfoProto:
        shape: list[int | str] = []
        for size, longer in zip(*self._known(name), strict=True):
            if size != longer and (size, longer) != _PROBES:
                raise CompileError(
                    f"{self.dimension.model}: {name!r} has a dimension of {size} for {_PROBES[0]} and {longer} for "
                    f"{_PROBES[1]} of {self.dimension.label!r}; operations share that dimension as it is"
                )
            shape.append(size if size == longer else self.dimension.label)
        return helper.make_tensor_value_info(own, self._types[name], shape)

    def _axis(self, name: str) -> int | None:
        """Return the axis of a tensor that is the dynamic dimension, if one is, and no other grows."""
        grown = [axis for axis, sizes in enumerate(zip(*self._known(name), strict=True)) if len({*sizes}) > 1]
        return grown[0] if len(grown) == 1 and tuple(s[grown[0]] for s in self._known(name)) == _PROBES else None

    def _known(self, name: str) -> list[list[int]]:
        """Return the shapes of a tensor for both lengths."""
        found = [shapes[name] for shapes in self._shapes if name in shapes]
        if len(found) < len(_PROBES):
            raise CompileError(f"{self.dimension.model}: the shape of {name!r} is not known, so it cannot be cut there")
        return found

    def _output(self, name: str, own: str) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(own, self._types[name], [None for _ in self._known(name)[0]])

    @cached_property
    def _inferred(self) -> list[onnx.ModelProto]:
        return [
            shape_inference.infer_shapes(_without_shapes(self.dimension.fixed(length)), data_prop=True)
            for length in _PROBES
        ]

    @cached_property
    def _shapes(self) -> list[dict[str, list[int]]]:
        return [
            {value.name: sizes for value in _values(model) if (sizes := _sizes_of(value)) is not None}
            for model in self._inferred
        ]

    @cached_property
    def _types(self) -> dict[str, int]:
        return {value.name: value.type.tensor_type.elem_type for value in _values(self._inferred[0])}


def _own_names(read: Iterable[str], nodes: Sequence[onnx.NodeProto]) -> dict[str, str]:
    """Return names of all tensors that do not tell where in the model they are."""
    names = {each: f"x{number}" for number, each in enumerate(read)}
    for node in nodes:
        for each in (*node.input, *node.output):
            if each:
                names.setdefault(each, f"t{len(names):05d}")
    return names


def _without_shapes(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model, of which nothing is known but the shapes of inputs."""
    del proto.graph.value_info[:]
    for value in proto.graph.output:
        value.type.tensor_type.ClearField("shape")
    return proto


def _values(model: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    return [*model.graph.input, *model.graph.value_info, *model.graph.output]


def _sizes_of(value: onnx.ValueInfoProto) -> list[int] | None:
    if value.type.tensor_type.elem_type == TensorProto.UNDEFINED or not value.type.tensor_type.HasField("shape"):
        return None
    dimensions = value.type.tensor_type.shape.dim
    return [each.dim_value for each in dimensions] if all(each.dim_value > 0 for each in dimensions) else None
