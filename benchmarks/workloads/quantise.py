"""Float ONNX models to int8 QDQ, by onnxruntime: static, weights per output channel, ranges from a few images."""

from collections.abc import Iterable
from pathlib import Path

import onnx

from compiler import Feed, quantise as quantiser


def quantise(model: onnx.ModelProto, feeds: Iterable[Feed], path: Path) -> None:
    """Write the int8 QDQ form of a float model with inferred shapes.

    Activations are int8 per tensor with a zero point, from the smallest and largest values seen on ``feeds``; weights
    are int8 per output channel and symmetric, biases int32. Rectified inputs of a Concat get the scale of its result.
    """
    rectified = _concats_of_rectified(model)
    onnx.helper.set_model_props(model, {"onnx.quant.pre_process": "onnxruntime.quant"})  # shapes are inferred already
    quantiser.quantise(model, feeds, path)
    if rectified:
        quantised = onnx.load(path)
        for name in rectified:
            _share_scale(quantised.graph, name)
        _drop_unused_constants(quantised.graph)
        onnx.checker.check_model(quantised)
        onnx.save(quantised, path)


def quantise_as_users_do(model: onnx.ModelProto, feeds: Iterable[Feed], path: Path) -> None:
    """Write what ``caesura quantise`` makes of a float model: preprocessed by onnxruntime first, no scales shared."""
    quantiser.quantise(quantiser.prepared(model), feeds, path)


def _concats_of_rectified(model: onnx.ModelProto) -> list[str]:
    """Names of the Concat nodes with Relu before every input: all their ranges begin at 0, so zero points are equal and
    a larger scale keeps the rectifier, which quantisation moves into the lower limit of int8."""
    rectified = {node.output[0] for node in model.graph.node if node.op_type == "Relu"}
    concats = [node for node in model.graph.node if node.op_type == "Concat"]
    return [node.name for node in concats if rectified.issuperset(node.input)]


def _share_scale(graph: onnx.GraphProto, concat: str) -> None:
    """Let the inputs of a Concat be stored with the scale of its result, so that it only copies.

    onnxruntime calibrates each on its own, and then one of them must be stored twice. Deployment flows such as
    TensorFlow Lite's demand equal scales.
    """
    node = next(node for node in graph.node if node.name == concat)
    (target,) = (user for user in graph.node if node.output[0] in user.input)
    stored = {user.input[0] for user in graph.node if user.output[0] in node.input}
    for user in graph.node:
        if user.output[0] in stored or user.input[0] in stored:
            user.input[1:] = target.input[1:]


def _drop_unused_constants(graph: onnx.GraphProto) -> None:
    used = {source for node in graph.node for source in node.input}
    kept = [tensor for tensor in graph.initializer if tensor.name in used]
    del graph.initializer[:]
    graph.initializer.extend(kept)
