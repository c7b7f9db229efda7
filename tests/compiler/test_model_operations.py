"""A model is cut into operations that compute what it computes, and equal operations are equal models."""

import numpy as np
import pytest

from benchmarks.kernels_cases import dynamic_encoder
from compiler import CompileError, DynamicDimension, golden, import_model, operations_of, reference
from tests.support.onnx_models import Net
from tests.support.operation_nets import X, attention, attention_net

H = (0.06, -5)


def cut(model):
    dimension = DynamicDimension.of(model, name="net") if not isinstance(model, DynamicDimension) else model
    return dimension, operations_of(dimension)


def check(model, length=7):
    """Operations, one after the other, give what the whole gives; returns them."""
    dimension, operations = cut(model)
    whole = import_model(dimension.fixed(length), fallback=True)
    rng = np.random.default_rng(length)
    values = {}
    for port in whole.inputs:
        drawn = rng.standard_normal(port.shape) if port.dtype == "float32" else rng.integers(-128, 128, port.shape)
        values[port.name] = drawn.astype(port.dtype)
    wanted = reference.run(whole, values)
    for each in operations:
        fixed = each.dimension.fixed(length)
        given = {own: values[name] for own, name in each.inputs.items()}  # those before made it
        moves = each.operator == "moves"
        outputs = golden.golden_outputs(fixed, given) if moves else reference.run(import_model(fixed), given)
        assert outputs.keys() == {*each.outputs}
        values |= {each.outputs[own]: value for own, value in outputs.items()}
    for name, value in wanted.items():
        np.testing.assert_array_equal(values[name], value)
    return operations


def kinds(operations):
    return [each.operator for each in operations]


def test_attention_is_one_operation_and_the_rest_lies_around_it():
    operations = check(attention_net([(2, 8), (1, 20)], 12))
    assert kinds(operations) == ["layers", "attention", "layers", "attention", "layers"]
    assert [dict(each.sizes) for each in operations] == [
        {}, {"heads": 2, "width": 16}, {}, {"heads": 1, "width": 20}, {}
    ]  # fmt: skip
    fused = [node.op_type for node in operations[1].dimension.proto.graph.node]
    assert fused.count("MatMul") == 2 and "Softmax" in fused and "Div" in fused
    assert len(operations[1].inputs) == 3 and len(operations[1].outputs) == 1


def test_equal_operations_are_equal_models_and_others_are_not():
    operations = cut(attention_net([(2, 8), (1, 16), (2, 8)], 16))[1]
    one, other, again = (each.dimension.proto.SerializeToString() for each in operations if each.sizes)
    assert one == again != other
    layers = {each.dimension.proto.SerializeToString() for each in operations if each.operator == "layers"}
    assert len(layers) == 4  # their weights differ


@pytest.mark.parametrize("name", ["bert_tiny_2x16", "bert_tiny_1x16_masked_erf", "vit_tiny_1x17"])
def test_encoders_with_residuals_masks_and_float_ends(name):
    dimension = dynamic_encoder(name)
    for value in dimension.proto.graph.input:
        if value.name == "mask":
            sizes = value.type.tensor_type.shape.dim
            sizes[1].dim_value, sizes[3].dim_param = 1, dimension.label
    operations = check(DynamicDimension.of(dimension.proto, name=name))
    layers = int(name.split("x")[0][-1])
    assert kinds(operations) == ["layers", "attention"] * layers + ["layers"]
    assert all(len(each.inputs) == 3 + ("masked" in name) for each in operations if each.sizes)


def test_without_attention_a_model_is_one_operation():
    net = Net()
    x = net.dq(net.input((1, 4, "L")), *X)
    assert kinds(check(net.model(net.q(net.conv(x, X[0], (8, 4, 3)), *H)))) == ["layers"]


def test_weights_that_somebody_else_reads_are_not_fused():
    """The softmax is an output too, or what another operator reads: then nothing is fused around it."""
    net = Net()
    x = [net.dq(net.input((1, 2, "L", 8), name=f"x{number}"), *X) for number in range(3)]
    turned = net.node("Transpose", [x[1]], perm=[0, 1, 3, 2])
    scores = net.dq(net.q(net.node("MatMul", [x[0], turned]), 0.05), 0.05)
    weights = net.q(net.node("Softmax", [scores], axis=-1), 1 / 255, -128)
    mixed = net.q(net.node("MatMul", [net.dq(weights, 1 / 255, -128), x[2]]), *X)
    assert kinds(check(net.model(mixed, weights))) == ["layers"]
    doubled = net.q(net.node("Relu", [net.dq(weights, 1 / 255, -128)]), 1 / 255, -128)
    assert kinds(check(net.model(mixed, doubled))) == ["layers"]
    net.nodes = net.nodes[:-3]
    other = net.q(net.node("Relu", [scores]), 0.05)
    assert kinds(check(net.model(mixed, other))) == ["layers"]
    net.nodes = net.nodes[:-2]
    assert kinds(check(net.model(mixed))) == ["attention"]


def test_what_only_moves_stays_apart():
    """Before the attention an input is only quantised, behind it the output is only turned to float."""
    net = Net()
    given = [net.input((1, "L", 16), "float32", f"x{number}") for number in range(3)]
    x = attention(net, *(net.dq(net.q(each, *X), *X) for each in given), 2, 8)
    operations = check(net.model(x, dtype="float32"))
    assert kinds(operations) == ["moves", "attention", "moves"]


def test_a_tensor_of_twice_the_length_is_refused():
    net = Net()
    x = net.dq(net.input((1, "L", 16)), *X)
    twice = net.dq(net.q(net.node("Concat", [x, x], axis=1), *X), *X)
    model = net.model(net.q(attention(net, twice, twice, twice, 2, 8), *X))
    with pytest.raises(CompileError, match="has a dimension of 10 for 5 and 22 for 11 of 'L'"):
        cut(model)
