"""Weight windows that somebody may still use when they are loaded, or use before their job has ended.

The functional model runs one job after the other, the hardware overlaps them. So what is checked is what the image
alone promises: whoever else touches bytes of a job's window has ended when its load may begin (``window_after``), or
does not begin before the job has ended. Jobs of an engine run in order, and the events that a job waits for tell which
jobs of other engines have ended.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hw.contract.isa import Insn, Segment
from hw.contract.params import SocParams
from hw.contract.spaces import Space
from hw.image.image import Image
from sim.functional.machine import Machine
from sim.functional.state import MemoryAccess, Segments
from tests.support.image_runner import HostCall, load, place_segments, run_host
from tests.support.turns import step_jobs

_Bytes = npt.NDArray[np.bool_]  #: a flag for each byte of LV2


class Lv2Touched:
    """An observer of :class:`sim.functional.machine.Machine` that notes the bytes of LV2 a body reads or writes."""

    def __init__(self, params: SocParams) -> None:
        self.read: _Bytes = np.zeros(params.lv2_bytes, np.bool_)
        self.written: _Bytes = np.zeros(params.lv2_bytes, np.bool_)

    def instruction(self, pc: int, engine: int, insn: Insn, accesses: list[MemoryAccess]) -> None:
        """Note what one instruction touches."""
        for access in accesses:
            if access.space == Space.LV2:
                access.where.view(self.written if access.write else self.read)[...] = True

    def end(self, engine: int) -> None:
        """Nothing follows from the end of a body."""


@dataclass(frozen=True)
class _Job:
    """What the image promises of a job. Sets of jobs are bits by number: those that have ended when its load may begin
    (``before_load``), and when its body begins (``before_body``). ``window``: its bytes of LV2."""

    window: slice
    before_load: int
    before_body: int
    touched: Lv2Touched


def window_clashes(image: Image, inputs: Mapping[str, npt.NDArray], host: HostCall | None = None) -> list[str]:
    """What is wrong with the weight windows of an image that is not placed. Runs one inference.

    ``inputs`` and ``host`` as in :func:`tests.support.image_runner.run_image`.
    """
    segments, bodies = place_segments(image), _ended_before(image)
    touched = _touched(image, segments, inputs, host)
    base, _ = segments[Segment.WINDOWS]
    jobs = []
    for number, (job, released) in enumerate(zip(image.meta.jobs, _released(image), strict=True)):
        offset, size = job.window
        earlier = _earlier_steps(image, number) | (0 if released is None else bodies[released] | 1 << released)
        jobs.append(_Job(slice(base + offset, base + offset + size), earlier, bodies[number], touched[number]))
    return [*_clashes(jobs)]


def _clashes(jobs: Sequence[_Job]) -> Iterator[str]:
    for number, job in enumerate(jobs):
        if job.touched.written[job.window].any():
            yield f"job {number} stores into its own weight window"
        for other, them in enumerate(jobs):
            if other == number or job.before_load >> other & 1:
                continue
            used = them.touched.read[job.window].any() or them.touched.written[job.window].any()
            if used and not them.before_body >> number & 1:
                yield f"job {other} uses the weight window of job {number} while that may hold its weights"
            meet = them.window.start < job.window.stop and job.window.start < them.window.stop
            if meet and not them.before_load >> number & 1:
                yield f"the weight windows of jobs {number} and {other} may be filled at the same time"


def _touched(
    image: Image, segments: Segments, inputs: Mapping[str, npt.NDArray], host: HostCall | None
) -> list[Lv2Touched]:
    """What the body of each job touches; a prologue runs just before its body."""
    machine = Machine(image.params)
    load(machine, image, segments, inputs)
    result = []
    for step in image.meta.steps:
        if step.kind == "host":
            run_host(machine, image, segments, step, host)
            continue
        for number in step_jobs(step):
            job = image.meta.jobs[number]
            machine.observer = touched = Lv2Touched(image.params)
            if job.prologue_pc is not None:
                machine.run_prologue(image.code, job.prologue_pc, segments, job.engine)
            machine.run_program(image.code, job.body_pc, segments, job.engine)
            result.append(touched)
    return result


def _released(image: Image) -> Iterator[int | None]:
    """For each job the one whose retirement lets its load begin; None if it may begin at once."""
    queues: dict[int, list[int]] = {}
    for number, job in enumerate(image.meta.jobs):
        mine = queues.setdefault(job.engine, [])
        yield mine[-job.window_after] if 0 < job.window_after <= len(mine) else None
        mine.append(number)


def _ended_before(image: Image) -> list[int]:
    """For each job the set of those that have ended when its body begins."""
    jobs, ended = image.meta.jobs, list[int]()
    latest: dict[int, int] = {}  # by engine
    waited: list[dict[int, int]] = []  # by job: signals of each event that it, or one before it, has waited for
    for number, job in enumerate(jobs):
        known, mine = _earlier_steps(image, number), dict[int, int]()
        before = latest.get(job.engine)
        if before is not None:
            known |= ended[before] | 1 << before
            mine |= waited[before]
        for event, count in job.waits:
            # Who waits for as many signals cannot have given one of them.
            givers = [k for k in range(number) if jobs[k].signal == event and waited[k].get(event, 0) < count]
            mine[event] = max(mine.get(event, 0), count)
            if len(givers) == count:
                for giver in givers:
                    known |= ended[giver] | 1 << giver
        ended.append(known)
        waited.append(mine)
        latest[job.engine] = number
    return ended


def _earlier_steps(image: Image, job: int) -> int:
    """The set of the jobs of earlier steps, which end before those of the next are queued."""
    first = max(step.first for step in image.meta.steps if step.kind == "jobs" and step.first <= job)
    return (1 << first) - 1
