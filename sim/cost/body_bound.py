"""Bounds programs from beginning to end, as the bound on pauses does from one cancellation point to the next: for
response times that are promised before anything runs.

A program that nobody pauses owes nothing at its points, so that the bound is far below the sum of its stretches between
points. Each point only costs its own issue slot.
"""

from collections.abc import Sequence

from hw.contract.isa import Insn, Op
from hw.contract.params import SocParams
from sim.cost.bound import Bounds, PauseBounds
from sim.cost.dram import WorstDram
from sim.cost.overheads import ISSUE, JOB_START, POINT
from sim.cost.rivals import Others, Rivals
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


def completion_cycles(params: SocParams, others: Others) -> int:
    """Return the cycles to write a completion, beside ``others``."""
    return WorstDram(params, Rivals(others)).completion
