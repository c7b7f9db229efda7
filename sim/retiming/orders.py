"""Another order of the jobs of a recorded run: what may change places, and when LD2 takes what then."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from hw.contract.isa import INSN_BYTES, LV2_SEGMENTS, Op, Unit
from hw.contract.job import JobFlag
from sim.model.jobs import Job
from sim.model.recorder import BodyRun
from sim.retiming.instructions import UnitMoments
from sim.retiming.replay import Ints

_FAR = 1 << 60
_HAND_OVER = 4  #: at most, from the end of a load of a prologue until LD2 takes one of a body that waited for it

Range = tuple[int, int]  #: bytes of LV2, from one to before another


class OrderError(ValueError):
    """Jobs cannot run in an order that was asked for."""


def as_recorded(found: Sequence[int]) -> bool:
    """Whether all bodies are where they were."""
    return list(found) == list(range(len(found)))


def number_of(job: Job) -> int:
    """Its job_id."""
    return job.members["job_id"]


def places(bodies: Sequence[BodyRun], order: Sequence[int]) -> list[int]:
    """Which of the ``bodies`` of an engine, as they were recorded, is where if its jobs run as ``order`` names them by
    their job_ids, among those of other engines. Raises :class:`OrderError`."""
    known = {number_of(body.job): number for number, body in enumerate(bodies)}
    found = [known[job] for job in order if job in known]
    if len(known) != len(bodies) or sorted(found) != list(range(len(bodies))):
        raise OrderError("an order names each recorded job once, by its job_id")
    _check(bodies, found)
    return found


def _check(bodies: Sequence[BodyRun], found: Sequence[int]) -> None:
    """Jobs of one model depend on each other, and so do those that use the same bytes of LV2."""
    place = {number: where for where, number in enumerate(found)}
    models: dict[int, list[int]] = {}
    for number, body in enumerate(bodies):
        models.setdefault(_model(body.job), []).append(number)
        after = body.job.members["window_after"]
        if 0 < after <= number and place[number - after] > place[number]:
            raise OrderError(
                f"job {number_of(body.job)} loads weights over those of job {number_of(bodies[number - after].job)}: "
                "it runs behind that"
            )
    for numbers in models.values():
        for first, second in pairwise(numbers):
            if place[first] > place[second]:
                raise OrderError(
                    f"job {number_of(bodies[second].job)} depends on job {number_of(bodies[first].job)} of the same "
                    "model: they keep their order"
                )
    several = [(numbers, _written([bodies[number] for number in numbers])) for numbers in models.values()]
    for index, (mine, used) in enumerate(several):
        for others, theirs in several[index + 1 :]:
            swapped = any((a < b) != (place[a] < place[b]) for a in mine for b in others)
            if swapped and used[0] < theirs[1] and theirs[0] < used[1]:
                raise OrderError(
                    f"the models of jobs {number_of(bodies[mine[0]].job)} and {number_of(bodies[others[0]].job)} use "
                    "the same part of LV2: their jobs keep their order"
                )


def _model(job: Job) -> int:
    """What tells models apart: where the code lies."""
    return job.segments[0][0]


def _written(bodies: Sequence[BodyRun]) -> Range:
    """The bytes of LV2 that the jobs of a model, which ran ``bodies``, write, from the first to the last."""
    low, high = 1 << 32, 0
    program, job = bodies[0].program, bodies[0].job
    end = max(body.job.segments[0][1] for body in bodies) // INSN_BYTES
    units = np.array(program.units[:end])
    for op, unit in ((Op.LD2, Unit.LD2), (Op.ST1, Unit.ST1)):
        rows = np.flatnonzero(units == int(unit))
        segments = program.column(op, "dst_seg", rows)
        first = program.column(op, "dst", rows)
        last = np.array(program.extent, np.int64)[rows]
        for segment in LV2_SEGMENTS:
            there = segments == int(segment)
            if there.any():
                base = job.segments[segment][0]
                low = min(low, base + int(first[there].min()))
                high = max(high, base + int(last[there].max()))
    return low, high


class Delay(NamedTuple):
    """About how many cycles later than in the recorded run a job has its prologue and its body."""

    prologue: int
    body: int


def delayed(bodies: Sequence[BodyRun], found: Sequence[int], slots: int) -> list[Delay]:
    """Of each of ``bodies``, as they were recorded, in the order ``found``, if each takes as long as it did: a prologue
    follows the one before once its window is free. None are late in the order in which they ran. What passes between
    jobs takes as long as it did at least in the recorded run."""
    if as_recorded(found):
        return [Delay(0, 0)] * len(bodies)
    loaded = ended = min(body.job.times["prologue_start"] or body.job.times["start"] for body in bodies)
    gap = _shortest((bodies[n].job.times["start"] - bodies[n - 1].job.times["end"]) for n in range(1, len(bodies)))
    behind_holder = _shortest(
        body.job.times["prologue_start"] - bodies[n - body.job.members["window_after"]].job.times["end"]
        for n, body in enumerate(bodies)
        if 0 < body.job.members["window_after"] <= n
    )
    ends: dict[int, int] = {}
    delays = [Delay(0, 0)] * len(bodies)
    for place, number in enumerate(found):
        times, job = bodies[number].job.times, bodies[number].job
        begin = loaded
        if job.has(JobFlag.PROLOGUE):
            after = job.members["window_after"]
            behind = [number - after] if 0 < after <= number else []
            behind += [found[place - slots]] if place >= slots else []
            begin = max([loaded, *(ends[one] + behind_holder for one in behind)])
            loaded = begin + times["prologue_end"] - times["prologue_start"]
        start = max(ended + gap, loaded)
        ended = ends[number] = start + times["end"] - times["start"]
        delays[number] = Delay(begin - times["prologue_start"], start - times["start"])
    return delays


def _shortest(lags: Iterable[int]) -> int:
    return min((lag for lag in lags if lag > 0), default=0)


class Turns:
    """When LD2 takes the commands of an engine, about, so that none waits for one behind it: a body runs behind its own
    prologue, and a prologue behind the bodies that hold its window and its slot."""

    def __init__(self, bodies: Sequence[BodyRun], found: Sequence[int], slots: int) -> None:
        place = {number: where for where, number in enumerate(found)}
        self._behind = []  # for each place the last whose body must have ended before the prologue
        for where, number in enumerate(found):
            after = bodies[number].job.members["window_after"]
            self._behind.append(max(where - slots, place[number - after] if 0 < after <= number else -1))

    def taken(self, body: Ints, body_places: Ints, loads: Ints, load_places: Ints) -> tuple[Ints, Ints]:
        """Guesses for commands of bodies and of prologues, in order, and the places of their jobs: put right."""
        body, loads = body.copy(), loads.copy()
        latest: list[int] = []  # of the bodies up to each place
        loaded = 0
        for place, behind in enumerate(self._behind):
            mine = slice(*np.searchsorted(load_places, [place, place + 1]))
            begin = max(loaded, latest[behind] + 1 if behind >= 0 else 0)
            loads[mine] = np.maximum.accumulate(np.maximum(loads[mine], begin))
            loaded = int(loads[mine][-1]) if len(loads[mine]) else loaded
            mine = slice(*np.searchsorted(body_places, [place, place + 1]))
            begin = max(latest[-1] if latest else 0, loaded + 1)
            body[mine] = np.maximum.accumulate(np.maximum(body[mine], begin))
            latest.append(int(body[mine][-1]) if len(body[mine]) else latest[-1] if latest else 0)
        return body, loads


def wants(issued: Ints, unit: UnitMoments, loads: Ints, ends: Ints) -> Ints:
    """When LD2 is offered the commands of bodies that are ``issued`` then. What they waited for beyond in the recorded
    run they wait for again, but for loads of prologues, which were taken at ``loads`` and ended at ``ends``: where one
    was taken before that before it had ended, no load of a prologue comes between them."""
    taken = unit.recorded
    order = np.argsort(loads, kind="stable")
    before = np.searchsorted(loads[order], taken) - 1
    held = np.append(ends[order], -_FAR)[before] + _HAND_OVER >= taken
    waited = np.maximum(0, taken - np.maximum(unit.recorded_issue, unit.earlier(taken, 1)))
    waited[held] = 0
    overlaps = (unit.place > 0) & (taken <= unit.earlier(np.maximum.accumulate(unit.recorded_end), 1) + _HAND_OVER)
    wanted: list[int] = []
    latest = 0
    for place, at, longer, within in zip(
        unit.place.tolist(), issued.tolist(), waited.tolist(), overlaps.tolist(), strict=True
    ):  # fmt: skip
        latest = (max(at, latest) if place else at) + longer
        wanted.append(wanted[-1] if within else latest)
    return np.array(wanted, np.int64)
