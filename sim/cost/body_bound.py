"""Bounds programs from beginning to end, as the bound on pauses does from one cancellation point to the next: for
response times that are promised before anything runs.

A program that nobody pauses owes nothing at its points, so that the bound is far below the sum of its stretches between
points. Each point only costs its own issue slot.
"""

from collections.abc import Sequence
from math import ceil

from hw.contract.isa import Insn, Op
from hw.contract.params import SocParams
from sim.cost.bound import Bounds, PauseBounds
from sim.cost.dram import WorstDram, moved
from sim.cost.overheads import ISSUE, JOB_START, POINT
from sim.cost.rivals import Others, Rivals
from sim.cost.shapes import DRAM_OPS, CopyShape, placed_shape
from sim.cost.worst_walk import WorstWalks


def whole_bodies(bodies: Sequence[Sequence[Insn]], params: SocParams, others: Others) -> list[int]:
    """Return for each of ``bodies``, or prologues, the cycles from when the job is at its turn until its last
    instruction has ended, if no prologue of its own engine loads meanwhile; such loads take their own time beside.

    Engines beside are ``others``. The completion is not in it: see :func:`completion_cycles`.
    """
    bounds, completion = PauseBounds(params, others, WorstWalks(params)), completion_cycles(params, others)
    result = []
    for body in bodies:
        plain = [insn for insn in body if insn.op is not Op.CANCEL]
        points = (len(body) - len(plain)) * (ISSUE.worst + POINT)
        result.append(bounds.of(plain, False).end - completion + points + JOB_START.worst)
    return result


def stretches(bodies: Sequence[Sequence[Insn]], params: SocParams, others: Others, *, loading: bool) -> list[Bounds]:
    """Return what ``worst_intervals`` returns for each of ``bodies`` beside ``others``, and does it once for what they
    have in common."""
    bounds = PauseBounds(params, others, WorstWalks(params))
    return [bounds.of(body, loading) for body in bodies]


def dram_service(programs: Sequence[Sequence[Insn]], params: SocParams) -> int:
    """Return the cycles for which the DRAM serves all of ``programs`` at the most, with the jobs that they are: their
    loads, stores and instructions, descriptors and completions. No other engine waits longer for them in all, as in
    every cycle that it does one of their bursts is served."""
    memory = WorstDram(params, Rivals(Others(params.engines - 1)))
    total = len(programs) * memory.job
    for program in programs:
        total += len(program) * memory.insn + sum(_served(insn, memory) for insn in program if insn.op in DRAM_OPS)
    return memory.debt(total)


def _served(insn: Insn, memory: WorstDram) -> int:
    """Return the cycles of the bursts of a load or store: each may open a row, and LV2 may hold each word up."""
    shape, rivals = placed_shape(insn, memory.params), memory.rivals
    assert isinstance(shape, CopyShape)
    words = sum(run.alike * run.written for run in shape.runs)
    held = max(rivals.lv2_writes(Op.LD2), rivals.lv2_reads(Op.ST2))
    bus = ceil(moved(words * memory.params.dram_word, memory.params))
    return bus + shape.bursts * memory.params.dram_row_miss + words * (held - 1)


def completion_cycles(params: SocParams, others: Others) -> int:
    """Return the cycles to write a completion, beside ``others``."""
    return WorstDram(params, Rivals(others)).completion
