"""Cycles are exact here, so throughput is asserted in cycles."""

import pytest

from hw.contract.isa import Insn, Op
from tests.hw.dma.harness import SMALL, Bench, Segments, command, copy, runs

WORD, NARROW = SMALL.lv1_word, SMALL.dram_word
WIDE = Segments()


def cycles(bench: Bench, insns: list[Insn], segments: Segments = WIDE) -> int:
    """Cycles from the first command to the last ``done``."""
    bench.run([command(insn, segments, pc) for pc, insn in enumerate(insns)])
    assert not bench.faults
    assert bench.bytes == sum(int(mask.sum()) for insn in insns for _, _, mask in runs(insn))
    return bench.done[-1]


@pytest.mark.parametrize("op", [Op.LD1, Op.ST1, Op.LD0])
def test_one_word_runs_go_at_one_per_cycle(op):
    insn = copy(op, len=WORD, n1=8, n0=32, src_s1=32 * WORD, src_s0=WORD, dst_s1=32 * WORD,
                     dst_s0=WORD, pe_mask=3)  # fmt: skip
    assert cycles(Bench(op), [insn]) <= 256 / 0.95


@pytest.mark.parametrize("op", [Op.LD1, Op.ST1, Op.LD0])
def test_one_word_runs_that_fill_go_at_one_per_cycle(op):
    insn = copy(op, len=WORD, n0=256, dst_s0=WORD, hi=0, pe_mask=3)
    bench = Bench(op)
    assert cycles(bench, [insn]) <= 256 / 0.95
    assert not bench.reads


@pytest.mark.parametrize("shift", [0, 3])
@pytest.mark.parametrize("op", [Op.LD1, Op.ST1, Op.LD0])
def test_long_runs_go_at_one_word_per_cycle_whatever_the_alignment(op, shift):
    insn = copy(op, src=shift, len=256 * WORD - 8, pe_mask=3)
    assert cycles(Bench(op), [insn]) <= 256 / 0.95


def test_a_misaligned_run_costs_one_more_cycle():
    insn = copy(Op.LD1, src=3, len=2 * WORD, n0=100, src_s0=WORD, dst_s0=WORD)
    assert cycles(Bench(Op.LD1), [insn]) <= 3 * 100 + 15


def test_a_misaligned_run_within_one_source_word_costs_no_more():
    insn = copy(Op.LD1, src=1, len=WORD - 2, n0=128, src_s0=WORD, dst_s0=WORD)
    assert cycles(Bench(Op.LD1), [insn]) <= 128 + 15


def test_commands_follow_each_other_closely():
    insn = copy(Op.LD0, len=WORD, n0=32, src_s0=WORD, dst_s0=WORD, pe_mask=3)
    bench = Bench(Op.LD0)
    assert cycles(bench, [insn] * 8) <= 8 * (32 + 5) + 15


def test_short_command_latency():
    insn = copy(Op.LD1, len=WORD)
    assert cycles(Bench(Op.LD1), [insn]) <= 16


@pytest.mark.parametrize("shift", [0, 5])
def test_load_hides_dram_latency(shift):
    length = 1000 * NARROW
    bench = Bench(Op.LD2, latency=100, params=SMALL.replace(axi_outstanding=16))
    taken = cycles(bench, [copy(Op.LD2, src=shift, len=length)])
    assert taken - 100 <= 1000 / 0.95


def test_load_of_short_runs_keeps_bursts_in_flight():
    """128-byte runs 1 KiB apart: 8 bursts of 16 beats in flight cover 100 cycles of latency."""
    insn = copy(Op.LD2, len=128, n0=56, src_s0=1024, dst_s0=128)
    taken = cycles(Bench(Op.LD2, latency=100), [insn])
    assert taken - 100 <= 56 * 16 / 0.95


def test_load_of_tiny_runs_is_bounded_by_bursts_in_flight():
    insn = copy(Op.LD2, len=NARROW, n0=160, src_s0=64, dst_s0=NARROW)
    taken = cycles(Bench(Op.LD2, latency=100, params=SMALL.replace(axi_outstanding=16)), [insn])
    assert 160 / 16 * 100 <= taken <= 100 + 160 / 16 * 112


@pytest.mark.parametrize("shift", [0, 5])
def test_store_streams(shift):
    length = 1000 * NARROW
    insn = copy(Op.ST2, dst=shift, len=length)
    assert cycles(Bench(Op.ST2, latency=20), [insn]) - 20 <= 1000 / 0.95
