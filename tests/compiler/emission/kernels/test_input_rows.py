"""The input of a convolution that does not stay in LV2 passes through in whole rows, piece by piece."""

import numpy as np
import pytest

from compiler import reference
from compiler.emission.program.copies import PIECE, pieces
from compiler.pipeline import build
from compiler.plan.options import Options
from hw.contract.isa import Insn, Op, Segment
from hw.contract.params import preset
from hw.contract.timing import UNIT_IN_FLIGHT
from hw.image.image import Image
from tests.support.check.preemption import check_points
from tests.support.check.races import RaceChecker
from tests.support.graphs import GraphBuilder, random_inputs
from tests.support.image_runner import run_image
from tests.support.images import decoded

TINY = preset("tiny")
SIDE = 96  # 27 KiB of input; a quarter of LV2, 32 KiB, may be used


@pytest.fixture(scope="module")
def compiled():
    make = GraphBuilder(3)
    y = make.conv(make.input((1, SIDE, SIDE, 3)), 8, (7, 7), strides=(2, 2), pads=(3, 3, 3, 3))
    make.output(make.pool("max", y, (3, 3), (2, 2), (1, 1, 1, 1)))
    image, _ = build(make.graph, TINY, Options(cancel_interval=2000, lv2_limit=TINY.lv2_bytes // 4))
    return make.graph, image


def input_loads(image: Image) -> list[Insn]:
    """Loads of the input, in order; those that read nothing are loads, too."""
    program = decoded(image.code)
    return [insn for insn in program if insn.op is Op.LD2 and insn["src_seg"] == Segment.INPUTS]


def test_rows_come_in_pieces(compiled):
    _, image = compiled
    loads = [insn for insn in input_loads(image) if insn["hi"]]
    assert all(insn["n2"] == insn["n1"] == insn["n0"] == 1 and insn["len"] <= PIECE for insn in loads)
    assert SIDE * SIDE * 3 <= sum(insn["len"] for insn in loads) < 3 * SIDE * SIDE * 3


def test_loads_of_nothing_say_that_the_others_have_ended(compiled):
    _, image = compiled
    loads = input_loads(image)
    held = TINY.unit_queue_depth + 1 + UNIT_IN_FLIGHT
    assert [bool(insn["hi"]) for insn in loads] == [True] * (len(loads) - held) + [False] * held


def test_result_without_races_and_at_every_point(compiled):
    graph, image = compiled
    inputs = random_inputs(graph, 7)
    results, expected = run_image(image, inputs, observer=RaceChecker(TINY)), reference.run_all(graph, inputs)
    for port in graph.outputs:
        np.testing.assert_array_equal(results[port.tensor], expected[port.tensor])
    report = check_points(image, inputs, None, 1)
    assert report.ok and report.points, report


@pytest.mark.parametrize(("src", "size"), [(0, 1), (5, 3 * PIECE), (PIECE - 1, 2), (PIECE, PIECE)])
def test_pieces_end_where_others_begin(src, size):
    at = src
    for piece in pieces(src, 100, size):
        assert (piece["src"], piece["dst"]) == (at, 100 + at - src)
        at += piece["len"]
        assert at % PIECE == 0 or at == src + size
    assert at == src + size


@pytest.mark.parametrize("kind", ["depthwise", "max"])
@pytest.mark.parametrize("images", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_all_channels_of_a_tile_come_together(kind, images):
    """Channel tiles that have no input in common do not each load theirs in short runs."""
    make = GraphBuilder(5)
    x = make.input((images, 30, 31, 72))
    if kind == "max":
        make.output(make.pool("max", x, (3, 3), (2, 2), (1, 1, 1, 1)))
    else:
        make.output(make.conv(x, 72, (3, 3), pads=(1, 1, 1, 1), groups=72))
    image, _ = build(make.graph, TINY, Options(cancel_interval=2000, lv2_limit=TINY.lv2_bytes // 2))
    loads = [insn for insn in input_loads(image) if insn["hi"]]
    assert sum(insn["n2"] * insn["n1"] * insn["n0"] for insn in loads) < images * 30 * 31
    inputs = random_inputs(make.graph, 7)
    results, expected = run_image(image, inputs, observer=RaceChecker(TINY)), reference.run_all(make.graph, inputs)
    for port in make.graph.outputs:
        np.testing.assert_array_equal(results[port.tensor], expected[port.tensor])
    report = check_points(image, inputs, None, 1)
    assert report.ok and report.points, report
