"""One inference cut into stretches at cancellation points and job starts, with what is needed at each cut."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from hw.contract.isa import Op
from hw.contract.job import FaultUnit
from hw.image.image import CancelPoint, Image, LiveRange, StepInfo
from sim.functional.machine import Machine
from sim.functional.state import Segments
from tests.support.check.liveness import Executed, Liveness, Needs, effective
from tests.support.image_runner import Arrays, HostCall, get, run_host
from tests.support.turns import may_start, turns

Orders = Mapping[int, Sequence[int]]  #: first job of a step -> order of its bodies


@dataclass
class Cut:
    """A place between two instructions, and ``stretch``: what runs from here to the next cut.

    ``job`` is the one that starts (``point`` None) or is stopped at ``point``; None at the start and the end of a step.
    ``loaded``: jobs whose prologue has run and whose body has not started, in the order of loading; ``beside``: jobs
    of other engines that may be running. ``host``: tensors a host step writes here.
    """

    job: int | None = None
    point: CancelPoint | None = None
    semaphores: list[int] = field(default_factory=list)
    loaded: list[int] = field(default_factory=list)
    beside: list[int] = field(default_factory=list)
    host: Arrays = field(default_factory=dict)
    stretch: list[Executed] = field(default_factory=list)
    needs: Needs = field(default_factory=list)

    def live(self, image: Image) -> list[LiveRange]:
        """The ranges that the image declares live here."""
        if self.point is not None:
            return self.point.live
        return image.meta.jobs[self.job].live if self.job is not None else []

    def __str__(self) -> str:
        return f"job {self.job}" if self.point is None else f"point {self.point.point} (job {self.job})"


class Tracer:
    """Runs one inference on ``machine`` and records it as ``cuts``; ``points`` limits the cuts inside bodies."""

    def __init__(self, machine: Machine, image: Image, segments: Segments, points: Collection[int] | None) -> None:
        self.cuts = [Cut()]
        self.unlisted: list[str] = []  #: CANCEL instructions that the table does not know
        self._machine, self._image, self._segments = machine, image, segments
        self._selected = points
        self._table = {(point.job, point.pc): point for point in image.meta.cancel_points}
        self._signals: Counter[int | None] = Counter()

    def run(self, host: HostCall | None, orders: Orders) -> None:
        """All steps; raises what the functional model raises."""
        for step in self._image.meta.steps:
            if step.kind == "jobs":
                self._jobs(step, orders.get(step.first))
            else:
                run_host(self._machine, self._image, self._segments, step, host)
                tensors = [self._image.tensor(name) for name in step.outputs]
                self.cuts[-1].host = {t.name: get(self._machine, self._segments, t) for t in tensors}
            self.cuts.append(Cut())

    def settle_needs(self) -> None:
        """Fill in ``needs`` of every cut, from the last to the first."""
        liveness = Liveness(self._image.params, self._segments)
        for cut in reversed(self.cuts):
            liveness.undo(cut.stretch)
            cut.needs = liveness.needs()

    def _jobs(self, step: StepInfo, order: Sequence[int] | None) -> None:
        loaded: list[int] = []
        waiting = list(range(step.first, step.first + step.count))
        for turn in turns(self._image, step, order):
            if not turn.body:
                self._prologue(turn.job)
                loaded.append(turn.job)
                continue
            waiting.remove(turn.job)
            self._cut(Cut(turn.job, None, loaded=list(loaded), beside=self._beside(turn.job, waiting)))
            loaded = [job for job in loaded if job != turn.job]
            self._body(turn.job, loaded, waiting)
            self._signals[self._image.meta.jobs[turn.job].signal] += 1

    def _beside(self, job: int, waiting: list[int]) -> list[int]:
        jobs = self._image.meta.jobs
        heads = {jobs[other].engine: other for other in reversed(waiting)}
        heads.pop(jobs[job].engine, None)
        return [head for head in heads.values() if may_start(self._image, head, self._signals)]

    def _cut(self, cut: Cut) -> None:
        if cut.job is not None:
            cut.semaphores = list(self._machine.engines[self._image.meta.jobs[cut.job].engine].semaphores)
        self.cuts.append(cut)

    def _prologue(self, number: int) -> None:
        job = self._image.meta.jobs[number]
        pc = job.prologue_pc or 0
        while (insn := self._machine.fetch(self._image.code, pc, FaultUnit.LOADER)).op is not Op.END:
            self._machine.execute(insn, self._segments, job.engine, pc)
            self._note(pc, job.engine, body=False)
            pc += 1

    def _body(self, number: int, loaded: list[int], waiting: list[int]) -> None:
        job, pc = self._image.meta.jobs[number], self._image.meta.jobs[number].body_pc
        while (insn := self._machine.fetch(self._image.code, pc)).op is not Op.END:
            if insn.op is Op.CANCEL:
                self._cancel(number, pc, insn["point"], loaded, waiting)
            else:
                self._machine.step(insn, self._segments, job.engine, pc)
                self._note(pc, job.engine, body=True)
            pc += 1
        self._machine.finish(job.engine, pc)

    def _cancel(self, job: int, pc: int, number: int, loaded: list[int], waiting: list[int]) -> None:
        point = self._table.get((job, pc))
        if point is None or point.point != number:
            self.unlisted.append(f"CANCEL point={number} at PC {pc} of job {job} is not in the table")
        elif self._selected is None or number in self._selected:
            self._cut(Cut(job, point, loaded=list(loaded), beside=self._beside(job, waiting)))

    def _note(self, pc: int, engine: int, body: bool) -> None:
        insn = self._machine.fetch(self._image.code, pc)
        accesses = effective(insn, self._machine.accesses, self._machine.engines[engine], self._machine.params)
        self.cuts[-1].stretch.append(Executed(insn, pc, engine, body, accesses))


def stale_points(image: Image) -> list[str]:
    """Entries of the table of cancellation points whose PC holds no such CANCEL."""
    wrong = []
    for point in image.meta.cancel_points:
        insn = Machine.fetch(image.code, point.pc)
        if insn.op is not Op.CANCEL or insn["point"] != point.point:
            wrong.append(f"point {point.point} of the table is at PC {point.pc}, where {insn} stands")
    return wrong
