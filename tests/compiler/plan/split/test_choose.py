"""What is split, and what not."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from compiler import ir, reference
from compiler.pipeline import build
from compiler.plan.options import Options
from compiler.plan.order.dimensions import FRAMES
from compiler.plan.split import choose, estimate
from compiler.plan.split.choose import cuts_that_pay
from compiler.plan.split.price import placed_cycles
from hw.contract.isa import Segment
from hw.contract.params import KIB, preset
from hw.image.image import Image
from sim.model.bus import ModelBus
from sw.driver import Device
from tests.support.check.races import RaceChecker
from tests.support.graphs import GraphBuilder, check, random_inputs
from tests.support.image_runner import run_image
from tests.support.split_graphs import PADS, wide_middle

TINY, BASE = preset("tiny"), preset("base")
SMALL = Options(engines=BASE.engines, lv2_limit=384 * KIB)


def is_split(graph: ir.Graph, options: Options) -> bool:
    return bool(cuts_that_pay(graph, BASE, options))


def cycles(image: Image) -> int:
    """Of an inference on the fast model."""
    device = Device(ModelBus(image.params, data=False))
    model = device.load(image)
    device.begin(model, 10**8)
    results = device.collect(device.submit(model, range(len(image.meta.jobs)), limit=10**8), 10**8)
    return max(one.end for one in results) - min(one.prologue_start or one.start for one in results)


def gains(graph):
    """In parts less goes to DRAM and back, which takes fewer cycles, with the same bytes."""
    whole, split = (build(graph, BASE, replace(SMALL, split=on))[0] for on in (False, True))
    assert split.meta.segment_sizes[Segment.SCRATCH] < whole.meta.segment_sizes[Segment.SCRATCH]
    assert cycles(split) < 0.9 * cycles(whole)
    inputs = random_inputs(graph, 1)
    expected = reference.run_all(graph, inputs)
    results = run_image(Image.from_bytes(split.to_bytes()), inputs, observer=RaceChecker(BASE))
    for port in graph.outputs:
        np.testing.assert_array_equal(results[port.tensor], expected[port.tensor])


def test_a_wide_tensor_stays_on_chip():
    graph = wide_middle(64).graph
    assert is_split(graph, SMALL)
    gains(graph)


@pytest.mark.parametrize(
    ("frames", "size", "single"), [(4, 40, False), pytest.param(3, 64, True, marks=pytest.mark.slow)]
)
def test_a_batch_is_cut_by_frames(frames, size, single):
    """Into the fewest parts of which one fits; single frames that do not fit either are cut along an image."""
    graph = wide_middle(size, frames=frames).graph
    cuts = cuts_that_pay(graph, BASE, SMALL)
    assert {one.dimension for one in cuts} == {FRAMES}
    assert [one.pieces for one in cuts if one.within] == [frames] * single
    gains(graph)


def test_as_many_parts_as_make_the_largest_smaller():
    """Three parts of four frames hold two of them, as two parts do."""
    graph = wide_middle(64, frames=4).graph
    for one in cuts_that_pay(graph, BASE, Options(engines=BASE.engines, lv2_limit=768 * KIB)):
        assert one.pieces in (2, 4)


def test_nothing_is_split_where_all_fits():
    graph = wide_middle(64).graph
    assert not is_split(graph, Options(engines=2))


@pytest.mark.parametrize("changes", [{"observe": True}, {"split": False}, {"split": False, "placed": True}])
def test_not_where_it_is_not_wanted(changes):
    graph = wide_middle(64).graph
    assert not is_split(graph, Options(engines=2, lv2_limit=SMALL.lv2_limit, **changes))


def test_what_computes_longer_than_it_spills_stays_whole():
    """Tensors do not fit, but the arrays have so much to do that DRAM brings them meanwhile: the price says no."""
    make = GraphBuilder(4)
    x = make.conv(make.input((1, 40, 40, 16)), 128, pads=(1, 1, 1, 1))
    for _ in range(3):
        x = make.conv(x, 128, pads=(1, 1, 1, 1))
    make.output(make.conv(x, 8, (1, 1)))
    graph, whole = make.graph, SMALL
    image, _ = build(graph, BASE, whole)
    assert image.meta.segment_sizes[Segment.SCRATCH]
    assert not is_split(graph, whole)


def test_a_cut_that_does_not_pay_is_left_out(monkeypatch):
    """If the cuts found are not worth it by the placed price, the graph stays as it is."""
    graph = wide_middle(64).graph
    monkeypatch.setattr(choose, "_WORTH", 0.1)
    assert not is_split(graph, SMALL)


def test_an_output_that_nobody_reads_is_in_no_cut():
    """Two heads behind one convolution: tensors do not fit, and the first head's result is made between the ends of a
    run."""
    make = GraphBuilder(5)
    x = make.conv(make.input((1, 64, 64, 4)), 16, pads=PADS)
    for _ in range(2):
        make.output(make.conv(make.conv(x, 16, pads=PADS), 16, pads=PADS))
    assert placed_cycles(make.graph, TINY, Options())[1]
    assert cuts_that_pay(make.graph, TINY, Options()) == []
    check(make.graph, TINY)


def test_an_output_in_the_middle_of_a_chain_is_in_no_cut():
    """What is read and leaves the graph too is no inner tensor of a run: a cut would do without it."""
    make = GraphBuilder(6)
    x = make.conv(make.input((1, 24, 24, 8)), 32, pads=PADS)
    x = make.output(make.conv(x, 32, pads=PADS))
    make.output(make.conv(make.conv(make.table(x), 32, pads=PADS), 8, (2, 2), (2, 2)))
    check(make.graph, TINY.replace(lv2_bytes=32 * KIB))


def test_sizes_of_a_run_are_measured_once_however_tight_memory_is(monkeypatch):
    """Chains are cut for several amounts of memory, and what a part needs of each tensor does not depend on it."""
    measured = Counter()
    needed = estimate.needed_boxes

    def counted(graph, run, box, side):
        measured[run[0].name, run[-1].name, box] += 1
        return needed(graph, run, box, side)

    monkeypatch.setattr(estimate, "needed_boxes", counted)
    assert is_split(wide_middle(64).graph, SMALL)
    assert set(measured.values()) == {1}
