"""Instructions that meet at banks, on the RTL and on the fast model."""

import pytest

from hw.contract.bus import HostCosts
from hw.contract.isa import Insn, Op, Unit
from hw.contract.params import preset
from hw.contract.regs import EngineState
from sim.model.bus import ModelBus
from sim.rtl import open_bus
from sim.rtl.recording import RecordingBus
from tests.hw.soc_bench import END, SocBench, copy
from tests.sim.model.bench import by_unit

TINY = preset("tiny")
TWO = TINY.replace(name="two engines", engines=2)
NANO = preset("nano")  #: has one bank of each memory
RUNS = 160
#: Rows of three bytes a pixel to rows of four, of which the first row and the last pixel of each are filled.
PIXELS = {
    "len": 4, "hi": 3, "n0": 4, "n1": 6, "src_s0": 3, "src_s1": 30, "dst_s0": 4, "dst_s1": 16, "lo1": 1, "hi1": 6,
    "hi0": 3,
}  # fmt: skip


def copied(op, **fields):
    """A copy of ``RUNS`` words, all of which LV1 and LV2 keep in bank 0, or that are one behind the other where
    ``fields`` say so."""
    word = TINY.lv1_word
    values = {"len": word, "hi": word, "hi1": 1, "hi0": RUNS, "n0": RUNS, "src_s0": 0, "dst_s0": 0} | fields
    segments = {Op.LD1: {"src_seg": 6}, Op.ST1: {"dst_seg": 6}, Op.LD0: {}}[op]
    return Insn(op, {name: value for name, value in (values | segments).items() if value})


def each(bus, params, bodies):
    """Acceptance and signal of the instructions of each unit, in order; ``bodies``: of each engine."""
    with bus:
        bench = SocBench(params, bus=bus)
        for engine, body in enumerate(bodies):
            bench.setup(engine)
            bench.job([*body, END], engine=engine)
        for engine in range(len(bodies)):
            bench.ring(engine)
        for engine in range(len(bodies)):
            bench.wait(1, engine, limit=100_000)
        return by_unit(bus.runs)


def each_of_both(params, bodies):
    rtl = each(RecordingBus(open_bus(params, costs=HostCosts.free())), params, bodies)
    model = ModelBus(params, costs=HostCosts.free(), data=False)
    model.record()
    return rtl, each(model, params, bodies)


def both(params, bodies):
    """Cycles from the first acceptance of each unit to its last signal."""
    return [
        {place: runs[-1][1] - runs[0][0] for place, runs in found.items()} for found in each_of_both(params, bodies)
    ]


def same_bank(op):
    return [copied(op) for _ in range(3)]


def one_behind_the_other(op):
    return [copied(op, src_s0=TINY.lv1_word)]


@pytest.mark.parametrize("ops", [(Op.LD0, Op.ST1), (Op.ST1, Op.LD0)], ids=str)
def test_units_that_stay_at_a_bank_of_lv1_slow_each_other_down(ops):
    """LD0 and ST1 read the same word all the time: which goes first depends on the turn. What those have lost that were
    timed before, and have no successor, is not told."""
    body = [insn for pair in zip(*map(same_bank, ops), strict=True) for insn in pair]
    rtl, model = both(TINY, [body])
    assert max(rtl.values()) > 1.8 * 3 * RUNS
    assert max(model.values()) == pytest.approx(max(rtl.values()), rel=0.2), (rtl, model)


def test_units_that_read_one_word_behind_the_other_meet_once():
    rtl, model = both(TINY, [[*one_behind_the_other(Op.ST1), *one_behind_the_other(Op.LD0)]])
    for unit in (Unit.LD0, Unit.ST1):
        assert rtl[0, unit] < RUNS + 20
        assert model[0, unit] == pytest.approx(rtl[0, unit], abs=2)


@pytest.mark.parametrize("op", [Op.LD1, Op.ST1], ids=str)
def test_engines_that_stay_at_a_bank_of_lv2_slow_each_other_down(op):
    """Both are told when they end: neither is known ahead of time."""
    bodies = [same_bank(op)] * 2
    rtl, model = both(TWO, bodies)
    assert min(rtl.values()) > 1.6 * 3 * RUNS
    for place, cycles in rtl.items():
        assert model[place] == pytest.approx(cycles, rel=0.03), (rtl, model)


def test_a_copy_behind_one_that_stays_at_a_bank_does_not_signal_before_it():
    """Both signal the same semaphore: what waits for the first does not wait for the second."""
    short = {"n0": 1, "hi0": 1}
    loads = [copied(Op.LD1, signal=1), copied(Op.LD1, signal=1, src_s0=TINY.lv1_word)]
    rtl, model = both(TWO, [[*loads, *[copied(Op.LD0, wait=1, **short)] * 2]])
    assert rtl[0, Unit.LD0] > RUNS
    assert model[0, Unit.LD0] == pytest.approx(rtl[0, Unit.LD0], abs=4)


def test_what_a_copy_loses_to_another_engine_is_its_own():
    """The copies behind the first meet each other, too: what they lose is no part of its time."""
    words = {"n0": RUNS // 4, "hi0": RUNS // 4}
    loads = [copied(Op.LD1, **words), copied(Op.LD1, src_s0=TINY.lv1_word, **words), *[copied(Op.LD1, **words)] * 2]
    alone = copied(Op.LD1, src_s0=TINY.lv1_word)  # until the other engine begins
    rtl, model = each_of_both(TWO, [[alone, *loads], loads])
    begin = [min(runs[0][0] for runs in found.values()) for found in (rtl, model)]
    for place, runs in rtl.items():
        real, told = [done - begin[0] for _, done in runs], [done - begin[1] for _, done in model[place]]
        assert told == pytest.approx(real, abs=16), (place, real, told)


def test_a_table_is_read_at_the_pace_of_the_lanes():
    """They take a word in two cycles, so that a copy from LV1 goes on in the other."""
    fields = {"src_acc": 1, "per_channel": 1, "d": 4096, "n1": 12, "n0": 2, "a_s1": 1, "d_s1": 8, "d_s0": 4}
    _, alone = each_of_both(NANO, [[copied(Op.LD0)]])
    for table in (0, 1):
        vec = Insn(Op.VEC, {**fields, "table": table, "p": 256})
        rtl, model = each_of_both(NANO, [[vec, copied(Op.LD0)]])
        assert model[0, Unit.LD0] == rtl[0, Unit.LD0], table
    (begin, end), (first, last) = alone[0, Unit.LD0][0], rtl[0, Unit.LD0][0]
    assert last - first > end - begin + 25


def ends_of_loads(params, body):
    """Cycles from the first acceptance to the end of each load, on both."""
    found = each_of_both(params, [body])
    begin = [min(runs[0][0] for runs in each.values()) for each in found]
    return [[done - at for _, done in each[0, Unit.LD2]] for each, at in zip(found, begin, strict=True)]


def test_a_load_waits_for_reads_of_its_word():
    """LD1 reads it all the time: the third cycle is that of the write."""
    loads = [copy(Op.LD2, len=TINY.dram_word)] * 4
    rtl, model = ends_of_loads(TINY, [*[copied(Op.LD1)] * 2, *loads])
    free, _ = ends_of_loads(TINY, [*[copied(Op.LD1, src=0x400)] * 2, *loads])
    assert all(late >= end + 2 for late, end in zip(rtl, free, strict=True))
    assert model == rtl


@pytest.mark.parametrize(
    ("before", "words"), [(11, 6), (11, 7), (12, 13), (12, 15), (12, 16)], ids=lambda value: str(value)
)
def test_what_a_load_writes_when_ld1_reads_it(before, words):
    """Its last word is that of the last pixels, whose reads come ahead of the pixels that are filled."""
    short = copied(Op.LD0, n0=1, hi0=1)
    body = [*[short] * before, copied(Op.LD1, **PIXELS, src=7)]
    size = words * NANO.dram_word
    rtl, model = ends_of_loads(NANO, [copy(Op.LD2, len=size, dst=0xA8 - size), *body])
    free, _ = ends_of_loads(NANO, [copy(Op.LD2, len=size, dst=0x300), *body])
    assert rtl > free
    assert model == rtl


def test_a_store_to_lv2_is_put_back_by_loads_and_says_so():
    """LD2 has a word of LV2 in two cycles, so that ST1 overtakes it at each bank again and again."""
    wide = TINY.replace(name="words of two beats", pes=4)
    load = copy(Op.LD2, len=0x1000)
    stores = [copied(Op.ST1, len=0x800, hi=0x800, n0=1, hi0=1)] * 4
    alone, _ = both(wide, [stores])
    rtl, model = both(wide, [[load, *stores]])
    assert rtl[0, Unit.ST1] > alone[0, Unit.ST1] + 40
    assert model[0, Unit.ST1] == pytest.approx(rtl[0, Unit.ST1], abs=8), (alone, rtl, model)


@pytest.mark.parametrize("op", [Op.LD1, Op.ST1], ids=str)
def test_after_a_reset_nothing_is_left_of_copies_that_were_taken(op):
    """They were timed far ahead, and never ran."""

    def run(bus):
        with bus:
            bench = SocBench(TWO, bus=bus)
            bench.setup()
            bench.job([*[copied(op)] * 8, END])
            bench.ring()
            bus.advance(400)
            bench.write("CONTROL", 2)
            while bench.read("STATUS") & 15 != EngineState.DISABLED:
                assert bus.cycle < 2_000
            bench.setup()
            bench.job([*[copied(op, n0=8, hi0=8)] * 2, END])
            bench.ring()
            bench.wait(1, limit=20_000)
            (runs,) = by_unit(bus.runs).values()
        return [(begin - runs[-2][0], end - runs[-2][0]) for begin, end in runs[-2:]]

    model = ModelBus(TWO, costs=HostCosts.free(), data=False)
    model.record()
    assert run(model) == run(RecordingBus(open_bus(TWO, costs=HostCosts.free())))
