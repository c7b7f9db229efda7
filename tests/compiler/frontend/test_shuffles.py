"""Shuffles of channels: who reads them takes their order, and what must be shuffled is shuffled once."""

import numpy as np
import pytest

from compiler import ir
from tests.support.golden_check import check_model
from tests.support.onnx_models import Net
from tests.support.shuffles import SCALE, depthwise, half, image, pointwise, shuffled, stored, window

GROUPS = [(2, 18), (2, 29), (3, 20), (4, 12), (4, 27)]  #: groups, channels of each


def made(graph: ir.Graph) -> list[str]:
    """What is computed behind the first convolution, without what moves nothing."""
    return sorted(op.kind for op in graph.ops[1:] if op.kind not in ("reshape", "slice"))


@pytest.mark.parametrize(("groups", "depth"), GROUPS)
def test_convolutions_over_windows_read_a_shuffle(groups, depth):
    net = Net()
    x = image(net, groups * depth, (3, 5))
    y = shuffled(net, x, groups, groups * depth, (3, 5))
    graph = check_model(net.model(window(net, y, groups * depth)), exact=True)
    assert made(graph) == ["conv", "shuffle"]


@pytest.mark.parametrize(("groups", "depth"), GROUPS)
def test_convolutions_of_pixels_read_the_columns(groups, depth):
    net, channels = Net(), groups * depth
    y = shuffled(net, image(net, channels), groups, channels)
    ends = [pointwise(net, y, channels, 7), pointwise(net, y, channels, 9, strides=[2, 2])]
    graph = check_model(net.model(*ends), exact=True)
    assert made(graph) == ["conv", "conv"]
    assert {op.weights.shape[1:] for op in graph.ops[1:] if isinstance(op, ir.Conv)} == {(1, groups, depth)}


@pytest.mark.parametrize(("groups", "depth"), [(2, 18), (3, 20), (4, 28)])
def test_parts_are_shuffles_of_parts(groups, depth):
    """As in ShuffleNetV2: one half goes on as it is, a convolution reads the other."""
    net, channels = Net(), groups * depth
    y = shuffled(net, image(net, channels), groups, channels)
    kept, other = half(net, y), half(net, y, last=True)
    z = net.dq(pointwise(net, other, channels // 2, channels // 2), SCALE)
    graph = check_model(net.model(net.q(net.node("Concat", [kept, z], axis=1), SCALE)), exact=True)
    assert made(graph) == ["concat", "conv", "shuffle"]
    shuffle = next(op for op in graph.ops if isinstance(op, ir.Shuffle))
    assert graph.tensors[shuffle.output].shape == (1, 4, 5, channels // 2)


def test_parts_that_cut_through_a_group_are_taken_from_the_whole():
    net = Net()
    y = shuffled(net, image(net, 42), 2, 42)  # halves of 21 channels
    graph = check_model(net.model(net.q(half(net, y), SCALE), net.q(half(net, y, last=True), SCALE)), exact=True)
    assert made(graph) == ["shuffle"]


def test_a_whole_that_is_read_beside_a_part_is_shuffled_once():
    net = Net()
    y = shuffled(net, image(net, 40), 2, 40)
    ends = [window(net, half(net, y), 20), window(net, y, 40), pointwise(net, y, 40, 8)]
    assert made(check_model(net.model(*ends), exact=True)) == ["conv", "conv", "conv", "shuffle"]


@pytest.mark.parametrize("axis", [0, None])
@pytest.mark.parametrize(("groups", "depth"), GROUPS)
def test_depthwise_convolutions_leave_it_to_their_readers(groups, depth, axis):
    net, channels = Net(), groups * depth
    y = shuffled(net, image(net, channels), groups, channels)
    ends = [pointwise(net, depthwise(net, y, channels, axis), channels, 9), pointwise(net, y, channels, 8)]
    graph = check_model(net.model(*ends))
    assert made(graph) == ["conv", "conv", "conv"]


@pytest.mark.parametrize("reader", ["output", "window"])
def test_a_depthwise_convolution_whose_result_others_read_follows_the_shuffle(reader):
    net = Net()
    y = shuffled(net, image(net, 40), 2, 40)
    made_by = depthwise(net, y, 40)
    end = stored(net, made_by) if reader == "output" else window(net, made_by, 40)
    graph = check_model(net.model(end))
    order = [op.kind for op in graph.ops if not op.renames]
    assert order[:3] == ["conv", "shuffle", "conv"]


@pytest.mark.parametrize(("depth", "kinds"), [(32, ["conv"]), (20, ["conv", "shuffle"]), (33, ["conv", "shuffle"])])
def test_groups_of_a_convolution_read_channels_of_all_columns(depth, kinds):
    """Few channels of each would fill no word, and an odd one belongs to no group."""
    net = Net()
    y = shuffled(net, image(net, 2 * depth), 2, 2 * depth)
    graph = check_model(net.model(stored(net, net.conv(y, SCALE, (6, depth, 1, 1), group=2))), exact=True)
    assert made(graph) == kinds


def test_equal_shuffles_are_made_once():
    net = Net()
    x = image(net, 40)
    ends = [window(net, shuffled(net, x, groups, 40), 40) for groups in (2, 2, 4)]
    assert made(check_model(net.model(*ends), exact=True)) == ["conv"] * 3 + ["shuffle"] * 2


@pytest.mark.parametrize("reader", ["output", "conv"])
def test_of_an_input_of_the_model(reader):
    """It may lie in the order of ONNX, so that a shuffle only names its channels differently."""
    net = Net()
    y = shuffled(net, net.dq(net.input((1, 40, 4, 5)), SCALE), 2, 40)
    check_model(net.model(stored(net, y) if reader == "output" else pointwise(net, y, 40, 8)), exact=True)


@pytest.mark.parametrize(("groups", "depth"), [(2, 16), (4, 6), (20, 2)])
def test_few_channels_stay_one_permutation(groups, depth):
    net = Net()
    x = image(net, groups * depth)
    y = shuffled(net, x, groups, groups * depth)
    graph = check_model(net.model(window(net, y, groups * depth)), exact=True)
    assert made(graph) == ["conv", "permute"]


def test_a_shuffle_says_what_is_wrong_with_it():
    tensors = [ir.Tensor("x", (1, 2, 6, 5), "int8"), ir.Tensor("y", (1, 2, 3, 10), "int8")]
    assert not list(ir.Shuffle("s", ["x"], "y", groups=2).problems(tensors[:1], tensors[1]))
    assert list(ir.Shuffle("s", ["x"], "y", groups=3).problems(tensors[:1], tensors[1])) == [
        "output (1, 2, 3, 10), expected (1, 2, 2, 15)"
    ]
    assert list(ir.Shuffle("s", ["x"], "y", groups=4).problems(tensors[:1], tensors[1])) == [
        "columns of (1, 2, 6, 5) in groups of 4"
    ]


def test_channels_change_places():
    x = np.arange(12, dtype=np.int8).reshape(1, 1, 4, 3)
    tensors = ir.Tensor("x", x.shape, "int8"), ir.Tensor("y", (1, 1, 2, 6), "int8")
    found = ir.Shuffle("s", ["x"], "y", groups=2).compute([ir.TensorValue(tensors[0], x)], tensors[1])
    assert found.tolist() == [[[[0, 3, 1, 4, 2, 5], [6, 9, 7, 10, 8, 11]]]]
