"""Bad input gives one clear error; quirks that are legal are accepted."""

import numpy as np
import onnx
import pytest

from compiler.frontend import UnsupportedModel, import_model
from compiler.ir import CompileError
from tests.support.golden_check import check_model, kinds
from tests.support.onnx_models import Net


def _net(shape=(1, 3, 6, 6)) -> tuple[Net, str]:
    net = Net()
    x = net.dq(net.input(shape), 0.031, 7)
    return net, net.q(net.conv(x, 0.031, (8, 3, 3, 3)), 0.9)


def test_missing_file_is_named(tmp_path):
    with pytest.raises(CompileError, match=r"nothing\.onnx: cannot be read"):
        import_model(tmp_path / "nothing.onnx")


@pytest.mark.parametrize("cut", [0, 10, 200])
def test_truncated_file_is_named(tmp_path, cut):
    net, y = _net()
    path = tmp_path / "cut.onnx"
    path.write_bytes(net.model(y).SerializeToString()[:cut])
    with pytest.raises(CompileError, match=r"cut\.onnx"):
        import_model(path)


def test_text_file_is_named(tmp_path):
    path = tmp_path / "text.onnx"
    path.write_text("this is not a model\n" * 10)
    with pytest.raises(CompileError, match=r"text\.onnx: not an ONNX model"):
        import_model(path)


def test_invalid_model_is_named(tmp_path):
    net, y = _net()
    model = net.model(y)
    model.graph.node[-1].input[0] = "nowhere"
    path = tmp_path / "invalid.onnx"
    path.write_bytes(model.SerializeToString())
    with pytest.raises(CompileError, match=r"invalid\.onnx: the model is invalid"):
        import_model(path)


def test_old_operator_set():
    net, y = _net()
    model = net.model(y)
    model.opset_import[0].version = 9
    with pytest.raises(CompileError, match="operator set 9 is too old"):
        import_model(model)


def _dynamic(model: onnx.ModelProto, axis: int, name: str) -> onnx.ModelProto:
    dim = model.graph.input[0].type.tensor_type.shape.dim[axis]
    dim.ClearField("dim_value")
    dim.dim_param = name
    return model


def test_dynamic_batch_is_one_or_the_given_size():
    net, y = _net((2, 3, 6, 6))
    model = _dynamic(net.model(y), 0, "batch")
    model.graph.output[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    assert import_model(model).inputs[0].shape == (1, 3, 6, 6)
    assert import_model(model, sizes={"batch": 4}).outputs[0].shape == (4, 8, 4, 4)


def test_other_dynamic_dimensions_are_errors_that_name_them():
    net, y = _net()
    model = _dynamic(net.model(y), 2, "height")
    with pytest.raises(
        CompileError, match=r"'x' has a dynamic dimension 2 \('height'\); give its size, sizes={'height': N}, or export"
    ):
        import_model(model)
    model.graph.output[0].type.tensor_type.shape.dim[2].dim_param = "out"
    assert import_model(model, sizes={"height": 8}).outputs[0].shape == (1, 8, 6, 4)


def test_all_unsupported_nodes_are_listed_at_once():
    net, _ = _net()
    x = net.dq(net.input((1, 3, 6, 6), name="x2"), 0.031, 7)
    bad = net.q(net.node("CumSum", [x, net.const(2, np.int64)], name="first bad"), 1.0)
    worse = net.node("Det", [net.dq(bad, 1.0)], name="second bad")
    other = net.q(net.node("MaxPool", [x], outputs=2, name="third bad", kernel_shape=[2, 2]), 0.031, 7)
    model = net.model(net.q(worse, 1.0), other)
    with pytest.raises(UnsupportedModel) as error:
        import_model(model)
    assert [node.name for node in error.value.nodes] == ["first bad", "second bad", "third bad"]
    assert "indices" in error.value.nodes[2].reason
    assert "Give fallback=True" in str(error.value)


@pytest.mark.parametrize(("zeros", "reason"), [((0, 1, 2, 3, 4, 5, 6, 7), "several zero points"), ((0,) * 8, "")])
def test_weight_zero_points(zeros, reason):
    net = Net()
    x = net.dq(net.input((1, 3, 6, 6)), 0.031, 7)
    weights = net.dq(net.const(net.array((8, 3, 1, 1))), np.full(8, 0.1), np.array(zeros), axis=0)
    model = net.model(net.q(net.node("Conv", [x, weights]), 0.9))
    if reason:
        with pytest.raises(UnsupportedModel, match=reason):
            import_model(model)
    else:
        import_model(model)


def test_16_bit_activations_are_refused():
    net = Net(opset=21)
    x = net.dq(net.input((1, 3, 6, 6)), 0.031, 7)
    wide = net.q(net.conv(x, 0.031, (8, 3, 3, 3)), 0.9, 0, "int16")
    model = net.model(net.q(net.dq(wide, 0.9, 0, "int16"), 0.9))
    with pytest.raises(UnsupportedModel, match="int16 activations"):
        import_model(model)


def test_initialisers_among_the_inputs_and_nodes_without_names():
    net, y = _net()
    model = net.model(y)
    for tensor in model.graph.initializer:
        info = onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
        model.graph.input.append(info)
    for node in model.graph.node:
        node.name = ""
    graph = check_model(model, exact=True)
    assert [port.name for port in graph.inputs] == ["x"]


def test_one_initialiser_as_bias_and_zero_point():
    net = Net()
    zero = net.const(np.zeros(1), np.int32, "zero")
    x = net.dq(net.input((1, 3, 6, 6)), 0.031, 7)
    weights = net.dq(net.const(net.array((1, 3, 1, 1))), 0.1)
    bias = net.node("DequantizeLinear", [zero, net.const([0.0031], np.float32), zero], axis=0)
    assert kinds(check_model(net.model(net.q(net.node("Conv", [x, weights, bias]), 0.9)))) == ["conv"]


@pytest.mark.parametrize("opset", [10, 11, 12, 13, 15, 17, 19, 21])
def test_operator_sets(opset):
    net = Net(opset)
    x = net.dq(net.input((1, 3, 6, 6)), 0.031, 7)
    weights = net.dq(net.const(net.array((8, 3, 3, 3))), 0.01)
    y = net.node("Relu", [net.node("Conv", [x, weights])])
    assert kinds(check_model(net.model(net.q(y, 0.05, -128)), exact=True)) == ["conv"]


def test_damaged_models_give_no_other_error(tmp_path):
    net, y = _net()
    raw = net.model(y).SerializeToString()
    rng = np.random.default_rng(0)
    path, refused = tmp_path / "damaged.onnx", 0
    for _ in range(200):
        damaged = bytearray(raw)
        for position in rng.integers(0, len(raw), rng.integers(1, 5)):
            damaged[position] = rng.integers(0, 256)
        path.write_bytes(damaged)
        try:
            import_model(path)
        except CompileError:
            refused += 1
    assert refused > 50
