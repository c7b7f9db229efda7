"""Finds the longest durations of instructions, from the numbers of the hardware's timing.

A unit is a pipeline. It is described by a *rate-latency* pair: with ``F(i) = max(ready(i), F(i - 1)) + work(i)``
instruction i is done by ``F(i) + latency``, where ``ready`` is when it has its semaphores and the unit could take it.
``work`` counts every cycle in which the narrowest stage can be held up: misalignment, conflicts at the banks of a
scratchpad, bursts of other masters at the DRAM (:mod:`sim.timing.contention`).
"""

from dataclasses import dataclass
from functools import lru_cache
from math import gcd

import numpy as np

from hw.contract.isa import FORMATS, Insn, Op, Unit
from hw.contract.params import SocParams
from hw.contract.timing import MAC_IN_FLIGHT, TABLE_ROW_BYTES, UNIT_IN_FLIGHT, VEC_IN_FLIGHT
from sim.timing.contention import Rivals, WorstDram
from sim.timing.copies import COPY_FIELDS, run_steps, runs_of
from sim.timing.excerpt import MOST
from sim.timing.pipelines import record_cycles, vec_words

#: Commands a unit may have taken and not finished; MAC works on one and knows the next, VEC takes one at a time.
IN_FLIGHT = dict.fromkeys(Unit, UNIT_IN_FLIGHT) | {Unit.MAC: MAC_IN_FLIGHT, Unit.VEC: VEC_IN_FLIGHT}
_PLAN = 6  #: cycles between commands in the planner of a copy unit
_COPY_LATENCY = 30  #: from a scratchpad copy's start to its first word, and from its last to its signal
_MAC_LATENCY = 16
_VEC_FIXED = 34  #: check, pipeline, last write
_VEC_LATENCY = 4
_RUNS_COUNTED = 256  #: runs of a copy whose bursts are counted one by one; the driver aligns segments to pages
#: Fields of a copy of which only the place in a word matters.
_ALIGNED = ("src", "dst", *(f"{side}_s{k}" for side in ("src", "dst") for k in range(3)))
_LOOPS = ("n2", "n1", "n0")
_COPY = COPY_FIELDS
#: What a duration depends on, by operation.
_MATTERS = dict.fromkeys((Op.LD2, Op.ST2, Op.LD1, Op.ST1, Op.LD0), _COPY) | {
    Op.MAC: (*_LOOPS, "p1", "p0", "acc_s"),
    Op.VEC: ("op", *_LOOPS, "k1", "k0", "src_acc", "b_en", "per_channel", "table", "across"),
}
_DEFAULTS = {op: {f.name: f.default for f in FORMATS[op] if f.name in names} for op, names in _MATTERS.items()}

Fields = dict[str, int]  #: the fields that matter, by name


@dataclass(frozen=True)
class Work:
    """Says how long an instruction takes: ``cycles`` that it holds its unit, ``latency`` beyond (see the module), and
    ``accesses``: words by client of a scratchpad (:data:`PORTS`)."""

    cycles: int
    latency: int
    accesses: tuple[tuple[str, int], ...] = ()


def work(insn: Insn, params: SocParams, rivals: Rivals, memory: WorstDram) -> Work:
    """Return the longest that ``insn`` can take beside ``rivals``."""
    fields = _fields(insn)
    if insn.op is Op.MAC:
        return _mac(fields, params)
    if insn.op is Op.VEC:
        return _vec(fields, params, rivals)
    return _copy(insn.op, fields, params, rivals, memory)


def rivalry(op: Op, rivals: Rivals) -> tuple[int, ...] | None:
    """Return everything about ``rivals`` that changes the work of an instruction: cycles per word; None if it also
    depends on what they do to DRAM."""
    if op is Op.MAC:
        return ()
    if op is Op.VEC:
        return rivals.lv1_reads("a"), rivals.lv1_reads("b"), rivals.lv1_writes("d")
    return None if op in (Op.LD2, Op.ST2) else _scratchpad_rivals(op, rivals)


def essence(insn: Insn, params: SocParams) -> Insn:
    """Return ``insn`` reduced to what decides how long it takes, so that instructions of equal duration become equal:
    only the fields that matter, and addresses counted from the DRAM row, or the word on chip, that they lie in."""
    if insn.op not in _MATTERS:
        return Insn(insn.op)
    grain = params.lv1_word
    if insn.op in (Op.LD2, Op.ST2):
        grain = max(params.dram_row_bytes, params.axi_burst_beats * params.dram_word, grain)
    fields = _fields(insn)
    return Insn(insn.op, fields | {name: fields[name] % grain for name in ("src", "dst") if name in fields})


def _fields(insn: Insn) -> Fields:
    defaults = _DEFAULTS[insn.op]
    if insn.fields.keys() == defaults.keys():  # as essences are
        return insn.fields
    return {name: insn.fields.get(name, default) for name, default in defaults.items()}


def abandoned(params: SocParams) -> Insn:
    """Return a load that takes at least as long as the rest of abandoned ones: it has as many bursts as can be
    outstanding."""
    length = params.axi_outstanding * params.axi_burst_beats * params.dram_word
    return Insn(Op.LD2, {"len": length, "hi": length})


def _mac(insn: Fields, params: SocParams) -> Work:
    pixels = insn["p1"] * insn["p0"]
    blocks = insn["n2"] * insn["n1"] * insn["n0"]
    hazards = 2 * pixels if insn["p1"] > 1 and insn["acc_s"] < insn["p0"] else 2
    return Work(blocks * max(pixels + hazards - 2, params.rows) + 4, params.rows + _MAC_LATENCY)


def _vec(insn: Fields, params: SocParams, rivals: Rivals) -> Work:
    reads_a, reads_b = rivals.lv1_reads("a"), rivals.lv1_reads("b")
    vectors = insn["n2"] * insn["n1"] * insn["n0"]
    window = insn["k1"] * insn["k0"]
    block, table = _vec_words(insn, params)
    cycles = block * reads_a + _VEC_FIXED + (record_cycles(params) if insn["across"] else 0)
    if table:
        cycles += table * (reads_a + 2 + params.lv1_word // TABLE_ROW_BYTES)
    per_step = 1 if insn["src_acc"] else max(reads_a, reads_b if insn["b_en"] else 1)
    # An operand word and a result word are asked for once per LV1 word at best, once per vector at worst.
    steps = max(vectors * window * per_step, vectors * rivals.lv1_writes("d"))
    reads = 0 if insn["src_acc"] else vectors * window
    accesses = ("a", block + table + reads), ("b", reads * insn["b_en"]), ("d", vectors)
    return Work(cycles + steps, _VEC_LATENCY, accesses)


def _vec_words(insn: Fields, params: SocParams) -> tuple[int, int]:
    """Return the LV1 words of the parameter block and of the table."""
    return vec_words(params, insn["op"], insn["table"], insn["n0"] if insn["per_channel"] else 1)


def parameter_words(insn: Insn, params: SocParams) -> int:
    """Return how many LV1 words a VEC instruction reads before its first operand."""
    return sum(_vec_words(_fields(insn), params))


def _words(offset: int, length: int, word: int, step: int = 0) -> int:
    """Return the most words that ``length`` bytes touch at ``offset`` or any multiple of ``step`` behind it."""
    if length <= 0:
        return 0
    grain = gcd(step, word)
    return (offset % grain + word - grain + length - 1) // word + 1


def _step(insn: Fields, side: str) -> int:
    """Return what all distances between runs are multiples of; 0 with a single run."""
    return gcd(*(insn[f"{side}_s{k}"] for k in range(3) if insn[f"n{k}"] > 1))


def _copy(op: Op, insn: Fields, params: SocParams, rivals: Rivals, memory: WorstDram) -> Work:
    if op in (Op.LD2, Op.ST2):
        return _bus_copy(op, insn, params, memory)
    reads, writes = _scratchpad_rivals(op, rivals)
    runs = insn["n2"] * insn["n1"] * insn["n0"]
    aligned = (insn[name] % params.lv1_word if name in _ALIGNED else insn[name] for name in COPY_FIELDS)
    cycles, src, dst = _held(reads, writes, params.lv1_word, *aligned)
    source, target = {Op.LD1: ("lv2_ld1", "ld1"), Op.ST1: ("st1", "lv2_st1"), Op.LD0: ("ld0", "")}[op]
    latency = _COPY_LATENCY + 8 * (max(reads, writes) - 1)
    return Work(max(cycles, runs + _PLAN) + 2, latency, ((source, src), (target, dst)))


@lru_cache(maxsize=1 << 16)
def _held(reads: int, writes: int, word: int, *values: int) -> tuple[int, int, int]:
    """Return the cycles that a copy between scratchpads with ``COPY_FIELDS`` of ``values`` holds its unit, run by run,
    where a word takes ``reads`` cycles at the source and ``writes`` at the destination; words there and here."""
    fields = dict(zip(COPY_FIELDS, values, strict=True))
    count = fields["n2"] * fields["n1"] * fields["n0"]
    if count > MOST:  # each as long as any may be
        words = _words(0, fields["len"], word, 1)
        return count * max((words + 1) * reads, words * writes + 1), (words + 1) * count, words * count
    steps, src = run_steps(fields, runs := runs_of(fields), word)
    dst = (runs.dst % word + fields["len"] - 1) // word + 1
    cycles = np.maximum(src * reads, steps + dst * (writes - 1))
    return int(cycles.sum()), int(src.sum()), int(dst.sum())


def _scratchpad_rivals(op: Op, rivals: Rivals) -> tuple[int, int]:
    """Return the cycles per word at the source and at the destination."""
    if op is Op.LD1:
        return rivals.lv2_reads(op), rivals.lv1_writes("ld1")
    if op is Op.ST1:
        return rivals.lv1_reads("st1"), rivals.lv2_writes(op)
    return rivals.lv1_reads("ld0"), 1


def _bus_copy(op: Op, insn: Fields, params: SocParams, memory: WorstDram) -> Work:
    from_bus, word = op is Op.LD2, params.dram_word
    runs = insn["n2"] * insn["n1"] * insn["n0"]
    src_step, dst_step = (_step(insn, side) for side in ("src", "dst"))
    read = min(insn["hi"], insn["len"]) - insn["lo"]
    src = _words(insn["src"] + insn["lo"], read, word, src_step)
    shifted = src_step % word != 0 or dst_step % word != 0 or (insn["src"] - insn["dst"]) % word != 0
    words = max(src, _words(insn["dst"], insn["len"], word, dst_step) + shifted)
    side, length = ("src", read) if from_bus else ("dst", insn["len"])
    burst_bytes = params.axi_burst_beats * params.dram_word
    start = insn[side] + (insn["lo"] if side == "src" else 0)
    starts, exact = [start], runs <= _RUNS_COUNTED
    for k in range(3 if exact else 0):
        starts = [at + i * insn[f"{side}_s{k}"] for at in starts for i in range(insn[f"n{k}"])]

    def touched(size: int) -> int:
        """Return the blocks of ``size`` bytes that the runs touch, one after the other."""
        return sum(_words(at, length, size, 0 if exact else 1) for at in starts) * (1 if exact else runs)

    bursts, rows = touched(burst_bytes), touched(params.dram_row_bytes)
    held = memory.rivals.lv2_writes(Op.LD2) if from_bus else memory.rivals.lv2_reads(Op.ST2)
    cycles = max(memory.transfer(op, bursts, rows, runs * words, held), runs + _PLAN)
    latency = memory.latency if bursts else _COPY_LATENCY
    return Work(cycles + 2, latency, (("lv2_ld2" if from_bus else "lv2_st2", runs * words),))
