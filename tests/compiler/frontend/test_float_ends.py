"""What stands before the first 8-bit tensor and behind the last runs on the CPU; amid the network it does not."""

import numpy as np
import onnx
import pytest

from compiler.frontend import UnsupportedModel, import_model
from compiler.frontend.float_ends import HEAD, TAIL, ends_of
from compiler.frontend.load import load
from compiler.ir import Host
from tests.support.golden_check import check_model, kinds
from tests.support.onnx_models import Net


def stored(net: Net, x: str) -> str:
    """A convolution in 8 bits, of 3 channels to 8."""
    return net.dq(net.q(net.conv(net.dq(x, 0.031, 7), 0.031, (8, 3, 3, 3)), 0.9), 0.9)


TAILS = {
    "Sigmoid": lambda net, x: net.node("Sigmoid", [x]),
    "Softmax": lambda net, x: net.node("Softmax", [x], axis=1),
    "mean": lambda net, x: net.node("Reshape", [net.node("ReduceMean", [x], axes=[2, 3]), net.const([1, 8], np.int64)]),
    "ArgMax": lambda net, x: net.node("Cast", [net.node("ArgMax", [x], axis=1)], to=1),
    "no such operator": lambda net, x: net.node("CumSum", [x, net.const(2, np.int64)]),
    "float weights": lambda net, x: net.node("Conv", [x, net.const(net.rng.normal(0, 1, (4, 8, 1, 1)), np.float32)]),
    "accumulators": lambda net, x: net.conv(x, 0.9, (4, 8, 1, 1)),
    "branches": lambda net, x: net.node("Concat", [net.node("Exp", [x]), net.node("Softmax", [x], axis=1)], axis=1),
}
HEADS = {
    "mean and deviation": (
        "float32",
        lambda net, x: net.node(
            "Div", [net.node("Sub", [x, net.const(net.rng.random((1, 3, 1, 1)), np.float32)]), net.const(2, np.float32)]
        ),
    ),
    "pixels": ("uint8", lambda net, x: net.node("Mul", [net.node("Cast", [x], to=1), net.const(1 / 64, np.float32)])),
    "float weights": (
        "float32",
        lambda net, x: net.node("Conv", [x, net.const(net.rng.normal(0, 1, (3, 3, 1, 1)), np.float32)]),
    ),
    "turned": (
        "float32",
        lambda net, x: net.node("Mul", [net.node("Transpose", [x], perm=[0, 1, 3, 2]), net.const(2, np.float32)]),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TAILS)
def test_a_tail_runs_on_the_cpu(name):
    net = Net()
    model = net.model(TAILS[name](net, stored(net, net.input((1, 3, 6, 6)))), dtype="float32")
    graph = check_model(model)
    assert kinds(graph) == ["conv", "host"]
    (step,) = (op for op in graph.ops if isinstance(op, Host))
    if name != "Softmax":
        assert TAIL in step.reason
    assert model.graph.node[-1].name in step.nodes


@pytest.mark.parametrize("name", HEADS)
def test_what_a_head_gives_goes_on_in_8_bits(name):
    dtype, made = HEADS[name]
    net = Net()
    x = net.q(made(net, net.input((1, 3, 6, 6), dtype)), 0.031, 7)
    graph = check_model(net.model(net.q(net.node("Relu", [stored(net, x)]), 0.9)))
    assert kinds(graph)[:2] == ["host", "conv"]
    assert HEAD in next(op for op in graph.ops if isinstance(op, Host)).reason


def test_amid_the_network_a_node_is_refused_and_both_ends_are_not():
    net = Net()
    x = net.node("Mul", [net.input((1, 3, 6, 6), "float32"), net.const(0.5, np.float32)], name="head")
    y = net.node("CumSum", [stored(net, net.q(x, 0.031, 7)), net.const(2, np.int64)], name="amid")
    y = net.conv(net.dq(net.q(y, 3.0), 3.0), 3.0, (4, 8, 1, 1))
    y = net.node("Flatten", [net.node("Softmax", [net.dq(net.q(y, 60.0), 60.0)], axis=1, name="tail")], name="flat")
    model = net.model(y, dtype="float32")
    with pytest.raises(UnsupportedModel, match=r"(?s)CumSum 'amid'.*They stand between 8-bit .*Give fallback") as error:
        import_model(model)
    assert [node.name for node in error.value.nodes] == ["amid"]
    assert kinds(check_model(model, fallback=True)) == ["host", "conv", "host", "conv", "host"]


@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
def test_the_index_of_a_class_is_an_output(op):
    net = Net()
    y = net.node("ReduceMean", [stored(net, net.input((1, 3, 6, 6)))], axes=[2, 3], keepdims=0)
    graph = check_model(net.model(net.node(op, [net.dq(net.q(y, 0.9), 0.9)], axis=1), dtype="int64"))
    assert kinds(graph)[-1] == "host"


@pytest.mark.parametrize(
    ("op", "more", "reason"),
    [
        ("LRN", {"size": 5}, "it divides by a power of a sum over neighbouring channels"),
        ("ArgMax", {"axis": 1}, "its indices are no 8-bit tensor; the CPU finds them behind the last one"),
    ],
)
def test_operators_of_no_form_are_refused_amid_the_network(op, more, reason):
    net = Net()
    y = net.node(op, [stored(net, net.input((1, 3, 6, 6)))], **more)
    y = net.node("Cast", [y], to=1) if op == "ArgMax" else y
    y = net.conv(net.dq(net.q(y, 0.9), 0.9), 0.9, (4, 1 if op == "ArgMax" else 8, 1, 1))
    with pytest.raises(UnsupportedModel, match=reason):
        import_model(net.model(net.q(y, 30.0)))


def test_a_branch_that_is_stored_later_is_no_tail():
    net = Net()
    x = net.node("CumSum", [stored(net, net.input((1, 3, 6, 6))), net.const(2, np.int64)], name="amid")
    model = net.model(net.node("Sigmoid", [x], name="tail"), net.dq(net.q(x, 0.9), 0.9), dtype="float32")
    with pytest.raises(UnsupportedModel) as error:
        import_model(model)
    assert [node.name for node in error.value.nodes if not node.follows] == ["amid"]


def ends(model: onnx.ModelProto) -> dict[str, str]:
    return dict(ends_of(load(model)))


def test_shapes_and_constants_are_in_no_chain():
    net = Net()
    x = net.dq(net.q(net.input((1, 3, 6, 6), "float32"), 0.031, 7), 0.031, 7)
    size = net.node("Shape", [x], name="shape")
    wide = net.dq(net.q(net.conv(x, 0.031, (8, 3, 3, 3)), 0.9), 0.9)
    other = net.node("Exp", [net.node("Reshape", [net.input((108,), "float32", "z"), size], name="head")], name="exp")
    model = net.model(net.q(wide, 0.9), net.q(other, 0.1))
    found = ends(model)
    assert found["head"] == found["exp"] == HEAD and "shape" not in found


def test_a_model_without_8_bit_operators_has_no_ends():
    net = Net()
    x, weights = net.input((1, 3, 6, 6), "float32"), net.const(net.rng.normal(0, 1, (4, 3, 1, 1)), np.float32)
    narrow = net.dq(net.q(weights, 0.1), 0.1)  # QuantizeLinear of a constant
    model = net.model(net.node("Conv", [x, narrow], name="conv"), dtype="float32")
    assert ends(model) == {}
    with pytest.raises(UnsupportedModel, match="Conv 'conv'"):
        import_model(model)
