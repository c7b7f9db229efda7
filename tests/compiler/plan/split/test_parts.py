"""Runs of operators in parts: the same bytes, the same multiplications, and programs that run."""

import random
from dataclasses import replace

import numpy as np
import pytest

from compiler import ir, reference
from compiler.plan.layers.lower import lower
from compiler.plan.layers.origin import is_in_place
from compiler.plan.order.dimensions import FRAMES, HEIGHT, WIDTH
from compiler.plan.plan import ImageCut
from compiler.plan.split.parts import can_be_cut, can_end_cut, cut, with_cuts
from hw.contract.params import preset
from tests.support.graphs import GraphBuilder, check, random_inputs
from tests.support.split_graphs import PADS, random_run

TINY, BASE = preset("tiny"), preset("base")
TWO = TINY.replace(name="two", engines=2)


def random_cut(seed: int) -> tuple[ir.Graph, ir.Graph | None]:
    """A random graph, and the same with a run in parts; None if that cannot be."""
    graph, run = random_run(seed)
    assert all(can_be_cut(graph, op) for op in run)
    draw = random.Random(seed)
    side, pieces = draw.choice([HEIGHT, WIDTH]), draw.randint(2, 4)
    if not run or graph.tensors[run[-1].output].nhwc[1 if side is HEIGHT else 2] < pieces:
        return graph, None
    return graph, cut(graph, ImageCut(frozenset(op.name for op in run), side, pieces))


@pytest.mark.parametrize(
    ("first", "count"), [(0, 24), *(pytest.param(i, 60, marks=pytest.mark.slow) for i in range(0, 1000, 100))]
)
def test_the_same_bytes(first, count):
    done = 0
    for seed in range(first, first + count):
        graph, split = random_cut(seed)
        if split is None:
            continue
        inputs = random_inputs(graph, seed)
        expected, found = (reference.run(one, inputs) for one in (graph, split))
        for name, value in expected.items():
            np.testing.assert_array_equal(found[name], value, err_msg=f"seed {seed}")
        done += 1
    assert done > count / 2, f"seeds from {first}"


@pytest.mark.parametrize(
    "params", [TWO, *(pytest.param(each, marks=pytest.mark.slow) for each in (TINY, BASE))], ids=lambda each: each.name
)
@pytest.mark.parametrize(
    ("seed", "order"),
    [(1, "source"), *(pytest.param(i, "search", marks=pytest.mark.slow) for i in (1, 5, *range(10, 60)))],
)
def test_compiled(params, seed, order):
    """Slices and results in place, on all engines and on one, observed too. The search for an order is most of the
    time."""
    _, split = random_cut(seed)
    if split is not None:
        for engines in {1, params.engines}:
            check(split, params, engines=engines, order=order)
        check(split, params, observe=True)


def random_frames(seed: int) -> tuple[ir.Graph, ir.Graph | None]:
    """A random graph of several frames, and the same with a run in parts of them, or of one; None if that cannot be."""
    draw = random.Random(seed)
    frames = draw.randint(2, 5)
    graph, run = random_run(seed, frames)
    assert all(can_be_cut(graph, op) for op in run)
    side = draw.choice([HEIGHT, WIDTH])
    within = draw.choice([None, (side, draw.randint(2, 3))])
    pieces = frames if within else draw.randint(2, frames)
    if not run or (within and graph.tensors[run[-1].output].nhwc[1 if side is HEIGHT else 2] < within[1]):
        return graph, None
    return graph, cut(graph, ImageCut(frozenset(op.name for op in run), FRAMES, pieces, within))


@pytest.mark.parametrize("first", [0, *(pytest.param(i, marks=pytest.mark.slow) for i in range(100, 1000, 100))])
def test_the_same_bytes_of_frames(first):
    """Frames first, and parts of single frames; neither slices nor joins copy anything."""
    done = 0
    for seed in range(first, first + 20):
        graph, split = random_frames(seed)
        if split is None:
            continue
        inputs = random_inputs(graph, seed)
        expected, found = (reference.run(one, inputs) for one in (graph, split))
        for name, value in expected.items():
            np.testing.assert_array_equal(found[name], value, err_msg=f"seed {seed}")
        joins = [op for op in split.ops if isinstance(op, ir.Slice) or op.name.endswith("/joined")]
        assert joins and all(is_in_place(split, op) for op in joins)
        if not any("/part0/part0" in op.name for op in split.ops):  # of images, parts leave out rows that nobody reads
            macs = [sum(layer.macs(one) for layer in lower(one, TINY)) for one in (graph, split)]
            assert macs[0] == macs[1]
        done += 1
    assert done > 10, f"seeds from {first}"


@pytest.mark.parametrize("seed", [2, 7, *(pytest.param(i, marks=pytest.mark.slow) for i in (3, *range(10, 40)))])
def test_frames_compiled(seed):
    _, split = random_frames(seed)
    if split is not None:
        for engines in (1, 2):
            check(split, TWO, engines=engines)


def test_multiplications_are_counted_once():
    make = GraphBuilder(1)
    x = make.conv(make.input((1, 20, 16, 8)), 8, pads=PADS)
    make.output(make.conv(make.conv(x, 16, pads=PADS), 8, pads=PADS))
    split = cut(make.graph, ImageCut(frozenset(op.name for op in make.graph.ops), HEIGHT, 3))
    assert split is not None
    macs = [sum(layer.macs(graph) for layer in lower(graph, TINY)) for graph in (make.graph, split)]
    assert macs[0] == macs[1]
    rows = [split.tensors[f"{make.graph.ops[0].output}/part{part}"].shape[1] for part in range(3)]
    assert rows == [9, 11, 8]  # two rows more at each seam


def matrices(rows: int) -> ir.Graph:
    """A normalisation, two products with constants and a sum of rows, with reshapes in between."""
    make = GraphBuilder(4)

    def reshaped(x: str, *shape: int) -> str:
        y = make.reshape(x, shape)
        tensors = make.graph.tensors
        tensors[y] = replace(tensors[y], scale=tensors[x].scale, zero_point=tensors[x].zero_point)
        return y

    x = make.input((1, rows, 24))
    y = make.conv(reshaped(make.layer_norm(x), rows, 24), 40, (1, 1))
    y = reshaped(reshaped(make.table(y), 1, rows, 40), rows, 40)
    make.output(make.eltwise("add", x, reshaped(make.conv(y, 24, (1, 1)), 1, rows, 24)))
    return make.graph


@pytest.mark.parametrize("pieces", [2, 3])
def test_rows_of_matrices_are_pixels(pieces):
    graph = matrices(37)
    assert all(can_be_cut(graph, op) for op in graph.ops) and not can_end_cut(graph.ops[1])
    split = cut(graph, ImageCut(frozenset(op.name for op in graph.ops), WIDTH, pieces))
    assert split is not None and not any(isinstance(op, ir.Reshape) for op in split.ops)
    inputs = random_inputs(graph, 5)
    for name, value in reference.run(graph, inputs).items():
        np.testing.assert_array_equal(reference.run(split, inputs)[name], value)
    assert all(is_in_place(split, op) for op in split.ops if isinstance(op, ir.Slice | ir.Concat))
    check(split, BASE, engines=BASE.engines)


def test_a_reshape_that_mixes_rows_stays_whole():
    make = GraphBuilder(4)
    make.output(make.table(make.reshape(make.table(make.input((1, 6, 8))), (1, 12, 4))))
    assert [can_be_cut(make.graph, op) for op in make.graph.ops] == [True, False, True]


def test_a_reshape_to_another_quantisation_stays_whole():
    graph = matrices(6)
    graph.tensors[graph.ops[1].output] = replace(graph.tensors[graph.ops[1].output], zero_point=1)
    assert not can_be_cut(graph, graph.ops[1])


def test_a_pool_of_padding_alone_stays_whole():
    make = GraphBuilder(2)
    x = make.input((1, 4, 4, 8))
    make.output(make.conv(x, 8, (3, 3), pads=(4, 0, 4, 0)))
    assert cut(make.graph, ImageCut(frozenset({make.graph.ops[0].name}), HEIGHT, 5)) is None


def test_two_cuts_that_read_the_same_rows():
    """Each has slices of its own of what both read."""
    make = GraphBuilder(8)
    x = make.conv(make.input((1, 12, 12, 4)), 8, (1, 1))
    ends = [make.conv(x, 8, pads=(1,) * 4) for _ in range(2)]
    make.output(make.eltwise("add", *ends))
    graph = make.graph
    wanted = [ImageCut(frozenset({op.name}), HEIGHT, 2) for op in graph.ops if op.output in ends]
    split = with_cuts(graph, wanted)
    made = [op.output for op in split.ops]
    assert len(made) == len(set(made))
    inputs = random_inputs(graph, 1)
    expected, found = reference.run_all(graph, inputs), reference.run_all(split, inputs)
    for port in graph.outputs:
        np.testing.assert_array_equal(found[port.tensor], expected[port.tensor])
