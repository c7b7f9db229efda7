"""Slice and Split: parts of one quantised tensor, read in place or copied."""

import numpy as np
import onnx
import pytest

from compiler.frontend import import_model
from compiler.frontend.problems import UnsupportedModel
from tests.support.golden_check import check_model, kinds
from tests.support.onnx_models import Net

IMAGE = (1, 12, 6, 5)


def split(net: Net, x: str, count: int, sizes=None, axis: int = 1, **attributes) -> list[str]:
    """The parts that Split makes of ``x``; sizes stand where the operator set has them."""
    inputs = [x]
    if sizes is not None and net.opset >= 13:
        inputs.append(net.const(sizes, np.int64))
    elif sizes is not None:
        attributes["split"] = sizes
    net.node("Split", inputs, outputs=count, axis=axis, **attributes)
    return list(net.nodes[-1].output)


@pytest.mark.parametrize("opset", [11, 13, 18])
@pytest.mark.parametrize("sizes", [None, [6, 6], [3, 9]])
@pytest.mark.parametrize("axis", [1, -3])
def test_sizes_of_all_operator_sets(opset, sizes, axis):
    net = Net(opset)
    more = {"num_outputs": 2} if opset == 18 and sizes is None else {}
    parts = split(net, net.dq(net.input(IMAGE), 0.031, 7), 2, sizes, axis, **more)
    graph = check_model(net.model(*(net.q(part, 0.031, 7) for part in parts)), exact=True)
    assert kinds(graph) == ["slice", "slice"]


@pytest.mark.parametrize(("axis", "count"), [(0, 1), (1, 4), (2, 4), (3, 3), (-1, 2)])
def test_the_last_of_several_parts_may_be_shorter(axis, count):
    net = Net(18)
    parts = split(net, net.dq(net.input(IMAGE), 0.031, 7), count, None, axis, num_outputs=count)
    if axis == 2:  # four parts of two of six are one too many
        with pytest.raises(UnsupportedModel, match=r"an empty part among sizes \[2, 2, 2, 0\]"):
            import_model(net.model(*(net.q(part, 0.031, 7) for part in parts)))
        return
    graph = check_model(net.model(*(net.q(part, 0.05, -3) for part in parts)))
    assert kinds(graph).count("slice") == (0 if count == 1 else count)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_parts_of_an_8_bit_tensor_are_stored_as_it_is(dtype):
    net = Net()
    first, second = split(net, net.input(IMAGE, dtype), 2)
    assert kinds(check_model(net.model(second, first, dtype=dtype), exact=True)) == ["slice", "slice"]


@pytest.mark.parametrize("stored", [(0.031, 7), (0.045, -9)])
def test_channels_of_an_image_go_their_ways(stored):
    """As in ShuffleNetV2 and YOLO: one part goes on as it is, one through a convolution."""
    net = Net()
    parts = split(net, net.dq(net.input(IMAGE), 0.031, 7), 2)
    left, right = (net.dq(net.q(part, *stored), *stored) for part in parts)
    y = net.dq(net.q(net.conv(right, stored[0], (6, 6, 1, 1)), *stored), *stored)
    graph = check_model(net.model(net.q(net.node("Concat", [left, y], axis=1), *stored)))
    tables = 2 if stored[0] != 0.031 else 0
    assert sorted(kinds(graph)) == sorted(["slice", "slice", "conv", "concat"] + ["table"] * tables)


def test_parts_of_shuffled_channels_lie_as_images_do():
    """Channels that have changed places within the pixels are not moved to the order of ONNX and back."""
    net = Net()
    x = net.dq(net.input((1, 3, 6, 5)), 0.031, 7)
    y = net.dq(net.q(net.conv(x, 0.031, (12, 3, 1, 1)), 0.9), 0.9)
    y = net.node("Reshape", [y, net.const([1, 2, 6, 6, 5], np.int64)])
    y = net.node("Transpose", [y], perm=[0, 2, 1, 3, 4])
    y = net.dq(net.q(net.node("Reshape", [y, net.const(IMAGE, np.int64)]), 0.9), 0.9)
    left, right = (net.dq(net.q(part, 0.9), 0.9) for part in split(net, y, 2))
    ends = [net.q(net.conv(part, 0.9, (8, 6, 1, 1)), 9.0) for part in (left, right)]
    graph = check_model(net.model(*ends), exact=True)
    assert [kind for kind in kinds(graph) if kind != "reshape"] == ["conv", "permute", "slice", "slice", "conv", "conv"]


def test_queries_keys_and_values():
    net = Net()
    parts = split(net, net.dq(net.input((1, 7, 24)), 0.031, 7), 3, axis=-1)
    q, k, _ = (net.dq(net.q(part, 0.031, 7), 0.031, 7) for part in parts)
    scores = net.node("MatMul", [q, net.node("Transpose", [k], perm=[0, 2, 1])])
    assert kinds(check_model(net.model(net.q(scores, 0.4)), exact=True)).count("slice") == 2  # nobody reads the third


@pytest.mark.parametrize("op", ["Sigmoid", "Conv"])
def test_parts_that_are_read_in_float(op):
    net = Net()
    ends = []
    for part in split(net, net.dq(net.input(IMAGE), 0.031, 7), 3):
        y = net.conv(part, 0.031, (8, 4, 3, 3)) if op == "Conv" else net.node(op, [part])
        ends.append(net.q(y, 0.01, -3))
    check_model(net.model(*ends))


@pytest.mark.parametrize("op", ["CumSum", "LogSoftmax"])
def test_the_cpu_takes_a_part_of_what_it_can_read(op):
    net = Net()
    x = net.dq(net.q(net.conv(net.dq(net.input(IMAGE), 0.031, 7), 0.031, (12, 12, 1, 1)), 0.9), 0.9)
    part = split(net, x, 3)[1]
    y = net.node(op, [part, net.const(2, np.int64)]) if op == "CumSum" else net.node(op, [part])
    graph = check_model(net.model(net.q(y, 0.9)), fallback=True)
    assert kinds(graph) == ["conv", "host"]


def refused(model: onnx.ModelProto) -> str:
    """The message about the one node that cannot run."""
    with pytest.raises(UnsupportedModel) as error:
        import_model(model)
    assert len(error.value.nodes) == 1
    return str(error.value)


def test_a_split_that_cannot_run_is_named_once():
    net = Net()
    x = net.dq(net.input(IMAGE), 0.031, 7)
    parts = split(net, net.conv(x, 0.031, (12, 12, 1, 1)), 3)
    model = net.model(*(net.q(part, 0.9) for part in parts))
    said = refused(model)
    assert said.count("Split '") == 1 and "is not quantised (float result of Conv" in said
    assert "host" in kinds(check_model(model, fallback=True))


def test_sizes_that_are_computed_are_refused():
    net = Net()
    x = net.dq(net.input(IMAGE), 0.031, 7)
    sizes = net.node("Cast", [net.input((2,), name="sizes")], to=7)
    net.node("Split", [x, sizes], outputs=2, axis=1)
    model = net.model(*(net.q(part, 0.031, 7) for part in net.nodes[-1].output))
    with pytest.raises(UnsupportedModel, match=r"its split .* is computed at run time"):
        import_model(model)


def sliced(net: Net, x: str, starts, ends, axes, steps=None) -> str:
    given = [starts, ends, axes] + ([] if steps is None else [steps])
    return net.node("Slice", [x, *(net.const(each, np.int64) for each in given)])


STRETCHES = {
    "rows and columns": ([1, 2], [6, 5], [2, 3]),
    "all but the ends": ([1, 1, 1], [-1, -1, -1], [-1, -2, -3]),
    "from all axes": ([0, 3, 0, 1], [1, 100, 100, 4], [0, 1, 2, 3]),
    "every second column": ([1], [5], [3], [2]),
    "every third channel": ([0], [12], [1], [3]),
    "a quarter": ([1, 0], [6, 5], [2, 3], [2, 2]),
    "all": ([0], [100], [1]),
}
CUT = {"from all axes": 2, "all": 0}  #: axes of which something is left out, where those are not all that are named


@pytest.mark.parametrize("form", ["8 bits", "quantised", "requantised", "read in float"])
@pytest.mark.parametrize("name", STRETCHES)
def test_stretches_of_several_axes_with_steps(name, form):
    net = Net()
    x = net.input(IMAGE) if form == "8 bits" else net.dq(net.input(IMAGE), 0.031, 7)
    y = sliced(net, x, *STRETCHES[name])
    if form == "read in float":
        y = net.q(net.node("Tanh", [y]), 0.01, -3)
    elif form != "8 bits":
        y = net.q(y, *((0.031, 7) if form == "quantised" else (0.05, -3)))
    graph = check_model(net.model(y), exact=form != "requantised")
    assert kinds(graph).count("slice") == CUT.get(name, len(STRETCHES[name][2]))


def test_focus_gathers_every_second_pixel():
    """YOLOv5's first layer: four quarters of an image side by side."""
    net = Net()
    x = net.dq(net.input((1, 3, 8, 8)), 0.031, 7)
    columns = {first: sliced(net, x, [first], [100], [3], [2]) for first in (0, 1)}
    parts = [sliced(net, columns[left], [top], [100], [2], [2]) for left in (0, 1) for top in (0, 1)]
    y = net.dq(net.q(net.node("Concat", parts, axis=1), 0.031, 7), 0.031, 7)
    check_model(net.model(net.q(net.conv(y, 0.031, (8, 12, 3, 3)), 0.9)), exact=True)


def test_a_shift_of_windows():
    """Swin rolls an image by one window's half along each axis."""
    net = Net()
    x = net.dq(net.input((1, 8, 8, 6)), 0.031, 7)
    for axis in (1, 2):
        parts = [sliced(net, x, [3], [100], [axis]), sliced(net, x, [0], [3], [axis])]
        x = net.dq(net.q(net.node("Concat", parts, axis=axis), 0.031, 7), 0.031, 7)
    check_model(net.model(net.q(net.node("Relu", [x]), 0.031, 7)), exact=True)


@pytest.mark.parametrize(
    ("stretch", "reason"),
    [
        (([5], [0], [1], [-1]), "step -1 along axis 1; the accelerator steps forwards"),
        (([4], [4], [1]), "an empty stretch 4 to 4 of 12"),
    ],
)
def test_other_slices_are_refused(stretch, reason):
    net = Net()
    x = net.dq(net.input(IMAGE), 0.031, 7)
    assert reason in refused(net.model(net.q(sliced(net, x, *stretch), 0.031, 7)))


@pytest.mark.parametrize("indices", [[0, 6], [-7], 9])
def test_indices_beyond_an_axis_are_refused(indices):
    net = Net(17)
    x = net.dq(net.input((1, 6, 4, 5)), 0.031, 7)
    y = net.node("Gather", [x, net.const(indices, np.int64)], axis=1)
    with pytest.raises(UnsupportedModel, match=r"indices from -?\d+ to -?\d+ along an axis of 6"):
        import_model(net.model(net.q(y, 0.03, 5)))
