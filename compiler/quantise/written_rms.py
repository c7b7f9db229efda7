"""Root mean square normalisation written out in single operators in a float model: nodes that are left in float when it
is quantised, so that the accelerator finds them whole between quantised values."""

from collections.abc import Iterator

import onnx

from compiler.quantise.written_nodes import ModelValues


def rms_nodes(model: onnx.ModelProto) -> list[str]:
    """Return the names of the nodes between the square of a tensor and its normalised value, with the product with a
    constant scale that follows."""
    known, readers = ModelValues.of(model), dict[str, list[onnx.NodeProto]]()
    for node in model.graph.node:
        for name in node.input:
            readers.setdefault(name, []).append(node)
    found = list[str]()
    for square in model.graph.node:
        if _squares(square, known):
            chain = list(_behind(square, readers, known))
            found += [node.name for node in chain] if len(chain) > 1 else []
    return list(dict.fromkeys(found))


def _squares(node: onnx.NodeProto, known: ModelValues) -> bool:
    if node.op_type == "Mul":
        return node.input[0] == node.input[1]
    power = known.constants.get(node.input[1]) if node.op_type == "Pow" else None
    return power is not None and power.size == 1 and float(power.item()) == 2.0


def _behind(
    square: onnx.NodeProto, readers: dict[str, list[onnx.NodeProto]], known: ModelValues
) -> Iterator[onnx.NodeProto]:
    """Yield the nodes of a normalisation that begins with ``square``; ``square`` alone if there is none."""
    yield square
    rows, made = square.input[0], [square]
    for kinds in (("ReduceMean",), ("Add",), ("Sqrt", "Pow"), ("Reciprocal", "Div", "Mul"), ("Mul",)):
        following = readers.get(made[-1].output[0], [])
        if len(following) != 1 or following[0].op_type not in kinds:
            return
        made.append(following[0])
        if rows in made[-1].input:  # the quotient
            break
    if rows not in made[-1].input:
        return
    scaled = [
        node for node in readers.get(made[-1].output[0], [])
        if node.op_type == "Mul" and any(name in known.constants for name in node.input)
    ]  # fmt: skip
    yield from [*made[1:], *(scaled if len(readers[made[-1].output[0]]) == 1 else [])]
