"""Limits, illegal commands, bus errors and aborts."""

import numpy as np
import pytest

from hw.contract.isa import Insn, Lv0Space, Op
from hw.contract.job import Fault
from tests.hw.dma.harness import SMALL, Bench, Segments, command, copy, raw_command, reference, runs
from tests.hw.dma.test_units import OPS, random_program

WORD, NARROW = SMALL.lv1_word, SMALL.dram_word


def until_fault(bench: Bench) -> bool:
    return bool(bench.faults)


def expect_fault(bench: Bench, program: list[tuple[Insn, Segments]], code: Fault, addr: int, done: int) -> None:
    """Run ``program``; its command number ``done`` faults, after everything before the faulting run has landed."""
    src, dst = np.frombuffer(bench.src, np.uint8).copy(), np.frombuffer(bench.dst, np.uint8).copy()
    for insn, segments in program[: done + 1]:
        reference(insn, segments, src, dst)
    commands = [command(insn, segments, 100 + pc) for pc, (insn, segments) in enumerate(program)]
    bench.run(commands, until=until_fault)
    assert bench.faults == [{"code": code, "pc": 100 + done, "addr": addr}]
    assert len(bench.done) == done
    assert bytes(bench.dst) == dst.tobytes()


BASED_SRC, BASED_DST = (Op.LD1, Op.LD2, Op.ST2), (Op.ST1, Op.LD2, Op.ST2)


@pytest.mark.parametrize("op", OPS)
def test_source_limit_names_the_first_byte_beyond_it(op):
    limit = 1000 if op in BASED_SRC else SMALL.lv1_bytes
    segments = Segments(src_base=333 if op in BASED_SRC else 0, src_limit=limit, dst_limit=1024)
    good = copy(op, src=limit - 20, len=20)
    bad = copy(op, src=limit - 35, len=10, n0=4, src_s0=10, dst_s0=16)
    bench = Bench(op)
    expect_fault(bench, [(good, segments), (bad, segments), (good, segments)], Fault.LIMIT, limit, done=1)
    if op == Op.LD2:
        ends = [addr + beats * NARROW for addr, beats in bench.reads]
    else:
        ends = [(word + 1) * (NARROW if op == Op.ST2 else WORD) for word in bench.reads]
    assert max(ends) - (NARROW if op in (Op.LD2, Op.ST2) else WORD) < segments.src_base + limit


@pytest.mark.parametrize("op", OPS)
def test_destination_limit_names_the_first_byte_beyond_it(op):
    limit = 1000 if op in BASED_DST else {Op.LD1: SMALL.lv1_bytes, Op.LD0: SMALL.lv0_act_bytes}[op]
    segments = Segments(dst_base=333 if op in BASED_DST else 0, dst_limit=limit, src_limit=1024)
    bad = copy(op, dst=limit - 25, len=10, n0=4, src_s0=10, dst_s0=10)
    expect_fault(Bench(op), [(bad, segments)], Fault.LIMIT, limit, done=0)


ACT, WGT = SMALL.lv0_act_bytes, SMALL.lv0_wgt_bytes
ACC = 4 * SMALL.out_channels * SMALL.lv0_acc_rows


@pytest.mark.parametrize(
    ("space", "view", "size"), [(0, 0, ACT), (1, 0, WGT), (0, 1, SMALL.pes * ACT), (1, 1, SMALL.pes * WGT)]
)
def test_lv0_limit_follows_space_and_view(space, view, size):
    good = copy(Op.LD0, dst=size - WORD, len=WORD, space=space, view=view)
    bad = copy(Op.LD0, dst=size - WORD + 1, len=WORD, space=space, view=view)
    bench = Bench(Op.LD0)
    segments = Segments(src_limit=1024, dst_limit=size)
    expect_fault(bench, [(good, segments), (bad, segments)], Fault.LIMIT, size, done=1)
    assert [(w["space"], w["view"], w["addr"]) for w in bench.lv0] == [(space, view, size // WORD - 1)]


@pytest.mark.parametrize("view", [0, 1])
def test_limits_of_int4_count_packed_bytes(view):
    size = SMALL.pes * WGT // 2
    good = copy(Op.LD0, src=SMALL.lv1_bytes - WORD, dst=size - WORD, len=WORD, space=Lv0Space.INT4, view=view)
    for side, at, limit in (("dst", size - WORD + 1, size), ("src", SMALL.lv1_bytes - WORD + 1, SMALL.lv1_bytes)):
        bad = Insn(Op.LD0, good.fields | {side: at})
        bench = Bench(Op.LD0)
        segments = Segments(src_limit=SMALL.lv1_bytes, dst_limit=size)
        expect_fault(bench, [(good, segments), (bad, segments)], Fault.LIMIT, limit, done=1)
        assert [(w["space"], w["addr"]) for w in bench.lv0] == [(Lv0Space.INT4, size // WORD - 1)]


def test_int4_takes_two_banks():
    single = SMALL.replace(pes=1, rows=8, cols=8)
    bench = Bench(Op.LD0, single)
    bench.run([command(copy(Op.LD0, len=WORD, space=Lv0Space.INT4), Segments(), 2)], until=until_fault)
    assert bench.faults == [{"code": Fault.ILLEGAL, "pc": 2, "addr": 0}] and not bench.lv0


def test_offsets_before_the_segment_are_beyond_its_limit():
    bad = copy(Op.LD1, src=2**32 - 4, len=8)
    expect_fault(Bench(Op.LD1), [(bad, Segments(src_limit=2**32 - 1))], Fault.LIMIT, 2**32 - 1, done=0)
    expect_fault(Bench(Op.LD1), [(bad, Segments(src_limit=512))], Fault.LIMIT, 2**32 - 4, done=0)


def test_bytes_that_are_not_read_are_not_checked():
    """A row above and one below the image, and columns left and right of it, are padding."""
    row = copy(Op.LD1, src=2**32 - 68, len=72, lo=4, hi=68, n1=6, src_s1=64, dst_s1=72, lo1=1, hi1=5, fill=0x80)
    segments = Segments(src_limit=4 * 64, dst_limit=4096)
    bench = Bench(Op.LD1)
    dst = np.frombuffer(bench.dst, np.uint8).copy()
    assert reference(row, segments, np.frombuffer(bench.src, np.uint8).copy(), dst)[2] is None
    bench.run([command(row, segments)])
    assert bytes(bench.dst) == dst.tobytes() and not bench.faults


def test_reads_take_precedence_and_only_the_first_fault_is_reported():
    segments = Segments(src_limit=512, dst_limit=SMALL.lv1_bytes)
    bad, worse = copy(Op.LD1, src=600, dst=5000, len=8), copy(Op.LD1, src=700, len=8)
    expect_fault(Bench(Op.LD1), [(bad, segments), (worse, segments)], Fault.LIMIT, 600, done=0)


@pytest.mark.parametrize("field", ["len", "n2", "n1", "n0"])
def test_zero_counts_are_illegal(field):
    bench = Bench(Op.ST1)
    commands = [raw_command(Op.ST1, Segments(), 1, len=4), raw_command(Op.ST1, Segments(), 2, **{field: 0})]
    bench.run(commands, until=until_fault)
    assert bench.faults == [{"code": Fault.ILLEGAL, "pc": 2, "addr": 0}]
    assert len(bench.done) == 1 and len(bench.writes) == 1


def test_bus_read_error_names_the_run():
    segments = Segments(src_base=16)
    load = copy(Op.LD2, src=100, len=64, n0=8, src_s0=512, dst_s0=64)
    bench = Bench(Op.LD2, errors=frozenset({(16 + 100 + 3 * 512 + 40) // NARROW}))
    bench.run([command(copy(Op.LD1, len=4), segments, 6), command(load, segments, 7)], until=until_fault)
    assert bench.faults == [{"code": Fault.BUS, "pc": 7, "addr": 100 + 3 * 512}]
    assert len(bench.done) == 1


def test_bus_write_error_names_the_run():
    segments = Segments(dst_base=16)
    store = copy(Op.ST2, dst=112, len=64, n0=8, src_s0=64, dst_s0=512)
    bench = Bench(Op.ST2, errors=frozenset({16 + 112 + 3 * 512}))
    bench.run([command(copy(Op.LD1, len=4), segments, 6), command(store, segments, 7)], until=until_fault)
    assert bench.faults == [{"code": Fault.BUS, "pc": 7, "addr": 112 + 3 * 512}]
    assert len(bench.done) == 1


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("when", [12, 60, *(pytest.param(n, marks=pytest.mark.slow) for n in (3, 25, 130))])
def test_abort_lets_outstanding_requests_return_and_ends(op, when):
    program = random_program(5, op, 6)
    bench = Bench(op, src_stall=0.3, dst_stall=0.3, latency=20)
    allowed = [{byte} for byte in bench.dst]  # what each byte may be, whenever the abort comes
    for insn, segments in program:
        for s, d, mask in runs(insn):
            for j, read in enumerate(mask):
                byte = bench.src[segments.src_base + s + j] if read else insn["fill"]
                allowed[segments.dst_base + d + j].add(byte)
    unit = bench.dut.unit
    counts = []

    async def abort(ctx) -> None:
        await ctx.tick().repeat(when)
        ctx.set(unit.abort, 1)
        while ctx.get(unit.busy):
            await ctx.tick()
        await ctx.tick()
        counts.append((len(bench.done), len(bench.reads), len(bench.writes), bytes(bench.dst)))
        await ctx.tick().repeat(50)
        counts.append((len(bench.done), len(bench.reads), len(bench.writes), bytes(bench.dst)))
        assert not ctx.get(unit.busy)

    commands = [command(insn, segments, pc) for pc, (insn, segments) in enumerate(program)]
    bench.run(commands, until=lambda bench: len(counts) == 2, extra=(abort,), limit=1000)
    assert counts[0] == counts[1]
    assert not bench.faults
    assert all(byte in choices for byte, choices in zip(bench.dst, allowed, strict=True))


@pytest.mark.parametrize("when", range(15, 45, 3))
def test_abort_completes_the_bursts_that_a_store_has_announced(when):
    bench = Bench(Op.ST2, src_stall=0.3, dst_stall=0.3)
    aborted = []

    async def abort(ctx) -> None:
        await ctx.tick().repeat(when)
        ctx.set(bench.dut.unit.abort, 1)
        aborted.append(when)

    bench.run([command(copy(Op.ST2, len=2000), Segments())], until=lambda bench: aborted, extra=(abort,), limit=500)
    assert not bench.done and bytes(bench.dst) != bytes(bench.src[:2000])


def test_accumulators_end_where_their_rows_do():
    segments = Segments(src_limit=1024, dst_limit=ACC)
    good = copy(Op.LD0, dst=ACC - 2 * WORD, len=2 * WORD, space=Lv0Space.ACC)
    bad = copy(Op.LD0, dst=ACC - WORD, len=2 * WORD, space=Lv0Space.ACC)
    bench = Bench(Op.LD0)
    expect_fault(bench, [(good, segments), (bad, segments)], Fault.LIMIT, ACC, done=1)
    assert [(w["space"], w["addr"], w["en"]) for w in bench.lv0] == [
        (Lv0Space.ACC, ACC // WORD - 2 + i, (1 << WORD) - 1) for i in range(2)
    ]


@pytest.mark.parametrize(
    "fields",
    [
        {"src": 4}, {"dst": 4}, {"len": WORD + 4}, {"src_s2": 1, "n2": 2}, {"src_s0": -4}, {"dst_s1": WORD // 2},
        {"lo": 3}, {"hi": WORD + 1},
    ],
)  # fmt: skip
def test_accumulators_take_whole_words_only(fields):
    bench = Bench(Op.LD0)
    fine = copy(Op.LD0, len=4 * WORD, space=Lv0Space.ACC, lo=WORD, hi=3 * WORD, src=WORD, dst=3 * WORD)
    bad = copy(Op.LD0, **({"len": 4 * WORD, "space": Lv0Space.ACC} | fields))
    bench.run([command(fine, Segments(), 1), command(bad, Segments(), 2)], until=until_fault)
    assert bench.faults == [{"code": Fault.ILLEGAL, "pc": 2, "addr": 0}]
    assert len(bench.done) == 1 and len(bench.writes) == 4
