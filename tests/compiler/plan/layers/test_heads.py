"""Attention in groups of heads and regions: exact, free of races, and preempted at any point without loss."""

import numpy as np
import pytest

from compiler import ir, reference
from compiler.pipeline import build
from compiler.plan.layers.heads import head_groups, in_turn, with_head_groups
from compiler.plan.options import Options
from hw.contract.params import SocParams, preset
from hw.image.image import Image
from tests.support.check.preemption import check_points
from tests.support.graphs import GraphBuilder, check, random_inputs
from tests.support.sampled import sampled

TINY, BASE = preset("tiny"), preset("base")


def split_heads(graph, params):
    return with_head_groups(graph, head_groups(graph, params))


def attention(seed: int = 1, length: int = 24, heads: int = 4, width: int = 16, **more) -> ir.Graph:
    """Of inputs in DRAM."""
    make = GraphBuilder(seed)
    make.output(make.attention(length, heads, width, **more))
    return make.graph


SHAPES = [(24, 0, 4), (33, 50, 3), (7, 130, 1), (90, 0, 5)]
ORDINARY = {(24, 0, 4, TINY, True), (33, 50, 3, BASE, True), (7, 130, 1, BASE, False), (90, 0, 5, TINY, False)}


@pytest.mark.parametrize(
    ("length", "keys", "heads", "params", "mask"),
    [
        pytest.param(*case, marks=() if case in ORDINARY else pytest.mark.slow)
        for case in [(*shape, params, mask) for shape in SHAPES for params in (TINY, BASE) for mask in (False, True)]
    ],
    ids=lambda value: value.name if isinstance(value, SocParams) else str(value),
)
def test_exact(length, keys, heads, params, mask):
    check(attention(length=length, keys=keys, heads=heads, mask=mask), params, engines=params.engines)


@pytest.mark.parametrize("mask", ["alike", "apart"])
@pytest.mark.parametrize(("length", "heads", "params"), sampled([(24, 3, TINY), (40, 4, BASE), (150, 1, TINY)], 1))
def test_a_constant_mask_of_all_scores_is_in_groups_too(length, heads, params, mask):
    graph = attention(length=length, heads=heads, width=8, mask=mask)
    split = split_heads(graph, params)
    masks = [split.tensors[op.inputs[1]] for op in split.ops if isinstance(op, ir.Eltwise)]
    assert len(masks) >= 2 and all(one.size < length * length * max(heads, 2) for one in masks)
    shared = len({one.name for one in masks}) < len(masks)
    assert shared == (mask == "alike" and heads > 1)
    values = random_inputs(graph, 2)
    for name, value in reference.run(graph, values).items():
        assert np.array_equal(reference.run(split, values)[name], value)
    check(graph, params, engines=params.engines)


def test_units_work_side_by_side():
    """Some softmax stands in a region with a product."""
    kinds = [layer.kind for layer in check(attention(length=64, heads=6), BASE, engines=2).meta.layers]
    assert any("product" in kind and "softmax" in kind for kind in kinds), kinds


def test_groups_keep_scores_small():
    graph = attention(length=256, heads=8, width=8)
    split = split_heads(graph, BASE)
    scores = [split.tensors[op.output].size for op in split.ops if isinstance(op, ir.Softmax)]
    assert len(scores) >= 3 and max(scores) <= BASE.lv2_bytes // 16
    values = random_inputs(graph, 2)
    for name, value in reference.run(graph, values).items():
        assert np.array_equal(reference.run(split, values)[name], value)


@pytest.mark.parametrize(
    ("length", "keys", "mask"), [(600, 40, False), pytest.param(90, 300, True, marks=pytest.mark.slow)]
)
def test_rows_of_a_long_head_are_cut_into_stripes(length, keys, mask):
    """Scores of a stripe stay small; the same bytes, and a program that runs."""
    graph = attention(length=length, keys=keys, heads=2, width=8, mask=mask)
    groups = head_groups(graph, TINY)
    split = with_head_groups(graph, groups)
    scores = [split.tensors[op.output].size for op in split.ops if isinstance(op, ir.Softmax)]
    assert groups[0].stripes > 1 and len(scores) == 2 * groups[0].stripes
    assert max(scores) <= TINY.lv2_bytes // 6
    values = random_inputs(graph, 2)
    for name, value in reference.run(graph, values).items():
        assert np.array_equal(reference.run(split, values)[name], value)
    check(graph, TINY)


def test_stripes_run_in_turn():
    """Scores of a stripe are made before those ahead are used up, and no more than two are held."""
    graph = attention(length=150, heads=2, width=8)
    _, plan = build(graph, TINY, jobs=1)
    assert plan.steps is not None
    order = [name for step in plan.steps for name in step.layers if "/rows" in name]
    (turn,) = in_turn(graph, head_groups(graph, TINY))
    assert [name for name in order if name in turn] == [name for name in turn if name in order]
    held, most = set[str](), 0
    for name in turn:
        kind, _, stripe = name.partition("/")
        held ^= {stripe} if kind in (turn[0].partition("/")[0], turn[-1].partition("/")[0]) else set()
        most = max(most, len(held))
    assert most == 2 and not held


def test_scores_that_are_read_elsewhere_stay_whole():
    make = GraphBuilder(3)
    y = make.attention(16, 4, 8)
    scores = next(op.output for op in make.graph.ops if isinstance(op, ir.Softmax))
    make.output(scores)
    make.output(y)
    assert [op.kind for op in split_heads(make.graph, BASE).ops] == [op.kind for op in make.graph.ops]
    check(make.graph, BASE, engines=2)


def test_heads_that_a_reshape_mixes_with_rows_stay_whole():
    make = GraphBuilder(1)
    q, k, v = (make.input((1, 12, 32)) for _ in range(3))
    scores = make.product(q, k, 4, (True, True, False), transposed=True)
    weights = make.reshape(make.softmax(make.reshape(scores, (1, 48, 12))), (4, 12, 12))
    make.output(make.product(weights, v, 4, (False, True, True), transposed=False))
    assert [op.kind for op in split_heads(make.graph, TINY).ops] == [op.kind for op in make.graph.ops]
    check(make.graph, TINY)


@pytest.mark.parametrize(("params", "engines"), [(TINY, 1), (BASE, 2)], ids=["tiny", "base"])
def test_preempted_at_every_point(params, engines):
    graph = attention(length=40, heads=3, mask=True)
    image, _ = build(graph, params, Options(engines=engines, cancel_interval=600))
    image = Image.from_bytes(image.to_bytes())
    given = random_inputs(graph, 4)
    report = check_points(image, {port.tensor: given[port.name] for port in graph.inputs})
    assert report.ok, report
    assert len(report.points) >= 8, report


@pytest.mark.parametrize("kind", ["layer_norm", "rms_norm"])
@pytest.mark.parametrize("engines", [1, 2])
def test_normalisation_preempted_at_every_point(engines, kind):
    make = GraphBuilder(9)
    x = make.conv(make.input((1, 1, 60, 40)), 200, (1, 1))
    make.output(make.softmax(getattr(make, kind)(make.reshape(x, (1, 60, 200)))))
    image, _ = build(make.graph, BASE, Options(engines=engines, cancel_interval=400))
    given = random_inputs(make.graph, 4)
    report = check_points(Image.from_bytes(image.to_bytes()), {p.tensor: given[p.name] for p in make.graph.inputs})
    assert report.ok and report.points, report
