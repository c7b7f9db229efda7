"""Cancellation points of compiled graphs: every declared range and reload list survives the poison of a preemption."""

import numpy as np
import pytest

from compiler import ir
from compiler.emission.preempt.points import PointLimits
from compiler.emission.preempt.ring_contents import JobRings
from compiler.emission.program import JobProgram
from compiler.emission.program.extents import Extent, Extents
from compiler.emission.program.task import BufferFill, Task
from compiler.pipeline import build
from compiler.plan.options import Options
from hw.contract.isa import Insn, Op, Segment
from hw.contract.params import SocParams, preset
from hw.contract.spaces import Space
from hw.image.image import Image
from sim.cost import UNIT_START, insn_cycles
from tests.support.check.preemption import check_points
from tests.support.graphs import GraphBuilder, random_inputs
from tests.support.images import decoded
from tests.support.sampled import sampled

TINY, BASE = preset("tiny"), preset("base")
DENSE = Options(cancel_interval=250, cancel_spill_bound=400)
_CHECKED = 20  #: points of one image that are checked


def _convolutions(seed: int) -> ir.Graph:
    build = GraphBuilder(seed)
    x = build.input((1, 17, 13, 9))
    y = build.conv(x, 40, pads=(1, 1, 1, 1), table=True)
    build.output(build.conv(y, 70, (1, 1)))
    return build.graph


def _in_place_sum(seed: int) -> ir.Graph:
    build = GraphBuilder(seed)
    x = build.conv(build.input((1, 14, 14, 16)), 48, (1, 1))
    y = build.conv(build.conv(x, 24, (1, 1)), 48, pads=(1, 1, 1, 1))
    build.output(build.table(build.eltwise("add", y, x)))
    return build.graph


def _depthwise(seed: int) -> ir.Graph:
    build = GraphBuilder(seed)
    x = build.conv(build.input((1, 20, 20, 3)), 24, strides=(2, 2))
    build.output(build.conv(x, 24, pads=(1, 1, 1, 1), groups=24))
    return build.graph


def _vectors(seed: int) -> ir.Graph:
    build = GraphBuilder(seed)
    a, b = build.input((1, 60, 60, 17)), build.input((1, 60, 60, 17))
    y = build.eltwise("add", build.table(a), build.table(b))
    build.output(build.pool("max", y, (3, 3), (2, 2), (1, 1, 1, 1)))
    return build.graph


def _moves(seed: int) -> ir.Graph:
    build = GraphBuilder(seed)
    x = build.permute(build.pad(build.input((1, 30, 31, 12)), (1, 2, 3, 0)), (0, 3, 1, 2))
    build.output(build.concat([x, x], 1))
    return build.graph


GRAPHS = [_convolutions, _in_place_sum, _depthwise, _vectors, _moves]


def _compiled(graph: ir.Graph, params: SocParams, options: Options) -> Image:
    return Image.from_bytes(build(graph, params, options)[0].to_bytes())


def _survives(image: Image, graph: ir.Graph, seed: int) -> None:
    count = len(image.meta.cancel_points)
    assert count
    points = np.random.default_rng(seed).choice(count, min(count, _CHECKED), replace=False)
    report = check_points(image, random_inputs(graph, 7), points.tolist(), seed)
    assert report.ok, report


@pytest.mark.parametrize(("params", "engines"), [(TINY, 1), (BASE, 1), (BASE, 2)], ids=["tiny", "base", "base, two"])
@pytest.mark.parametrize("make", GRAPHS)
def test_every_layer_kind_survives_a_preemption(make, params, engines):
    graph = make(5)
    _survives(_compiled(graph, params, Options(False, engines, cancel_interval=120)), graph, 5)


@pytest.mark.parametrize("make", GRAPHS)
@pytest.mark.parametrize("observe", sampled([False, True], 1))
def test_tensors_that_pass_through_dram_survive(make, observe):
    graph, params = make(6), TINY.replace(lv2_bytes=32 * 1024)
    options = Options(observe, cancel_interval=250, cancel_spill_bound=400)
    _survives(_compiled(graph, params, options), graph, 6)


def test_streamed_weights_survive():
    builder = GraphBuilder(2)
    builder.output(builder.conv(builder.input((1, 1, 1, 5000)), 12, (1, 1)))
    image = _compiled(builder.graph, TINY.replace(lv2_bytes=32 * 1024), DENSE)
    _survives(image, builder.graph, 2)
    assert any(
        r.segment == Segment.LV2 and r.source_segment == Segment.WEIGHTS
        for p in image.meta.cancel_points
        for r in p.live
    )


def _code(image: Image) -> list[Insn]:
    return decoded(image.code)


def test_the_table_lists_every_cancel_in_order_and_reloads_only_earlier_loads():
    image = _compiled(_in_place_sum(8), TINY, DENSE)
    code, points = _code(image), image.meta.cancel_points
    assert [i for i, insn in enumerate(code) if insn.op is Op.CANCEL] == [point.pc for point in points]
    assert (
        [code[point.pc]["point"] for point in points] == [point.point for point in points] == list(range(len(points)))
    )
    for point in points:
        body = image.meta.jobs[point.job].body_pc
        assert body < point.pc and point.reload == sorted(set(point.reload))
        assert all(body <= pc < point.pc and code[pc].op in (Op.LD2, Op.LD1, Op.LD0) for pc in point.reload)
        counts: dict[int, int] = {}
        for insn in code[body : point.pc]:
            for bit in range(32):
                if insn.op is not Op.CANCEL:
                    step = (insn["signal"] >> bit & 1) - (insn["wait"] >> bit & 1)
                    counts[bit] = counts.get(bit, 0) + step
        assert dict(point.semaphores) == {bit: count for bit, count in counts.items() if count}


def test_without_an_interval_there_are_no_points_and_only_long_instructions_differ():
    graph = _convolutions(9)
    plain, dense = (_code(_compiled(graph, TINY, o)) for o in (Options(cancel_interval=0), DENSE))
    assert Op.CANCEL not in {insn.op for insn in plain}
    for op in set(Op) - {Op.CANCEL, Op.MAC}:
        assert [str(i) for i in plain if i.op is op] == [str(i) for i in dense if i.op is op]
    assert _macs(plain) == _macs(dense)
    cycles = [insn_cycles(i.op, i.fields, TINY) for i in dense if i.op is Op.MAC]
    assert max(cycles) <= PointLimits(DENSE.cancel_interval).longest + UNIT_START
    assert max(cycles) < max(insn_cycles(i.op, i.fields, TINY) for i in plain if i.op is Op.MAC)


def _macs(code: list[Insn]) -> int:
    """Weight blocks times pixels."""
    macs = [insn for insn in code if insn.op is Op.MAC]
    return sum(int(np.prod([insn[name] for name in ("n2", "n1", "n0", "p1", "p0")])) for insn in macs)


def test_a_limit_of_lv2_holds_and_one_too_small_is_refused():
    graph = _convolutions(3)
    image = _compiled(graph, TINY, Options(lv2_limit=40_000))
    assert image.meta.lv2_bytes <= 40_000 < _compiled(graph, TINY, Options()).meta.lv2_bytes
    with pytest.raises(ir.CompileError, match=r"needs \d+ bytes of LV2 .* 256 are allowed: choose a larger lv2_limit"):
        build(graph, TINY, Options(lv2_limit=256))


@pytest.mark.parametrize(
    ("size", "channels", "limit", "times"),
    [
        pytest.param(40, 16, None, 1.5, id="on chip"),
        pytest.param(32, 64, 40_000, 6.5, id="through LV2, and asked again while it fills"),
    ],
)
def test_what_brings_a_buffer_again_is_asked_once(monkeypatch, size, channels, limit, times):
    """Not at each of the points of its life: a job may have thousands."""
    builder, shape = GraphBuilder(3), (1, size, size, channels)
    builder.output(builder.conv(builder.conv(builder.input(shape), 32, (1, 1)), 64, pads=(1, 1, 1, 1)))
    asked = list[Task]()
    buffers_read = JobRings._buffers_read
    monkeypatch.setattr(JobRings, "_buffers_read", lambda self, task: asked.append(task) or buffers_read(self, task))
    image, _ = build(builder.graph, TINY, Options(cancel_interval=300, lv2_limit=limit), jobs=1)
    assert len(image.meta.cancel_points) > 200
    loads = [task for task in asked if task.op in (Op.LD0, Op.LD1)]
    assert len(loads) <= times * len(set(loads))


def _filled(load: Task, reader: Task) -> None:
    """``load`` fills a buffer that ``reader`` reads."""
    load.fills = BufferFill("buffer", load.numbers["dst"], 0, [load], [reader])
    reader.reads.append(load.fills)


def _rings(*order: Task) -> JobRings:
    return JobRings(JobProgram(TINY, 0, tasks=list(order)), list(order), Extents(TINY))


def test_what_a_store_has_written_over_is_not_loaded_again():
    """It is dumped where it can be, or there is no point; wherever in its source the store wrote."""
    lv2 = {"src_seg": Segment.LV2, "len": 64}
    for at, dumped in ((0, True), (63, True), (64, False)):
        store = Task(Op.ST1, {"src": 512, "dst": 128 + at, "len": 32, "dst_seg": Segment.LV2})
        load, vec = Task(Op.LD1, {"src": 128, "dst": 256, **lv2}), Task(Op.VEC, {"a": 256, "d": 512})
        _filled(load, vec)
        rings, place = _rings(load, store, vec), Extent(Space.LV1, 0, 256, 320)
        before, behind = rings.at(1), rings.at(2)
        assert before and behind and (before.clean, before.reload, before.dirty) == ([place], [load], [])
        assert (behind.dirty, behind.clean, behind.reload) == (([place], [], []) if dumped else ([], [place], [load]))

        load, first = Task(Op.LD1, {"src": 128, "dst": 256, **lv2}), Task(Op.LD0, {"src": 256, "dst": 0, "len": 64})
        mac = Task(Op.MAC, {})
        _filled(load, first)
        _filled(first, mac)
        rings = _rings(load, first, store, mac)
        before, behind = rings.at(2), rings.at(3)
        assert before and before.reload == [load, first]
        assert behind is None if dumped else behind and behind.reload == [load, first]
