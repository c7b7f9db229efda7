"""Reshapes, transposes, Concat and Pad: mostly layout, sometimes data movement."""

import numpy as np
import pytest

from compiler.frontend import UnsupportedModel, import_model
from compiler.frontend.values import TensorLayout
from tests.support.golden_check import check_model, kinds
from tests.support.onnx_models import Net


def test_layouts_are_equal_exactly_if_they_order_the_bytes_alike():
    rng = np.random.default_rng(0)
    layouts = []
    for _ in range(60):
        view = tuple(rng.permutation([1, 2, 3, 4, 1])[: rng.integers(3, 6)])
        view = (*view, 24 // int(np.prod(view))) if 24 % np.prod(view) == 0 else (2, 3, 4)
        view = tuple(int(size) for size in view)
        layouts.append(TensorLayout(view, tuple(int(a) for a in rng.permutation(len(view)))))
    for a in layouts:
        for b in layouts:
            orders = [np.arange(24).reshape(x.view).transpose(x.perm).ravel() for x in (a, b)]
            assert a.same_order(b) == bool((orders[0] == orders[1]).all()), (a, b)


def test_nhwc_input_costs_nothing():
    net = Net()
    x = net.node("Transpose", [net.input((1, 8, 8, 3))], perm=[0, 3, 1, 2])
    graph = check_model(net.model(net.q(net.conv(net.dq(x, 0.031, 7), 0.031, (8, 3, 3, 3)), 0.9)), exact=True)
    assert kinds(graph) == ["conv"]
    assert graph.inputs[0].perm == (0, 1, 2, 3)


def test_nhwc_output_costs_nothing():
    net = Net()
    x = net.dq(net.input((1, 3, 8, 8)), 0.031, 7)
    y = net.q(net.conv(x, 0.031, (8, 3, 3, 3)), 0.9)
    graph = check_model(net.model(net.node("Transpose", [y], perm=[0, 2, 3, 1])), exact=True)
    assert kinds(graph) == ["conv"]


def test_reshape_as_the_first_node():
    net = Net()
    x = net.node("Reshape", [net.input((1, 8, 9, 1)), net.const([-1, 1, 8, 9], np.int64)])
    graph = check_model(net.model(net.q(net.conv(net.dq(x, 0.031, 7), 0.031, (8, 1, 3, 3)), 0.9)), exact=True)
    assert kinds(graph) == ["conv"]


def test_transpose_that_moves_data():
    net = Net()
    x = net.dq(net.input((1, 3, 8, 6)), 0.031, 7)
    y = net.dq(net.q(net.conv(x, 0.031, (8, 3, 3, 3)), 0.9), 0.9)
    turned = net.node("Transpose", [y], perm=[0, 1, 3, 2])
    graph = check_model(net.model(net.q(net.conv(turned, 0.9, (4, 8, 3, 3)), 30.0)), exact=True)
    assert kinds(graph) == ["conv", "permute", "conv"]


def test_reshape_that_moves_data():
    net = Net()
    x = net.dq(net.input((1, 3, 8, 6)), 0.031, 7)
    y = net.dq(net.q(net.conv(x, 0.031, (8, 3, 1, 1)), 0.9), 0.9)
    turned = net.node("Reshape", [y, net.const([1, 16, 4, 6], np.int64)])
    graph = check_model(net.model(net.q(net.conv(turned, 0.9, (4, 16, 3, 3)), 30.0)), exact=True)
    assert "permute" in kinds(graph)


def test_channel_shuffle():
    net = Net()
    x = net.dq(net.input((1, 3, 8, 6)), 0.031, 7)
    y = net.q(net.conv(x, 0.031, (8, 3, 1, 1)), 0.9)
    split = net.node("Reshape", [y, net.const([1, 2, 4, 8, 6], np.int64)])
    shuffled = net.node("Transpose", [split], perm=[0, 2, 1, 3, 4])
    joined = net.dq(net.node("Reshape", [shuffled, net.const([1, 8, 8, 6], np.int64)]), 0.9)
    check_model(net.model(net.q(net.conv(joined, 0.9, (4, 8, 3, 3)), 30.0)), exact=True)


@pytest.mark.parametrize("opset", [11, 13])
def test_squeeze_and_unsqueeze(opset):
    net = Net(opset)
    x = net.dq(net.input((1, 6, 1, 1)), 0.031, 7)

    def node(op, value, axes):
        if opset == 13:
            return net.node(op, [value, net.const(axes, np.int64)])
        return net.node(op, [value], axes=axes)

    weights, _ = net.weights((6, 5), None)
    y = net.q(net.node("MatMul", [node("Squeeze", x, [2, 3]), weights]), 0.9)
    graph = check_model(net.model(node("Unsqueeze", y, [2, 3])), exact=True)
    assert kinds(graph)[-1] == "conv"


@pytest.mark.parametrize("same", [True, False])
@pytest.mark.parametrize("axis", [1, 2, -1])
def test_concat(axis, same):
    net = Net()
    scales = [0.9, 0.9] if same else [0.9, 0.7]
    x = net.dq(net.input((1, 3, 6, 6)), 0.031, 7)
    parts = [net.dq(net.q(net.conv(x, 0.031, (8, 3, 1, 1)), s, 3), s, 3) for s in scales]
    graph = check_model(net.model(net.q(net.node("Concat", parts, axis=axis), 0.9, 3)))
    assert kinds(graph) == ["conv", "conv", *([] if same else ["table"]), "concat"]


@pytest.mark.parametrize("shape", [(1, 4, 6, 6), (3, 4)])
@pytest.mark.parametrize("same", [True, False])
def test_concat_with_a_constant(same, shape):
    """Its values lie in the image as they are needed: nothing moves them."""
    net = Net()
    x = net.dq(net.q(net.node("Sigmoid", [net.dq(net.input(shape), 0.05, 3)]), 0.008, -100), 0.008, -100)
    constant = net.dq(net.const(net.array((shape[0], 5, *shape[2:]))), *((0.008, -100) if same else (0.005, 3)))
    for parts in ([x, constant], [constant, x]):
        graph = check_model(net.model(net.q(net.node("Concat", parts, axis=1), 0.008, -100)))
        assert [kind for kind in kinds(graph) if kind != "permute"] == ["table", "concat"]


def test_concat_of_constants():
    net = Net()
    parts = [net.dq(net.const(net.array((1, c, 4, 4))), scale) for c, scale in ((3, 0.05), (5, 0.1))]
    joined = net.dq(net.q(net.node("Concat", parts, axis=1), 0.1), 0.1)
    x = net.dq(net.input((1, 8, 4, 4)), 0.1)
    check_model(net.model(net.q(net.node("Add", [x, joined]), 0.2)))


@pytest.mark.parametrize("shape", [(1, 4, 6, 6), (3, 4)])
def test_concat_of_8_bit_tensors_with_a_constant(shape):
    net = Net()
    x = net.q(net.node("Sigmoid", [net.dq(net.input(shape), 0.05, 3)]), 0.008, -100)
    check_model(net.model(net.node("Concat", [net.const(net.array(shape)), x], axis=1)))


def test_a_float_constant_in_concat_is_refused_by_name():
    net = Net()
    x = net.dq(net.input((1, 4, 6, 6)), 0.05, 3)
    joined = net.node("Concat", [x, net.const(net.rng.normal(size=(1, 2, 6, 6)), np.float32, name="tokens")], axis=1)
    with pytest.raises(UnsupportedModel, match="'tokens' is a constant of float32; quantise the model"):
        import_model(net.model(net.q(joined, 0.05)))


def test_qlinear_concat():
    net = Net()
    inputs = [net.const(0.9, np.float32), net.const(3, np.uint8)]
    for index, scale in enumerate((0.9, 0.7)):
        x = net.input((1, 4, 5, 5), "uint8", f"x{index}")
        inputs += [x, net.const(scale, np.float32), net.const(3, np.uint8)]
    model = net.model(net.node("QLinearConcat", inputs, domain="com.microsoft", axis=1), dtype="uint8")
    assert kinds(check_model(model)) == ["table", "concat"]


def test_identity_and_dropout_disappear():
    net = Net()
    x = net.node("Identity", [net.dq(net.input((1, 3, 6, 6)), 0.031, 7)])
    y = net.node("Dropout", [net.conv(x, 0.031, (8, 3, 1, 1))])
    assert kinds(check_model(net.model(net.q(y, 0.9)), exact=True)) == ["conv"]


def test_shape_arithmetic_is_folded():
    net = Net()
    x = net.dq(net.input((1, 3, 4, 4)), 0.031, 7)
    batch = net.node("Gather", [net.node("Shape", [x]), net.const([0], np.int64)], axis=0)
    target = net.node("Concat", [batch, net.const([-1], np.int64)], axis=0)
    weights, _ = net.weights((48, 5), None)
    y = net.node("MatMul", [net.node("Reshape", [x, target]), weights])
    check_model(net.model(net.q(y, 0.9)), exact=True)


def test_clamp_behind_concat():
    net = Net()
    x = net.dq(net.input((1, 3, 6, 6)), 0.031, 7)
    part = net.dq(net.q(net.conv(x, 0.031, (8, 3, 1, 1)), 0.9, 3), 0.9, 3)
    y = net.node("Relu", [net.node("Concat", [part, part], axis=1)])
    graph = check_model(net.model(net.q(y, 0.9, -20)))
    assert kinds(graph) == ["conv", "table", "table", "concat", "table"]


def test_square_transpose_moves_data():
    net = Net()
    x = net.dq(net.input((1, 8, 8, 8)), 0.031, 7)
    y = net.dq(net.q(net.conv(x, 0.031, (8, 8, 1, 1)), 0.9), 0.9)
    turned = net.node("Transpose", [y], perm=[0, 3, 2, 1])
    graph = check_model(net.model(net.q(net.conv(turned, 0.9, (8, 8, 3, 3)), 40.0)), exact=True)
    assert kinds(graph) == ["conv", "permute", "conv"]


def test_transpose_between_a_convolution_and_its_quantisation():
    net = Net()
    x = net.dq(net.input((1, 8, 6, 6)), 0.031, 7)
    y = net.node("Transpose", [net.conv(x, 0.031, (4, 8, 1, 1))], perm=[0, 2, 3, 1])
    weights, _ = net.weights((4, 5), 1)
    product = net.node("MatMul", [net.dq(net.q(y, 0.9), 0.9), weights])
    graph = check_model(net.model(net.q(product, 40.0)), exact=True)
    assert "permute" not in kinds(graph)


@pytest.mark.parametrize("form", ["8 bits", "quantised", "behind a convolution"])
@pytest.mark.parametrize(
    "node", [{"op": "SpaceToDepth"}, {"op": "DepthToSpace", "mode": "DCR"}, {"op": "DepthToSpace", "mode": "CRD"}]
)
def test_blocks_of_pixels_and_channels(node, form):
    net = Net(opset=13)
    x = net.input((2, 12, 6, 4))
    x = x if form == "8 bits" else net.dq(x, 0.031, 7)
    if form == "behind a convolution":
        x = net.conv(x, 0.031, (8, 12, 1, 1))
    y, scale = net.node(inputs=[x], blocksize=2, **node), 0.9 if "behind" in form else 0.031
    stored = y if form == "8 bits" else net.q(y, scale, 7)
    graph = check_model(net.model(stored), exact=True)
    assert set(kinds(graph)) <= {"conv", "reshape"}  # whoever reads the output puts it in order
    channels = graph.outputs[0].shape[1]
    y = net.q(net.conv(net.dq(stored, scale, 7), scale, (5, channels, 3, 3), pads=[1] * 4), 30.0)
    assert kinds(check_model(net.model(y), exact=True)).count("permute") == 1


@pytest.mark.parametrize("axis", range(-4, 5))
def test_flatten_at_any_axis(axis):
    net = Net()
    x = net.dq(net.input((1, 3, 4, 5)), 0.03, 2)
    check_model(net.model(net.q(net.node("Flatten", [x], axis=axis), 0.03, 2)), exact=True)
