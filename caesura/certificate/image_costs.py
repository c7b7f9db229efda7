"""Finds what a request of an image takes at the worst, from its programs alone, if nobody interrupts it."""

from dataclasses import dataclass
from functools import cached_property

from caesura.certificate.image_programs import ImagePrograms
from caesura.latency import HostPart
from caesura.steps_on_cpu import cycles_on_cpu
from hw.contract.bus import HostCosts
from hw.image import Image, StepInfo
from sim.cost import (
    Bounds,
    CountedOthers,
    Others,
    Rivals,
    WorstDram,
    completion_cycles,
    dram_service,
    stretches,
    whole_bodies,
)
from sw.driver import SUBMIT_ACCESSES

_QUEUED = 2  #: times the jobs that an engine holds: as many stand in its queue at the most under a run time
_LOOK = 1000  #: cycles between two looks of the run time at what has ended


@dataclass(frozen=True)
class Neighbours:
    """Says what else is on the machine: ``engines`` that others use at the same time, and the bytes of LV2, ``window``,
    that requests may overwrite which interrupt this one. ``host_wait``: cycles for which the host may be at work on a
    switch of theirs. ``counted``: what they do to DRAM is added apart."""

    engines: int = 0
    window: int = 0
    host_wait: int = 0
    counted: bool = False

    @property
    def others(self) -> Others:
        """Return them as bounds on programs take them."""
        return CountedOthers(self.engines) if self.counted else Others(self.engines)


class ImageCosts:
    """Finds what ``image`` takes on ``engines`` engines beside ``neighbours``, in cycles."""

    def __init__(self, image: Image, engines: int, neighbours: Neighbours, costs: HostCosts | None = None) -> None:
        self._image, self._engines, self._neighbours = image, engines, neighbours
        self._costs, self._others = costs or HostCosts(), neighbours.others
        memory, unread = WorstDram(image.params, Rivals(self._others)), _QUEUED * image.params.job_slots
        self.host = HostPart(self._costs, memory, engines, unread)
        self.programs = ImagePrograms(image)

    # -- the host ----------------------------------------------------------------------------------------------
    @property
    def section(self) -> int:
        """Return the longest work of the host that nothing breaks: it serves engines, decides on a layer and queues
        it."""
        return self.host.serve + self._costs.decision + self._posting

    @property
    def switching(self) -> int:
        """Return the host's part of taking a request off its engines."""
        return self.host.notice + self.host.release + self._costs.decision + self.host.preparing([[]])

    @property
    def start(self) -> int:
        """Return the cycles from when the engines are free until the first prologue loads."""
        return self._costs.decision + self.host.start + self._neighbours.host_wait

    @property
    def _posting(self) -> int:
        return self._engines * (self.host.write + SUBMIT_ACCESSES * self._costs.register_access)

    # -- computing ---------------------------------------------------------------------------------------------
    @cached_property
    def execution(self) -> int:
        """Return the cycles from the first prologue until the host knows of the end, without interruption.

        Prologues, bodies and the host's work for a layer are added as if none of them overlapped on an engine; a layer
        is queued while the one before it runs.
        """
        steps = self._image.meta.steps
        ending = completion_cycles(self._image.params, self._others) + self.host.serve
        between = self.host.start + self.host.serve + _LOOK  # of two steps, one of which may be on the CPU
        return sum(self._step(step) + ending for step in steps) + between * (len(steps) - 1)

    def _step(self, step: StepInfo) -> int:
        return self.on_cpu(step) if step.kind == "host" else self._jobs(step.first, step.first + step.count)

    def _jobs(self, first: int, end: int) -> int:
        """Return the length of the longest path through the jobs of a step: each follows the one before it on its
        engine, and the earlier ones whose events it waits for."""
        jobs, least = self._image.meta.jobs, self.section + _LOOK
        engines, events, ends = dict[int, int](), dict[int, int](), dict[int, int]()
        for number in range(first, end):
            job = jobs[number]
            alone = 0 if self._image.meta.parts else job.engine  # of a placed image, any engine may run any job
            before = [engines.get(alone, 0), *(events.get(event, 0) for event, _ in job.waits)]
            begin = max([*before, *(ends.get(other, 0) for other in job.after)])
            ends[number] = engines[alone] = begin + max(least, self.bodies[number] + self.prologues[number])
            if job.signal is not None:
                events[job.signal] = max(events.get(job.signal, 0), ends[number])
        return max(ends.values(), default=0)

    @property
    def service(self) -> int:
        """Return the cycles for which DRAM serves a request, at the most."""
        programs = [*self.programs.bodies(), *(program for program in self.programs.prologues() if program)]
        return dram_service(programs, self._image.params)

    @cached_property
    def bodies(self) -> list[int]:
        """Return the bound on each body."""
        return whole_bodies(self.programs.bodies(), self._image.params, self._others)

    @cached_property
    def prologues(self) -> list[int]:
        """Return the bound on each prologue, which is 0 where there is none."""
        programs = self.programs.prologues()
        some = iter(whole_bodies([program for program in programs if program], self._image.params, self._others))
        return [next(some) if program else 0 for program in programs]

    @cached_property
    def stretches(self) -> list[Bounds]:
        """Return the bounds on pauses in each body."""
        loading = any(job.prologue_pc is not None for job in self._image.meta.jobs)
        return stretches(self.programs.bodies(), self._image.params, self._others, loading=loading)

    def on_cpu(self, step: StepInfo) -> int:
        """Return the cycles of a step on the CPU, as the run time charges them."""
        return cycles_on_cpu(self._image, step, self._costs)
