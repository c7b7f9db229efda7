"""Runs in parts of frames that all operators keep apart: attention on a batch, above all."""

import math
import random
from dataclasses import replace

import numpy as np
import pytest

from compiler import ir, reference
from compiler.pipeline import build
from compiler.plan.layers.lower import lower
from compiler.plan.layers.origin import is_in_place
from compiler.plan.options import Options
from compiler.plan.order.dimensions import FRAMES, HEIGHT
from compiler.plan.plan import ImageCut
from compiler.plan.plan_error import PlanError
from compiler.plan.split import choose
from compiler.plan.split.choose import cuts_that_pay
from compiler.plan.split.frames import frames_apart
from compiler.plan.split.parts import can_be_cut, cut, frames_of
from compiler.plan.split.runs import segments
from compiler.plan.verify import verify_model
from hw.contract.isa import Segment
from hw.contract.params import KIB, preset
from tests.compiler.plan.split.test_choose import SMALL, cycles, gains
from tests.support.graphs import GraphBuilder, check, random_inputs
from tests.support.split_graphs import attended, batched_attention, random_matrices

TINY, BASE = preset("tiny"), preset("base")
TWO = TINY.replace(name="two", engines=2)


def random_cut(seed: int) -> tuple[ir.Graph, ir.Graph]:
    """A random graph, and the same with a run in parts of frames."""
    graph, run, frames = random_matrices(seed)
    found = frames_of(graph, run)
    assert found == frames and frames_apart(graph, run) == frames, f"seed {seed}"
    pieces = random.Random(seed).randint(2, frames)
    split = cut(graph, ImageCut(frozenset(op.name for op in run), FRAMES, pieces))
    assert split is not None
    return graph, split


@pytest.mark.parametrize("first", [0, *(pytest.param(i, marks=pytest.mark.slow) for i in range(100, 1000, 100))])
def test_the_same_bytes(first):
    for seed in range(first, first + 40):
        graph, split = random_cut(seed)
        inputs = random_inputs(graph, seed)
        expected, found = (reference.run(one, inputs) for one in (graph, split))
        for name, value in expected.items():
            np.testing.assert_array_equal(found[name], value, err_msg=f"seed {seed}")
        macs = [sum(layer.macs(one) for layer in lower(one, TINY)) for one in (graph, split)]
        assert macs[0] == macs[1], f"seed {seed}"


@pytest.mark.parametrize("seed", [1, *(pytest.param(i, marks=pytest.mark.slow) for i in (0, 4, *range(10, 40)))])
def test_compiled(seed):
    _, split = random_cut(seed)
    for engines in (1, 2):
        check(split, TWO, engines=engines)


@pytest.mark.slow
def test_attention_of_a_batch_stays_on_chip():
    """By default, where scores of all frames spill: fewer bytes pass, in fewer cycles, with the same results."""
    graph = batched_attention(4, 128, 64, 8).graph
    (one,) = cuts_that_pay(graph, BASE, SMALL)
    assert one.dimension is FRAMES and {"product", "softmax"} <= {
        op.kind for op in graph.ops if op.name in one.operators
    }
    gains(graph)
    assert not build(graph, BASE, SMALL)[0].meta.segment_sizes[Segment.SCRATCH]


def test_frames_run_side_by_side():
    """More parts than have to be, as products of one frame run beside softmax of another: fewer cycles than in two."""
    graph, options = batched_attention(8, 128, 64, 4).graph, Options(engines=BASE.engines, lv2_limit=512 * KIB)
    (one,) = cuts_that_pay(graph, BASE, options)
    assert one.dimension is FRAMES and one.pieces > 2
    fewest = cut(graph, replace(one, pieces=2))
    assert fewest is not None
    alone = cycles(build(fewest, BASE, replace(options, split=False))[0])
    assert cycles(build(graph, BASE, options)[0]) < 0.95 * alone
    assert not cuts_that_pay(graph, BASE, replace(options, lv2_limit=BASE.lv2_bytes))
    (layers,) = cuts_that_pay(graph, BASE, replace(options, regions=False))
    assert layers.pieces == 2


def test_more_parts_are_priced_for_all_cuts_together(monkeypatch):
    """So a model with twice as many layers of attention is priced as often, each time once."""
    asked, price = [], choose.joined_cycles
    monkeypatch.setattr(choose, "joined_cycles", lambda *given: asked.append(1) or price(*given))
    for layers in (1, 2):
        asked.clear()
        graph = batched_attention(8, 128, 64, 4, layers).graph
        assert [one.pieces for one in cuts_that_pay(graph, BASE, replace(SMALL, lv2_limit=512 * KIB))] == [4] * layers
        assert len(asked) == 4  # in 2, 3, 4 and 8 parts


def test_parts_that_spill_more_are_not_taken(monkeypatch):
    """However few cycles they take by price."""
    graph, options = batched_attention(8, 128, 64, 4).graph, replace(SMALL, lv2_limit=512 * KIB)
    placed, layers = choose.placed_cycles, len(graph.ops)
    monkeypatch.setattr(choose, "joined_cycles", lambda graph, *_: 1e6 / len(graph.ops))
    (one,) = cuts_that_pay(graph, BASE, options)
    assert one.pieces == 8
    monkeypatch.setattr(choose, "placed_cycles", lambda graph, *given: spilling(placed(graph, *given), graph, layers))
    (one,) = cuts_that_pay(graph, BASE, options)
    assert one.pieces == 2


def spilling(found: tuple[float, int, int], graph: ir.Graph, layers: int) -> tuple[float, int, int]:
    """As if all that is cut spilled, a byte for each operator more."""
    cycles, moved, room = found
    return cycles, moved + max(0, len(graph.ops) - layers), room


def test_slices_and_results_of_attention_are_in_place():
    make = GraphBuilder(2)
    make.output(attended(random.Random(1), make, make.table(make.input((3, 8, 16)))))
    run = make.graph.ops[1:]
    split = cut(make.graph, ImageCut(frozenset(op.name for op in run), FRAMES, 3))
    moved = [op for op in split.ops if isinstance(op, ir.Slice | ir.Concat)]
    assert len(moved) == 4 and all(is_in_place(split, op) for op in moved)


def test_constants_that_all_frames_share_are_kept_once():
    make = GraphBuilder(3)
    shape = (4, 6, 8)
    alike = np.broadcast_to(make.rng.integers(-9, 9, (1, 6, 8)).astype(np.int8), shape)
    apart = make.rng.integers(-9, 9, shape).astype(np.int8)
    x = make.eltwise("add", make.input(shape), make.tensor(shape, "int8", alike))
    make.output(make.softmax(make.eltwise("add", x, make.tensor(shape, "int8", apart))))
    split = cut(make.graph, ImageCut(frozenset(op.name for op in make.graph.ops), FRAMES, 4))
    read = {name for op in split.ops for name in op.inputs if split.tensors[name].data is not None}
    assert len(read) == 1 + 4
    check(split, BASE, engines=BASE.engines)


def softmax_over_frames(make: GraphBuilder, x: str) -> str:
    return make.permute(make.softmax(make.permute(x, (2, 1, 0))), (2, 1, 0))


def frames_behind_rows(make: GraphBuilder, x: str) -> str:
    return make.permute(make.softmax(make.permute(x, (1, 0, 2))), (1, 0, 2))


def frames_joined(make: GraphBuilder, x: str) -> str:
    """A frame of the result is one of either operand."""
    y = make.concat([x, make.softmax(x)], 0)
    z = make.tensor(make.shape(x))
    make.graph.ops.append(ir.Slice(z, [y], z, axis=0, first=1))
    return z


def one_matrix_for_all(make: GraphBuilder, x: str) -> str:
    """Products of the heads of a single image, which lie where frames do."""
    frames, rows, width = make.shape(x)
    y = make.product(make.softmax(x), x, frames, (False, False, True), transposed=True)
    return make.reshape(make.conv(y, width, (1, 1)), (1, rows, width))


def heads_of_one_image(make: GraphBuilder, x: str) -> str:
    """Heads side by side, as many as there are rows."""
    shape = make.shape(x)
    x = make.reshape(x, (1, shape[0], shape[1] * shape[2]))
    return make.softmax(make.product(x, x, shape[0], (True, True, False), transposed=True))


def all_repeated(make: GraphBuilder, x: str) -> str:
    """First all frames, then all of them again."""
    frames, rows, width = make.shape(x)
    y = make.tensor((2, frames, rows, width))
    make.graph.ops.append(ir.Repeat(y, [make.reshape(make.softmax(x), (1, frames, rows, width))], y, (2, 1, 1, 1)))
    return make.table(make.reshape(y, (2 * frames, rows, width)))


def filled_rows(make: GraphBuilder, x: str) -> str:
    """How many elements of a row there are is a number for all."""
    y = make.softmax(x)
    (op,) = [op for op in make.graph.ops if op.output == y]
    op.inputs.append(make.tensor((1,), "int8"))
    return y


def windows_over_frames(make: GraphBuilder, x: str) -> str:
    """Frames are rows of one image, which windows reach over."""
    frames, rows, width = make.shape(x)
    y = make.conv(make.reshape(x, (1, frames, rows, width)), width, pads=(1, 1, 1, 1))
    return make.softmax(make.reshape(y, (frames, rows, width)))


MIXED = (
    softmax_over_frames, frames_behind_rows, frames_joined, one_matrix_for_all, filled_rows, windows_over_frames,
    heads_of_one_image, all_repeated,
)  # fmt: skip


@pytest.mark.parametrize("mix", MIXED, ids=lambda each: each.__name__)
def test_what_mixes_frames_stays_whole(mix):
    """Nothing cuts it, and a plan that does is refused."""
    make = GraphBuilder(5)
    make.output(mix(make, make.table(make.input((4, 6, 12)))))
    graph = make.graph
    assert frames_apart(graph, graph.ops) == 1
    found = [segment for chain in segments(graph) for segment in chain]
    assert math.gcd(*(one.frames for one in found)) == 1 and not all(one.cuttable for one in found)
    _, plan = build(graph, BASE, Options(split=False)) if mix is not filled_rows else (None, None)
    if plan:
        wanted = ImageCut(frozenset(op.name for op in graph.ops), FRAMES, 2)
        with pytest.raises(PlanError, match=r"frames|ends with"):
            verify_model(graph, replace(plan, rewrites=(wanted,)))


def test_a_reshape_that_mixes_frames_leaves_their_common_factor():
    """Of 4 frames in 6 slices of as many bytes, two halves can be cut."""
    make = GraphBuilder(5)
    make.output(make.table(make.reshape(make.softmax(make.input((4, 6, 8))), (6, 4, 8))))
    assert frames_apart(make.graph, make.graph.ops) == 2
    split = cut(make.graph, ImageCut(frozenset(op.name for op in make.graph.ops), FRAMES, 2))
    inputs = random_inputs(make.graph, 5)
    for name, value in reference.run(make.graph, inputs).items():
        np.testing.assert_array_equal(reference.run(split, inputs)[name], value)


def test_parts_of_an_image_are_none_of_attention():
    """A plan that cuts it by rows is refused, and so are more parts than frames, or single frames in parts."""
    graph = batched_attention(2, 16, 16, 2).graph
    _, plan = build(graph, BASE, Options())
    names = frozenset(op.name for op in graph.ops)
    assert not all(can_be_cut(graph, op) for op in graph.ops)
    for wanted, told in (
        (ImageCut(names, HEIGHT, 2), "along an image"),
        (ImageCut(names, FRAMES, 3), "must have 2 to 2"),
        (ImageCut(names, FRAMES, 2, (HEIGHT, 2)), "along an image"),
    ):
        with pytest.raises(PlanError, match=told):
            verify_model(graph, replace(plan, rewrites=(wanted,)))
    verify_model(graph, replace(plan, rewrites=(ImageCut(names, FRAMES, 2),)))
