"""Longest durations, by hand."""

import random

import pytest

from hw.contract.assembly import assemble
from hw.contract.isa import Insn, Op
from hw.contract.params import PRESETS, preset
from sim.cost.dram import WorstDram
from sim.cost.exact.pipelines import VEC_FIELDS, vec_steps
from sim.cost.rivals import PORTS, Others, Rivals, lost, rivals_of
from sim.cost.shapes import essence
from sim.cost.units import worst_time
from tests.hw.vec.test_vec_unit import random_insn as random_vec

TINY, BASE = preset("tiny"), preset("base")
ALL = Rivals()

CLIENTS = [client for clients in PORTS for client in clients]


def cycles(text: str, params=TINY, rivals=ALL) -> int:
    (insn,) = assemble(text)
    return worst_time(insn, params, rivals, WorstDram(params, rivals)).cycles


def only(*ops: Op) -> Rivals:
    return Rivals(ops=frozenset(ops), vec_a=False, vec_b=False)


def test_mac_blocks_are_no_shorter_than_a_load_of_weights():
    assert cycles("MAC p0=16 n0=9") == 9 * 16 + 4
    assert cycles("MAC p0=1 n0=9") == 9 * TINY.rows + 4


def test_mac_that_returns_to_a_row_waits_for_it():
    assert cycles("MAC p0=16 p1=4 acc_s=16") < cycles("MAC p0=16 p1=4 acc_s=0")


def test_rivals_at_a_bank_cost_a_cycle_per_word():
    load = "LD0 len=64 hi=64 n0=32 src_s0=64 dst_s0=64 hi0=32 hi1=1"
    alone, beside_store = cycles(load, rivals=only(Op.LD0)), cycles(load, rivals=only(Op.LD0, Op.ST1))
    words = 32 * 64 // TINY.lv1_word
    assert beside_store - alone == words
    assert cycles(load, rivals=ALL) - alone == 3 * words


def test_misaligned_runs_take_a_word_more():
    aligned = cycles("LD1 src_seg=6 len=64 hi=64 n0=32 src_s0=64 dst_s0=64 hi0=32 hi1=1", rivals=only(Op.LD1))
    shifted = cycles("LD1 src_seg=6 src=4 len=64 hi=64 n0=32 src_s0=64 dst_s0=64 hi0=32 hi1=1", rivals=only(Op.LD1))
    assert shifted - aligned == 32


def test_loads_alone_open_rows_once():
    memory = WorstDram(TINY, only(Op.LD2))
    words = 4096 // TINY.dram_word
    expected = (words + 2 * TINY.dram_row_miss) * memory.slowdown
    assert expected <= cycles("LD2 dst_seg=6 len=4096 hi=4096", rivals=only(Op.LD2)) <= expected + 4


@pytest.mark.parametrize("bandwidth", [70, 50, 3])
def test_a_slower_bus_takes_longer_for_every_beat(bandwidth):
    slow = TINY.replace(dram_bandwidth=bandwidth)
    words = 4096 // TINY.dram_word
    memory = WorstDram(slow, only(Op.LD2))
    assert memory.burst >= TINY.axi_burst_beats * 100 / bandwidth + TINY.dram_row_miss
    assert memory.latency - WorstDram(TINY, only(Op.LD2)).latency >= 100 / bandwidth - 1
    taken = cycles("LD2 dst_seg=6 len=4096 hi=4096", slow, only(Op.LD2))
    assert taken >= (words * 100 / bandwidth + 2 * TINY.dram_row_miss) * memory.slowdown


@pytest.mark.parametrize("params", [TINY, BASE], ids=lambda p: p.name)
def test_every_burst_waits_for_every_engine(params):
    load = "LD2 dst_seg=6 len=4096 hi=4096"
    times = [cycles(load, params, Rivals(Others(engines, 0), frozenset([Op.LD2]))) for engines in range(3)]
    assert times[0] < times[1] < times[2]
    stores = cycles(load, params, Rivals(Others(1), frozenset([Op.LD2])))
    assert stores > times[1]


def test_bursts_that_cross_a_boundary_count_twice():
    burst = BASE.axi_burst_beats * BASE.dram_word
    inside = cycles("LD2 dst_seg=6 len=64 hi=64", BASE)
    across = cycles(f"LD2 dst_seg=6 src={burst - 32} len=64 hi=64", BASE)
    assert across > 1.5 * inside


def test_conflicts_cost_no_more_than_what_is_served():
    assert lost({}, CLIENTS) == lost({"ld0": 100}, CLIENTS) == 0
    assert lost({"ld0": 100, "st1": 30}, CLIENTS) == 60  # either waits for the other 30 times at the most
    assert lost({"ld0": 100, "st1": 100}, CLIENTS) == 200
    assert lost({"ld1": 7, "lv2_ld1": 9}, CLIENTS) == 0  # not the same ports


def test_conflicts_with_some_clients_cost_what_these_are_served():
    words = {"ld0": 40, "st1": 30, "a": 1000}
    assert lost(words, {"st1"}) == 30  # LD0 and VEC wait for ST1 together
    assert lost(words, {"st1", "ld0"}) == 70
    assert lost(words, {"d"}) == lost(words, set()) == 0
    alone, beside = Rivals(once=frozenset({"ld0", "st1", "b"})), Rivals()
    assert alone.lv1_reads("a") == 1 and beside.lv1_reads("a") == 4
    assert alone.lv1_reads("ld0") == 2  # VEC is charged word by word


def test_a_copy_takes_as_many_words_as_its_runs_touch():
    """Runs of half a word that never straddle two take a word each, however source and destination are shifted."""
    word = BASE.lv1_word
    half = f"LD1 src_seg=6 len={word // 2} hi={word // 2} n0=100"
    held = cycles(f"{half} src_s0={2 * word} dst_s0={word // 2}", BASE)
    assert held < 1.5 * 100 * (1 + BASE.engines)  # LV2 words wait for the other units
    assert cycles(f"{half} src=8 src_s0={word} dst_s0={word}", BASE) >= held


def test_rivals_of_a_program():
    rivals = rivals_of([Insn(Op.VEC, {"src_acc": 1}), Insn(Op.LD1)], Others(2))
    assert rivals == Rivals(Others(2), frozenset([Op.VEC, Op.LD1]), vec_a=False, vec_b=False)


@pytest.mark.parametrize("op", [Op.LD1, Op.ST1, Op.LD0, Op.LD2, Op.ST2])
def test_copies_of_one_essence_take_as_long(op):
    """On chip only the place in a word counts; essences of essences are what they were."""
    params, rivals = preset("base"), Rivals(Others(1, stores=None))
    grain = params.lv1_word if op in (Op.LD1, Op.ST1, Op.LD0) else params.dram_row_bytes
    fields = {"len": 40, "hi": 37, "lo": 3, "n0": 5, "src_s0": 48, "dst_s0": 40}
    first = Insn(op, fields | {"src": 5, "dst": 9})
    other = Insn(op, fields | {"src": 5 + 7 * grain, "dst": 9 + 3 * grain})
    short = essence(first, params)
    assert short == essence(other, params) == essence(short, params) != essence(Insn(op, fields), params)
    found = [worst_time(insn, params, rivals, WorstDram(params, rivals)) for insn in (first, other, short)]
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("params", PRESETS.values(), ids=lambda p: p.name)
def test_vec_instructions_alone_end_within_their_bound(params):
    """Their cycles in the fast model, which are those of the RTL; what their essences leave out does not matter."""
    rand = random.Random(params.vec_lanes)
    for _ in range(400):
        insn = random_vec(params, rand)
        setup, steps, tail, *_ = vec_steps(params, *(insn[name] for name in VEC_FIELDS))
        rivals = rivals_of([insn], Others())
        longest = worst_time(insn, params, rivals, WorstDram(params, rivals))
        assert setup + steps - 1 + tail <= longest.cycles + longest.latency, insn
        assert worst_time(essence(insn, params), params, rivals, WorstDram(params, rivals)) == longest


def test_records_and_wide_tables_take_longer():
    row = "VEC op=MAX k0=4 p=0x400 a_k0=8"
    assert cycles(f"{row} across=1") > cycles(row)
    table = "VEC op=LOOKUP b_en=1 row=1 p=0x400"
    assert cycles(table) - cycles("VEC b_en=1 row=1 p=0x400") >= 1024 // TINY.lv1_word
