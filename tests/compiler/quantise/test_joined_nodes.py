"""Equal nodes of a step model as one."""

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from compiler.quantise.joined_nodes import joined
from compiler.quantise.plain_attention import plain_attention
from tests.support.step_models import StepNet, run_steps, step_model

NET = StepNet(operators=True, joined=False)


def _kinds(model: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in model.graph.node]


def test_rows_at_a_position_are_taken_once():
    written = plain_attention(step_model(NET))
    made = joined(written)
    assert _kinds(written).count("Gather") == 1 + 2 * 2 * NET.layers and _kinds(made).count("Gather") == 3
    assert len(made.graph.initializer) < len(written.graph.initializer)
    onnx.checker.check_model(made)
    for wanted, found in zip(*(run_steps(one, NET, range(4)) for one in (written, made)), strict=True):
        np.testing.assert_array_equal(found["logits"], wanted["logits"])


@pytest.mark.parametrize("equal", [False, True])
def test_only_equal_ones_are(equal):
    model = step_model(StepNet(layers=1))
    (one,) = [node for node in model.graph.node if node.op_type == "Gather" and node.input[1] == "input_ids"]
    (table,) = [tensor for tensor in model.graph.initializer if tensor.name == one.input[0]]
    again = numpy_helper.from_array(numpy_helper.to_array(table) + np.float32(not equal), "again")
    model.graph.initializer.append(again)
    model.graph.node.insert(1, onnx.helper.make_node("Gather", ["again", "input_ids"], ["rows"], axis=0))
    model.graph.node.insert(2, onnx.helper.make_node("Relu", ["rows"], ["unread"]))
    one.attribute.append(onnx.helper.make_attribute("axis", 0))
    assert _kinds(joined(model)).count("Gather") == (3 if equal else 4)


def test_what_is_given_out_stays_and_so_do_other_models():
    model = step_model(StepNet(layers=1))
    again = onnx.NodeProto()
    again.CopyFrom(model.graph.node[0])
    again.output[0] = "given"
    model.graph.node.insert(1, again)
    model.graph.output.append(onnx.helper.make_tensor_value_info("given", onnx.TensorProto.FLOAT, (1, 1, 32)))
    assert _kinds(joined(model)).count("Gather") == 4
    del model.graph.output[1:3]
    assert joined(model) is model
