"""ReduceMax, ReduceMin, ReduceMean and ReduceSum over any axes, with the rounding of onnxruntime's kernels."""

import numpy as np
import pytest

from compiler.frontend import import_model
from compiler.frontend.problems import UnsupportedModel
from tests.support.golden_check import check_model, kinds
from tests.support.onnx_models import Net

EXTREMES, SUMS = ["ReduceMax", "ReduceMin"], ["ReduceMean", "ReduceSum"]


def reduced(net: Net, op: str, x: str, axes, keepdims: int = 1) -> str:
    """The node as its operator set writes it."""
    as_input = net.opset >= (13 if op == "ReduceSum" else 18)
    if as_input:
        return net.node(op, [x, *([] if axes is None else [net.const(axes, np.int64)])], keepdims=keepdims)
    return net.node(op, [x], keepdims=keepdims, **({} if axes is None else {"axes": axes}))


def model_of(op: str, shape, axes, target, keepdims: int = 1, opset: int = 13, dtype: str = "int8"):
    net = Net(opset)
    x = net.dq(net.input(shape, dtype), 0.0131, 5, dtype)
    return net.model(net.q(reduced(net, op, x, axes, keepdims), *target, dtype), dtype=dtype)


@pytest.mark.parametrize("opset", [11, 13, 18])
@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("axes", [[2, 3], [-1, -2], [1, 2], [1], [3], [2], [0, 1, 2, 3], None])
@pytest.mark.parametrize("op", [*EXTREMES, *SUMS])
def test_axes_of_an_image(op, axes, keepdims, opset):
    graph = check_model(model_of(op, (1, 30, 7, 9), axes, (0.0087, 8), keepdims, opset), exact=op in EXTREMES)
    assert "pool" in kinds(graph)


OTHERS = [((40, 12), [0]), ((40, 12), [1]), ((2, 9, 12), [1]), ((2, 3, 4, 5, 6), [1, 3])]


@pytest.mark.parametrize(("shape", "axes"), OTHERS)
@pytest.mark.parametrize("op", [*EXTREMES, *SUMS])
def test_axes_of_other_tensors(op, shape, axes):
    check_model(model_of(op, shape, axes, (0.013, 5) if op in EXTREMES else (0.04, 8), 0), exact=op in EXTREMES)


@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("axis", [1, 2])
def test_mean_over_a_sequence(axis, keepdims):
    graph = check_model(model_of("ReduceMean", (1, 9, 12), [axis], (0.02, 3), keepdims))
    assert graph.outputs[0].shape == ((1, 1, 12), (1, 9, 1))[axis - 1] if keepdims else (1, 12 if axis == 1 else 9)


@pytest.mark.parametrize("points", [256, 300, 1021, 2048])
@pytest.mark.parametrize("op", EXTREMES)
def test_the_extreme_of_many_points(op, points):
    """PointNet's maximum over points: no window is longer than the vector unit has, however many there are."""
    net = Net()
    x = net.dq(net.input((1, 3, points)), 0.031, 7)
    y = net.dq(net.q(net.conv(x, 0.031, (16, 3, 1)), 0.9, 3), 0.9, 3)
    graph = check_model(net.model(net.q(reduced(net, op, y, [2], 0), 0.9, 3)), exact=True)
    pools = [size for op in graph.ops if op.kind == "pool" for size in op.kernel]
    assert max(pools) <= 255 and "permute" not in kinds(graph)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("op", EXTREMES)
def test_extremes_of_8_bit_tensors(op, dtype):
    net = Net()
    graph = check_model(net.model(reduced(net, op, net.input((1, 6, 5, 4), dtype), [2, 3]), dtype=dtype), exact=True)
    assert set(kinds(graph)) <= {"pool", "reshape"}


@pytest.mark.parametrize("op", EXTREMES)
def test_a_clamp_is_part_of_it(op):
    net = Net()
    y = reduced(net, op, net.dq(net.input((1, 60, 4, 4)), 0.03, -3), [2, 3])
    graph = check_model(net.model(net.q(net.node("Clip", [y, net.const(-0.5, np.float32)]), 0.04, 2)), exact=True)
    assert kinds(graph) == ["pool"]


def test_axes_of_one_element_move_nothing():
    net = Net()
    y = reduced(net, "ReduceMax", net.dq(net.input((1, 60, 1, 4)), 0.03, -3), [2], 0)
    assert set(kinds(check_model(net.model(net.q(y, 0.03, -3)), exact=True))) <= {"reshape"}


def test_sums_of_long_axes_have_square_windows():
    graph = check_model(model_of("ReduceMean", (1, 6, 1024), [2], (0.01, 0), 0))
    assert [op.kernel for op in graph.ops if op.kind == "pool"] == [(32, 32)]


@pytest.mark.parametrize("size", [(300, 300), (1021, 1)])
def test_more_than_the_accelerator_adds_is_refused(size):
    said = f"it adds {size[0] * size[1]} elements; the accelerator adds 16384 at most, in windows of at most 255 by 255"
    with pytest.raises(UnsupportedModel, match=said):
        import_model(model_of("ReduceSum", (1, 1, *size), [2, 3], (9.0, 0)))


@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("op", [*EXTREMES, *SUMS])
def test_a_table_may_follow_axes_of_one_element(op, keepdims):
    net = Net()
    x = net.dq(net.input((1, 4, 1, 5)), 0.031, 7)
    y = net.node("Sigmoid", [reduced(net, op, x, [2], keepdims)])
    assert "table" in kinds(check_model(net.model(net.q(y, 0.01))))
