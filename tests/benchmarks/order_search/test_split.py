import itertools
import math
import random

import numpy as np
import pytest

from benchmarks.order_search.price import ChipModel, OrderPrice
from benchmarks.order_search.split import SplitError, SplitOperator, pays_by_price, split, split_operator
from compiler.plan.order.dimensions import CHANNELS, FRAMES, HEIGHT, RULES, WIDTH, SlidingWindow
from compiler.plan.order.graph import OperatorNode
from compiler.plan.order.greedy import least_peak_order
from compiler.plan.order.residency import peak_bytes, threshold
from compiler.plan.order.search import SearchLimits, search_order


def operator(kind, result, *operands, name="op", parameters=0, **more):
    node = OperatorNode(name, kind, matrix=100, out_bytes=math.prod(result), param_bytes=parameters)
    named = tuple((f"in{i}", extents) if isinstance(extents[0], int) else extents for i, extents in enumerate(operands))
    return SplitOperator(node, kind, result, named, **more)


def sizes(boxes):
    return [tuple(end - first for first, end in box) for box in boxes]


def test_worked_example():
    """METHODS.md, section 4: 10 frames x 100 channels become 2 x (5 x 100) or 2 x (10 x 50)."""
    pool = operator("pool", (10, 100, 1, 1), (10, 100, 1, 1))
    assert sizes(split_operator(pool, 1000)) == [(5, 100, 1, 1)] * 2
    assert sizes(split_operator(pool, 1000, along=[CHANNELS])) == [(10, 50, 1, 1)] * 2


def test_frames_first_then_channels():
    """An image of 16 channels of 10 x 10 and its 16 x 16 x 3 x 3 weights."""
    conv = operator(
        "conv", (4, 16, 10, 10), (4, 16, 10, 10), parameters=16 * 16 * 9,
        window=SlidingWindow((3, 3), (1, 1), (1, 1)),
    )  # fmt: skip
    assert sizes(split_operator(conv, 10_000)) == [(2, 16, 10, 10)] * 2
    assert sizes(split_operator(conv, 5600)) == [(1, 16, 10, 10)] * 4
    assert sizes(split_operator(conv, 5000)) == [(1, 8, 10, 10)] * 8


def test_weights_too_large_are_cut_by_channels():
    layer = operator("fully_connected", (4, 1000, 1, 1), (4, 100, 1, 1), parameters=100_000)
    assert sizes(split_operator(layer, 40_000)) == [(4, 334, 1, 1), (4, 333, 1, 1), (4, 333, 1, 1)]


def test_a_large_image_is_cut_by_height_then_width():
    """Channels do not help where the input alone is too large."""
    conv = operator("conv", (1, 8, 100, 100), (1, 8, 100, 100), parameters=8 * 8 * 9,
                    window=SlidingWindow((3, 3), (1, 1), (1, 1)))  # fmt: skip
    found = sizes(split_operator(conv, 50_000))
    assert found == [(1, 8, 25, 100)] * 4
    assert {size[3] for size in sizes(split_operator(conv, 2400))} < {49, 50, 51, 33, 34}


@pytest.mark.parametrize(
    ("kind", "allowed"),
    [
        ("resize", {FRAMES, CHANNELS}), ("pool", {FRAMES, CHANNELS}), ("transpose", {FRAMES, HEIGHT}),
        ("fully_connected", {FRAMES, CHANNELS}), ("conv", {FRAMES, CHANNELS, HEIGHT, WIDTH}),
        ("depthwise", {FRAMES, CHANNELS, HEIGHT, WIDTH}),
    ],
)  # fmt: skip
def test_dimensions_by_type(kind, allowed):
    """METHODS.md, section 4, step 2."""
    assert set(RULES[kind].dimensions) == allowed
    assert RULES[kind].dimensions[0] == FRAMES
    for dimension in set(type(FRAMES)) - allowed:
        with pytest.raises(SplitError, match=f"a {kind} cannot be split along {dimension.name.lower()}"):
            split_operator(operator(kind, (8, 8, 8, 8), (8, 8, 8, 8)), 10, along=[dimension])


@pytest.mark.parametrize(("kind", "reduced"), [("softmax", CHANNELS), ("mean", HEIGHT), ("mean", WIDTH)])
def test_never_along_what_is_reduced(kind, reduced):
    assert reduced not in RULES[kind].dimensions


def test_too_small_a_chip():
    with pytest.raises(SplitError, match="'op': its smallest part takes 1064 bytes on chip, the limit is 1000"):
        split_operator(operator("mean", (1, 1, 1, 1), (1, 1, 32, 33), parameters=7), 1000)


def test_unknown_type():
    with pytest.raises(SplitError, match="no rule to split a 'fold'"):
        operator("fold", (1, 1, 1, 1))


def test_threshold_leaves_a_reserve():
    assert threshold(1000, 0.25) == 750


def convolve(x, weights, window, groups):
    """By definition; outside of x is zero."""
    (kh, kw), (sh, sw), (top, left) = window.kernel, window.strides, window.pads
    n, c, h, w = x.shape
    padded = np.zeros((n, c, h + kh + top, w + kw + left), int)
    padded[:, :, top : top + h, left : left + w] = x
    rows, cols = (h + 2 * top - kh) // sh + 1, (w + 2 * left - kw) // sw + 1
    result = np.zeros((n, len(weights), rows, cols), int)
    per = c // groups
    for out in range(len(weights)):
        group = out // (len(weights) // groups)
        for i in range(rows):
            for j in range(cols):
                tile = padded[:, group * per : (group + 1) * per, i * sh : i * sh + kh, j * sw : j * sw + kw]
                result[:, out, i, j] = (tile * weights[out]).sum((1, 2, 3))
    return result


@pytest.mark.parametrize("seed", range(12))
def test_parts_of_a_convolution_need_no_more_than_they_are_given(seed):
    """Whatever lies outside of a part's needs may be anything; the parts together are the whole result."""
    rng = np.random.default_rng(seed)
    draw = random.Random(seed)
    kernel, stride, groups = draw.choice([1, 2, 3]), draw.choice([1, 2]), draw.choice([1, 2])
    window = SlidingWindow((kernel, 3), (stride, 1), (kernel // 2, 1))
    x = rng.integers(-9, 9, (3, 4, 9, 8))
    weights = rng.integers(-9, 9, (6, 4 // groups, *window.kernel))
    expected = convolve(x, weights, window, groups)
    conv = operator(
        "conv", expected.shape, x.shape, parameters=weights.size, window=window, groups=groups
    )  # fmt: skip
    whole = conv.bytes_of(tuple((0, extent) for extent in expected.shape))
    limit = draw.choice([whole // 2, whole // 4, whole // 8])
    covered = np.zeros(expected.shape, int)
    for part in split_operator(conv, limit):
        assert conv.bytes_of(part) <= limit
        (need,) = conv.needs(part)
        inside = tuple(slice(*along) for along in need)
        other = np.full(x.shape, 1000)
        other[inside] = x[inside]
        box = tuple(slice(*along) for along in part)
        assert np.array_equal(convolve(other, weights, window, groups)[box], expected[box])
        covered[box] += 1
    assert (covered == 1).all()


@pytest.mark.parametrize("kind", ["elementwise", "concat", "transpose", "softmax", "matmul"])
def test_parts_of_other_types(kind):
    a, b = np.arange(2 * 4 * 6 * 5).reshape(2, 4, 6, 5), np.arange(2 * 4 * 6 * 5).reshape(2, 4, 6, 5)[::-1]
    functions = {
        "elementwise": lambda x, y: x + y,
        "concat": lambda x, y: np.concatenate([x, y], 1),
        "transpose": lambda x, y: x.transpose(0, 3, 2, 1),
        "softmax": lambda x, y: x - x.max(1, keepdims=True),
        "matmul": lambda x, y: x,
    }
    if kind == "matmul":  # rows are heights, columns channels; the second has as many rows as the first has columns
        a, b = np.arange(2 * 4 * 6).reshape(2, 4, 6, 1), np.arange(2 * 5 * 4).reshape(2, 5, 4, 1) % 7
        functions["matmul"] = lambda x, y: np.einsum("ncht,nmct->nmht", x, y)
    expected = functions[kind](a, b)
    op = operator(kind, expected.shape, a.shape, *([b.shape] if kind in ("elementwise", "concat", "matmul") else []))
    for part in split_operator(op, op.bytes_of(tuple((0, extent) for extent in expected.shape)) // 3):
        given = []
        for tensor, need in zip((a, b), [*op.needs(part), *op.needs(part)][:2], strict=True):
            inside = tuple(slice(*along) for along in need)
            other = np.full(tensor.shape, -999)
            other[inside] = tensor[inside]
            given.append(other)
        box = tuple(slice(*along) for along in part)
        assert np.array_equal(functions[kind](*given)[box], expected[box])


def chain(tiled):
    """Three element-wise operators on 8 rows of 100 bytes."""
    shape = (1, 10, 8, 10)
    names = ["input", "a", "b", "c"]
    return [
        operator("elementwise", shape, (before, shape), name=name, tiled=tiled)
        for before, name in itertools.pairwise(names)
    ]


def test_parts_wait_for_the_parts_that_they_read():
    graph = split(chain(tiled=False), 400).order_graph(part_cycles=2.0)
    assert len(graph) == 12
    assert graph.edges == {(i, i + 4) for i in range(8)}
    assert {node.name for node in graph.operators} == {f"{name}[{i}]" for name in "abc" for i in range(4)}
    assert {(node.out_bytes, node.matrix) for node in graph.operators} == {(200, 27.0)}
    assert peak_bytes(graph, graph.source) == 1000
    assert peak_bytes(graph, least_peak_order(graph)) == 400


def test_rows_with_a_halo_wait_for_both_neighbours():
    shape = (1, 4, 8, 4)
    first = operator("elementwise", shape, ("input", shape), name="first")
    conv = operator("conv", shape, ("first", shape), name="conv", window=SlidingWindow((3, 3), (1, 1), (1, 1)))
    graph = split([first, conv], 140).order_graph()
    parts = [node.name for node in graph.operators if node.name.startswith("conv")]
    makers = {
        graph.operators[reader].name: sorted(graph.operators[p].name for p, r in graph.edges if r == reader)
        for _, reader in graph.edges
    }
    assert len(parts) > 2
    assert all(len(makers[part]) >= 2 for part in parts)


def good_price(chip):
    return lambda graph: search_order(graph, OrderPrice(graph, chip), SearchLimits(few=50, samples=5, tries=60)).cycles


@pytest.mark.parametrize(("bandwidth", "splits"), [(1.0, True), (1000.0, False)])
def test_what_tiles_is_split_where_that_pays(bandwidth, splits):
    """Whole, the chain spills what parts keep on chip; but each part costs 5 cycles to begin with."""
    chip = ChipModel(900, bandwidth)
    found = split(chain(tiled=True), 900, pays=pays_by_price(good_price(chip)), part_cycles=5.0)
    assert any(len(parts) > 1 for parts in found.parts) == splits


def test_what_tiles_stays_whole_without_a_price():
    assert all(len(parts) == 1 for parts in split(chain(tiled=True), 400).parts)
