"""The sign of a written rotation goes to its table where nothing else reads that."""

import numpy as np
import onnx
import pytest

from compiler.quantise.written_rotation import signed_tables
from tests.support.step_models import StepNet, run_steps, step_model

NET = StepNet(layers=1)


def _model() -> onnx.ModelProto:
    return onnx.shape_inference.infer_shapes(step_model(NET))


def _negations(model: onnx.ModelProto) -> int:
    return [node.op_type for node in model.graph.node].count("Neg")


def test_the_numbers_stay():
    model = _model()
    made = signed_tables(model)
    onnx.checker.check_model(made)
    assert (_negations(model), _negations(made)) == (2, 0)
    for wanted, found in zip(*(run_steps(one, NET, range(4)) for one in (model, made)), strict=True):
        np.testing.assert_allclose(found["logits"], wanted["logits"], atol=1e-5)


def _sine_is_read(model: onnx.ModelProto) -> None:
    (product,) = [node for node in model.graph.node if node.op_type == "Mul"][3:4]
    model.graph.node.append(onnx.helper.make_node("Relu", [product.input[1]], ["unread"]))


def _negation_is_read(model: onnx.ModelProto) -> None:
    (first, *_) = [node for node in model.graph.node if node.op_type == "Neg"]
    model.graph.node.append(onnx.helper.make_node("Relu", [first.output[0]], ["unread"]))


def _no_negation(model: onnx.ModelProto) -> None:
    for node in model.graph.node:
        node.op_type = "Relu" if node.op_type == "Neg" else node.op_type


def _first_is_negative(model: onnx.ModelProto) -> None:
    (concat,) = [node for node in model.graph.node if node.op_type == "Concat"][:1]
    concat.input[:] = concat.input[::-1]


@pytest.mark.parametrize("change", [_sine_is_read, _negation_is_read, _no_negation, _first_is_negative])
def test_other_forms_stay(change):
    model = _model()
    change(model)
    assert signed_tables(model) is model
