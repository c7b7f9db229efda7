"""Copies built by the compiler, carried out by the functional model, equal plain loops."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from compiler.emission.program.copies import CopyLoop, box_loops, contiguous, copy_fields
from compiler.plan.memory.tensor_view import PixelBox, TensorView
from hw.contract.isa import Insn, Op
from hw.contract.params import preset
from sim.functional.machine import Machine

TINY = preset("tiny")
SEGMENTS = [(0, 0)] * 6 + [(0, TINY.lv2_bytes), (0, 0)]


def _machine() -> Machine:
    machine = Machine(TINY)
    machine.lv2[...] = np.random.default_rng(0).integers(0, 256, machine.lv2.size, dtype=np.uint8)
    return machine


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_padded_window_equals_numpy_padding(data):
    draw = lambda low, high: data.draw(st.integers(low, high))  # noqa: E731
    height, width, depth = draw(1, 6), draw(1, 6), draw(1, 9)
    view = TensorView.dense(6, draw(0, 50), (1, height, width, depth))
    c = draw(0, depth - 1)
    box = PixelBox(
        0, draw(-4, height + 1), draw(1, 5), draw(-4, width + 1), draw(1, 5), c, draw(1, depth - c), draw(1, 3),
        draw(1, 3),
    )  # fmt: skip
    run = box.channels + draw(0, 4)
    machine = _machine()
    source = view.address(0, box.y, box.x, box.c)
    fields = copy_fields(source, 16, box_loops(view, box, box.cols * run, run), run, (0, box.channels), 0x5A)
    machine.execute(Insn(Op.LD1, fields | {"src_seg": 6}), SEGMENTS)
    image = machine.lv2[view.offset : view.offset + height * width * depth].reshape(height, width, depth)
    expected = np.full((box.rows, box.cols, run), 0x5A, np.uint8)
    for i, j in np.ndindex(box.rows, box.cols):
        y, x = box.y + i * box.y_step, box.x + j * box.x_step
        if 0 <= y < height and 0 <= x < width:
            expected[i, j, : box.channels] = image[y, x, c : c + box.channels]
    assert np.array_equal(machine.engines[0].lv1[16 : 16 + expected.size], expected.reshape(-1))


def test_unclipped_loops_merge_into_one_run():
    fields = copy_fields(0, 0, [CopyLoop(4, 24, 24, 0, 4), CopyLoop(3, 8, 8, 0, 3)], 8)
    assert (fields["len"], fields["hi"], fields["n2"], fields["n1"], fields["n0"]) == (96, 96, 1, 1, 1)


def test_strided_loops_merge_and_read_everything():
    fields = copy_fields(0, 0, [CopyLoop(4, 48, 30, 0, 4), CopyLoop(3, 16, 10, 0, 3)], 8)
    assert (fields["n0"], fields["lo0"], fields["hi0"]) == (12, 0, 12)


def test_too_many_loops_are_an_error():
    loops = [CopyLoop(2, 1000, 3), CopyLoop(2, 100, 7), CopyLoop(2, 50, 11), CopyLoop(2, 5, 13)]
    with pytest.raises(ValueError, match="three loops"):
        copy_fields(0, 0, loops, 1)


@given(st.integers(1, 200_000))
def test_contiguous_covers_every_byte_once(size):
    at = 0
    for fields in contiguous(100, 300, size):
        assert (fields["src"], fields["dst"]) == (100 + at, 300 + at)
        at += fields["n0"] * fields["n1"] * fields["n2"] * fields["len"]
    assert at == size
