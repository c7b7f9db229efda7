"""Pixels of tensors that only depthwise layers read start at words of LV2, unless that costs space that is needed."""

import pytest
from hypothesis import given, strategies as st

from compiler.plan.layers.lower import lower
from compiler.plan.layers.step import ModelStep
from compiler.plan.memory.pixel_pitch import words_per_run
from compiler.plan.memory.place import place_buffers
from compiler.plan.memory.sharing import BufferSharing
from compiler.plan.memory.tensor_placement import TensorPlacement
from hw.contract.isa import Segment
from hw.contract.params import preset
from tests.support.graphs import GraphBuilder, check

BASE = preset("base")


@given(st.integers(1, 400), st.integers(1, 32))
def test_words_per_run_is_the_mean_over_all_pixels(pitch, channels):
    words = [(i * pitch + channels - 1) // 32 - i * pitch // 32 + 1 for i in range(32)]
    assert words_per_run(pitch, channels, 32) == pytest.approx(sum(words) / 32)


def _block(channels: int, reader_groups: int | None = None) -> tuple[GraphBuilder, str]:
    builder = GraphBuilder(3)
    x = builder.conv(builder.input((1, 10, 9, 16)), channels, (1, 1))
    y = builder.conv(x, channels, strides=(2, 2), pads=(1, 1, 1, 1), groups=reader_groups or channels)
    builder.output(y)
    return builder, x


def _placement(builder: GraphBuilder, lv2_bytes: int) -> TensorPlacement:
    sharing = BufferSharing(builder.graph, [ModelStep.alone(layer) for layer in lower(builder.graph, BASE)], BASE)
    return place_buffers(builder.graph, sharing, BASE, 0, lv2_bytes, False)


@pytest.mark.parametrize(("channels", "pitch"), [(144, 160), (96, 96), (16, 16), (40, 64)])
def test_pitch_of_the_input_of_a_depthwise_layer(channels, pitch):
    builder, x = _block(channels)
    view = _placement(builder, BASE.lv2_bytes).view(x)
    assert view.segment == Segment.LV2 and view.strides[1:] == (9 * pitch, pitch)


def test_other_layers_read_pixels_without_gaps():
    builder, x = _block(144, reader_groups=1)
    assert _placement(builder, BASE.lv2_bytes).view(x).is_dense


def test_space_comes_first():
    builder, x = _block(144)
    view = _placement(builder, 90 * 150).view(x)
    assert view.segment == Segment.LV2 and view.is_dense


@pytest.mark.parametrize("channels", [40, 144])
def test_padded_pixels_compute_the_same(channels):
    builder, _ = _block(channels)
    check(builder.graph, BASE)
