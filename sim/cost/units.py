"""Reads shapes as the cycles that they cost their units: typically, for the searches and schedules of the compiler, and
at the worst, for the bound on pauses. Exactly, they cost what the fast model's pipes say (:mod:`sim.cost.exact`).

A unit is a pipeline. It is described by a *rate-latency* pair: with ``F(i) = max(ready(i), F(i - 1)) + cycles(i)``
instruction i is done by ``F(i) + latency``, where ``ready`` is when it has its semaphores and the unit could take it.
At the worst, ``cycles`` counts every one in which the narrowest stage can be held up: misalignment, conflicts at the
banks of a scratchpad, bursts of other masters at the DRAM. Typically, it includes the latency, and all goes well.
"""

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any, NamedTuple

from hw.contract.isa import Insn, Op, Unit
from hw.contract.params import SocParams
from hw.contract.timing import TABLE_ROW_BYTES, UNIT_IN_FLIGHT
from sim.cost.dram import WorstDram, moved
from sim.cost.exact.pipelines import record_cycles
from sim.cost.overheads import COPY, COPY_PLAN, HIDDEN, MAC, UNIT_START, VEC, VEC_LATENCY
from sim.cost.rivals import Others, Rivals
from sim.cost.shapes import DRAM_OPS, CopyShape, MacShape, Shape, VecShape, nominal_shape, placed_shape

#: Commands a unit may have taken and not finished; MAC works on one and knows the next, VEC takes one at a time.
IN_FLIGHT = dict.fromkeys(Unit, UNIT_IN_FLIGHT) | {Unit.MAC: 2, Unit.VEC: 1}
_TWO_OPERANDS = 1.5  #: cycles of a vector whose operands both lie in LV1, as they share its ports with the result


class UnitTime(NamedTuple):
    """Holds the ``cycles`` that a shape holds its unit, ``latency`` beyond (see the module), and ``accesses``: words by
    client of a scratchpad (:data:`sim.cost.rivals.PORTS`)."""

    cycles: int
    latency: int
    accesses: tuple[tuple[str, int], ...] = ()


def insn_cycles(op: Op, fields: Mapping[str, Any], params: SocParams, engines: int = 1) -> int:
    """Return the typical cycles of one instruction while ``engines`` share DRAM."""
    return typical_cycles(nominal_shape(op, fields, params), params, engines)


def typical_cycles(shape: Shape, params: SocParams, engines: int = 1) -> int:
    """Return the typical cycles of ``shape`` while ``engines`` share DRAM. To load a block of weights takes as long as
    ``rows`` pixels."""
    if isinstance(shape, MacShape):
        return UNIT_START + shape.blocks * max(shape.pixels, params.rows)
    if isinstance(shape, VecShape):
        return UNIT_START + int(shape.vectors * shape.window)
    words = 0
    for run in shape.runs:
        words += run.alike * run.written
    if shape.op not in DRAM_OPS:
        return UNIT_START + words
    return UNIT_START + params.dram_latency + ceil(moved(engines * words * params.dram_word, params))


def work_cycles(shape: MacShape | VecShape) -> float:
    """Return the typical cycles of the work of ``shape`` alone, in however many instructions it is done."""
    if isinstance(shape, MacShape):
        return shape.blocks * shape.pixels
    return shape.vectors * shape.window * (_TWO_OPERANDS if shape.operands > 1 else 1)


def overlapped(units: Sequence[float]) -> float:
    """Return the cycles of ``units`` that work side by side: those of the busiest, and a little of all for what does
    not overlap."""
    return max(units) + HIDDEN * sum(units)


def worst_time(insn: Insn, params: SocParams, rivals: Rivals, memory: WorstDram) -> UnitTime:
    """Return the longest that ``insn`` can take beside ``rivals``."""
    shape = placed_shape(insn, params)
    if isinstance(shape, MacShape):
        cycles = shape.blocks * max(shape.pixels + shape.clashes, params.rows) + 4
        return UnitTime(cycles, params.rows + MAC.worst)
    if isinstance(shape, VecShape):
        return _worst_vec(shape, params, rivals)
    return _worst_bus_copy(shape, memory) if shape.op in DRAM_OPS else _worst_copy(shape, rivals)


def contended_cycles(insn: Insn, params: SocParams) -> int:
    """Return the longest that a load or store holds its unit while every other engine loads, burst by burst in turn."""
    rivals = Rivals(Others(params.engines - 1, stores=0), frozenset({insn.op}), fetched=0)
    return worst_time(insn, params, rivals, WorstDram(params, rivals)).cycles


def rivalry(op: Op, rivals: Rivals) -> tuple[int, ...] | None:
    """Return everything about ``rivals`` that changes the longest time of an instruction: cycles per word; None if it
    also depends on what they do to DRAM."""
    if op is Op.MAC:
        return ()
    if op is Op.VEC:
        return rivals.lv1_reads("a"), rivals.lv1_reads("b"), rivals.lv1_writes("d")
    return None if op in DRAM_OPS else _word_cycles(op, rivals)


def _worst_vec(shape: VecShape, params: SocParams, rivals: Rivals) -> UnitTime:
    reads_a, reads_b = rivals.lv1_reads("a"), rivals.lv1_reads("b")
    cycles = shape.parameters * reads_a + VEC.worst + (record_cycles(params) if shape.across else 0)
    if shape.tables:
        cycles += shape.tables * (reads_a + 2 + params.lv1_word // TABLE_ROW_BYTES)
    vectors, elements = int(shape.vectors), int(shape.vectors * shape.window)
    per_step = (1, reads_a, max(reads_a, reads_b))[shape.operands]
    # An operand word and a result word are asked for once per LV1 word at best, once per vector at worst.
    steps = max(elements * per_step, vectors * rivals.lv1_writes("d"))
    first, second = elements * (shape.operands > 0), elements * (shape.operands > 1)
    accesses = ("a", shape.parameters + shape.tables + first), ("b", second), ("d", vectors)
    return UnitTime(cycles + steps, VEC_LATENCY, accesses)


def _worst_copy(shape: CopyShape, rivals: Rivals) -> UnitTime:
    reads, writes = _word_cycles(shape.op, rivals)
    runs = sum(run.alike for run in shape.runs)
    cycles = sum(run.alike * max(run.read * reads, run.steps + run.written * (writes - 1)) for run in shape.runs)
    source, target = {Op.LD1: ("lv2_ld1", "ld1"), Op.ST1: ("st1", "lv2_st1"), Op.LD0: ("ld0", "")}[shape.op]
    read, written = sum(run.alike * run.read for run in shape.runs), sum(run.alike * run.written for run in shape.runs)
    latency = COPY.worst + 8 * (max(reads, writes) - 1)
    return UnitTime(max(cycles, runs + COPY_PLAN) + 2, latency, ((source, read), (target, written)))


def _word_cycles(op: Op, rivals: Rivals) -> tuple[int, int]:
    """Return the cycles of a word of a copy between scratchpads, at the source and at the destination."""
    if op is Op.LD1:
        return rivals.lv2_reads(op), rivals.lv1_writes("ld1")
    if op is Op.ST1:
        return rivals.lv1_reads("st1"), rivals.lv2_writes(op)
    return rivals.lv1_reads("ld0"), 1


def _worst_bus_copy(shape: CopyShape, memory: WorstDram) -> UnitTime:
    loads = shape.op is Op.LD2
    held = memory.rivals.lv2_writes(Op.LD2) if loads else memory.rivals.lv2_reads(Op.ST2)
    runs, words = sum(run.alike for run in shape.runs), sum(run.alike * run.written for run in shape.runs)
    cycles = max(memory.transfer(shape.op, shape.bursts, shape.rows, words, held), runs + COPY_PLAN)
    latency = memory.latency if shape.bursts else COPY.worst
    return UnitTime(cycles + 2, latency, (("lv2_ld2" if loads else "lv2_st2", words),))
