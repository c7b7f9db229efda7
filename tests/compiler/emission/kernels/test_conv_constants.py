"""Weights and parameters of depthwise layers come in groups: few loads, the first of them short."""

from collections import Counter

import pytest
from hypothesis import given, strategies as st

from compiler.emission.kernels.conv_constants import groups_of
from compiler.emission.objects import step_object
from compiler.pipeline import build
from compiler.plan.layers.layer import ChannelTile, ConvLayer
from compiler.plan.options import Options
from hw.contract.isa import Op, Segment
from hw.contract.params import preset
from tests.support.graphs import GraphBuilder, check


@given(st.integers(0, 60), st.integers(1, 9))
def test_groups_are_consecutive_and_grow_slowly(count, most):
    tiles = [ChannelTile(32 * i, 32, 32 * i, 32) for i in range(count)]
    groups = groups_of(tiles, most)
    distinct = list(dict.fromkeys(groups.values()))
    assert [tile for group in distinct for tile in group] == tiles
    sizes = [len(group) for group in distinct]
    assert all(size == min(most, max(1, number)) for number, size in enumerate(sizes[:-1]))
    assert sizes[:1] == [1][:count]


def _loads_of_constants(monkeypatch, builder: GraphBuilder) -> int:
    """LD1 instructions that read the weight window in depthwise layers."""
    counts: Counter[bool] = Counter()
    whole = step_object.step_jobs

    def counting(step, *rest):
        made, (layer,) = whole(step, *rest), step.members
        loads = [
            t for job, _ in made[0] for t in job.tasks if t.op is Op.LD1 and t.fields["src_seg"] == Segment.WINDOWS
        ]
        counts[isinstance(layer, ConvLayer) and layer.depthwise] += len(loads)
        return made

    monkeypatch.setattr(step_object, "step_jobs", counting)
    build(builder.graph, preset("base"), Options(regions=False))
    return counts[True]


def test_a_depthwise_layer_loads_constants_of_several_tiles_at_once(monkeypatch):
    builder = GraphBuilder(1)
    x = builder.table(builder.input((1, 7, 7, 320)))
    y = builder.conv(x, 320, pads=(1, 1, 1, 1), groups=320)
    builder.output(builder.pool("max", y, (2, 2), (1, 1)))
    assert 0 < _loads_of_constants(monkeypatch, builder) <= 5  # ten tiles


@pytest.mark.parametrize("table", [False, True])
def test_groups_compute_what_single_tiles_do(table):
    builder = GraphBuilder(2)
    x = builder.input((2, 9, 8, 270))
    builder.output(builder.conv(x, 270, pads=(1, 1, 1, 1), groups=270, table=table))
    check(builder.graph, preset("base"))


def test_all_parts_of_a_mean_have_the_same_weights(monkeypatch):
    """Sixty rows of a window, and three tiles of channels: two buffers of weights, three of parameters."""
    builder = GraphBuilder(3)
    builder.output(builder.pool("avg", builder.table(builder.input((1, 60, 52, 96))), (60, 52), (1, 1)))
    assert 0 < _loads_of_constants(monkeypatch, builder) <= 2 * (2 + 2)
