"""Normalisations of channels and of groups: in parts the same numbers, and in 8 bits on the accelerator."""

import numpy as np
import onnx
import pytest
from onnx import helper

from compiler import quantise
from compiler.frontend import UnsupportedModel, import_model
from compiler.quantise.plain_norms import plain_norms
from sim.host import session
from tests.support.fast_run import equals_onnxruntime
from tests.support.float_nets import SHAPE, FloatNet
from tests.support.golden_check import check_model, kinds
from tests.support.onnx_models import Net, sandwich


def normalised(kind: str) -> onnx.ModelProto:
    """A convolution, a normalisation of its 8 channels, and another convolution. PyTorch writes a group normalisation
    as ``written out``."""
    net = FloatNet()
    x = net.conv("in", 3, 8, 3, 2)
    scale, bias = net.const(net.rng.uniform(0.5, 1.5, 8)), net.const(net.rng.normal(0, 0.2, 8))
    if kind == "written out":
        x = net.node("Reshape", x, net.const([0, 4, -1], np.int64))
        x = net.node("InstanceNormalization", x, net.const(np.ones(4)), net.const(np.zeros(4)))
        x = net.node("Reshape", x, net.const([1, 8, 16, 16], np.int64))
        x = net.node("Mul", x, net.const(net.rng.uniform(0.5, 1.5, (8, 1, 1))))
        x = net.node("Add", x, net.const(net.rng.normal(0, 0.2, (8, 1, 1))))
    elif kind == "groups":
        x = net.node("GroupNormalization", x, scale, bias, num_groups=4, epsilon=1e-3)
    else:
        x = net.node("InstanceNormalization", x, scale, bias, epsilon=1e-3)
    output = net.conv(x, 8, 6, 1)
    ends = helper.make_tensor_value_info("in", 1, SHAPE), helper.make_tensor_value_info(output, 1, (1, 6, 16, 16))
    graph = helper.make_graph(net.nodes, "net", ends[:1], ends[1:], net.initializers)
    version = 21 if kind == "groups" else 17
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)], ir_version=10)


@pytest.mark.parametrize("kind", ["channels", "groups", "written out"])
def test_the_same_numbers_in_float(kind):
    model, feed = normalised(kind), {"in": np.random.default_rng(0).normal(0, 1, SHAPE).astype(np.float32)}
    made = plain_norms(model)
    onnx.checker.check_model(made)
    assert "GroupNormalization" not in {node.op_type for node in made.graph.node}
    wanted, found = (session(one).run(None, feed)[0] for one in (model, made))
    np.testing.assert_allclose(found, wanted, atol=1e-5)


@pytest.mark.parametrize("kind", ["channels", "groups", "written out"])
def test_the_accelerator_runs_what_is_quantised(kind, tmp_path):
    rng = np.random.default_rng(0)
    feeds = [{"in": rng.normal(0, 1, SHAPE).astype(np.float32)} for _ in range(3)]
    quantise.quantise(quantise.prepared(normalised(kind)), feeds, tmp_path / "q.onnx")
    found = kinds(check_model(onnx.load(tmp_path / "q.onnx")))
    assert "layernorm" in found and "host" not in found
    for preset in ("tiny", "base"):
        equals_onnxruntime(tmp_path / "q.onnx", preset, least=0.95)


@pytest.mark.parametrize("shape", [(1, 6, 8, 7), (2, 5, 40), (2, 3, 4, 5)])
@pytest.mark.parametrize("affine", [(1.0, 0.0), (-0.7, 0.4)])
def test_one_scale_for_all_channels(shape, affine):
    constants = [np.full(shape[1], value, np.float32) for value in affine]
    graph = check_model(sandwich("InstanceNormalization", [(shape, 0.03, 7)], (0.02, -3), constants=constants))
    assert "layernorm" in kinds(graph)


@pytest.mark.parametrize(
    ("shape", "scale", "reason"),
    [
        ((1, 3, 8, 7), [1.0, 2.0, 1.0], "a scale or a bias for each channel; the accelerator has one for all"),
        ((1, 3, 70, 70), [1.0] * 3, "rows of 4900 elements; they may have 2 to 4080"),
    ],
)
def test_others_are_refused(shape, scale, reason):
    net = Net()
    x = net.dq(net.input(shape), 0.03, 7)
    y = net.node("InstanceNormalization", [x, net.const(scale, np.float32), net.const([0.0] * 3, np.float32)])
    with pytest.raises(UnsupportedModel, match=reason):
        import_model(net.model(net.q(y, 0.02)))
