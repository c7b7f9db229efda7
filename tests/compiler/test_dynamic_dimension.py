import onnx
import pytest

from compiler.dynamic_dimension import DynamicDimension
from compiler.frontend import import_model
from compiler.ir import CompileError
from tests.support.length_nets import conv_net, length_net
from tests.support.onnx_models import Net


def test_the_dimension_is_found_and_fixed(tmp_path):
    onnx.save(conv_net((2, 0)), tmp_path / "net.onnx")
    found = DynamicDimension.of(tmp_path / "net.onnx")
    assert (found.model, found.label, found.axes, found.inputs) == ("net", "L", (("x", 2),), ["x"])
    assert import_model(found.fixed(7), name="net").inputs[0].shape == (1, 4, 7)
    assert import_model(found.fixed(9), name="net").inputs[0].shape == (1, 4, 9)


def test_the_first_dimension_is_the_batch_unless_it_is_named():
    net = length_net(lambda net, x: x, ("N", 4, "L"))
    assert DynamicDimension.of(net).axes == (("x", 2),)
    assert DynamicDimension.of(net, "N").axes == (("x", 0),)


def test_several_inputs_may_share_it():
    net = Net()
    a, b = (net.dq(net.input((1, 4, "L"), name=name), 0.05, 3) for name in ("a", "b"))
    assert DynamicDimension.of(net.model(net.q(net.node("Add", [a, b]), 0.1))).axes == (("a", 2), ("b", 2))


def test_a_dimension_without_a_name_is_called_by_its_place():
    assert DynamicDimension.of(length_net(lambda net, x: x, (1, 4, None))).label == "x[2]"


@pytest.mark.parametrize(
    ("shape", "label", "message"),
    [
        ((1, 4, 8), None, "no dynamic dimensions behind the first.*it has none"),
        (("N", 4, 8), None, "no dynamic dimensions behind the first.*it has 'N'"),
        ((1, "A", "B"), None, "2 dynamic dimensions.*it has 'A', 'B': say which"),
        ((1, 4, "L"), "M", "no input has a dynamic dimension 'M'; it has 'L'"),
    ],
)
def test_errors_name_what_there_is(shape, label, message):
    with pytest.raises(CompileError, match=message):
        DynamicDimension.of(length_net(lambda net, x: x, shape), label)


def test_a_file_that_is_no_model(tmp_path):
    (tmp_path / "a.onnx").write_bytes(b"junk")
    with pytest.raises(CompileError, match=r"a\.onnx"):
        DynamicDimension.of(tmp_path / "a.onnx")
