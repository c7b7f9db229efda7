"""Proof by poison that an image may be preempted: at each cancellation point (of **Cancellation points**) and before
each job, all on-chip bytes but the declared live ranges are overwritten, and nothing that is read later may change.

The undisturbed run and a disturbed copy advance together from one cut to the next, where a copy is dropped and the
next one made, so the effort is linear in the number of points. At the end of its stretch a copy must agree with the
undisturbed run in DRAM, semaphores and every on-chip byte that the rest of the program reads: what follows is then the
same. The check of the following cut starts from there, so by induction each disturbed run ends with the same results.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from itertools import chain, islice

import numpy as np
import numpy.typing as npt

from hw.contract.spaces import Space
from hw.image.image import Image
from sim.functional.machine import Machine
from sim.functional.state import EngineMemories, FunctionalFault, Segments
from tests.support.check.liveness import first_reader, memories
from tests.support.check.poison import DeclarationError, declared_semaphores, differing, disturb, undeclared
from tests.support.check.stretches import Cut, Orders, Tracer, stale_points
from tests.support.image_runner import HostCall, load, place_segments, put
from tests.support.turns import lagging


@dataclass(frozen=True)
class Finding:
    """Something wrong at ``place``. Kinds: ``table``, ``semaphores``, ``declaration``, ``undeclared`` (bytes that are
    read later lie in no live range), ``lost`` (they were not brought back), ``fault``, and ``result`` (the disturbed
    run goes another way)."""

    place: str
    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.place}: {self.kind}: {self.text}"


@dataclass(frozen=True)
class PointBytes:
    """Bytes declared live at a point, and those of all on-chip memories that are in fact read later."""

    point: int
    dirty: int
    clean: int
    needed: int


@dataclass
class Report:
    """What :func:`check_points` checked and found."""

    model: str
    seed: int
    points: list[PointBytes] = field(default_factory=list)
    jobs: int = 0
    findings: list[Finding] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Nothing was found."""
        return not self.findings

    def __str__(self) -> str:
        head = (
            f"{self.model}: {len(self.points)} points, {self.jobs} job starts, {len(self.findings)} findings "
            f"(seed {self.seed})"
        )
        return "\n".join([head, *map(str, self.findings)])


def check_points(
    image: Image,
    inputs: Mapping[str, npt.NDArray],
    points: Collection[int] | None = None,
    seed: int = 0,
    host: HostCall | None = None,
    lagging_engine: int | None = None,
) -> Report:
    """Check cancellation points (all, or those numbered ``points``) and job starts of one inference.

    ``inputs`` and ``host`` are those of :func:`tests.support.image_runner.run_image`. Bodies run in the order of the
    job table, or, with ``lagging_engine``, those of all other engines run as far ahead of it as events allow. The only
    bytes that are left alone are those that only a job of another engine needs which may be running just then.
    """
    segments = place_segments(image)
    orders = (
        {s.first: lagging(image, s, lagging_engine) for s in image.meta.steps if s.kind == "jobs"}
        if (lagging_engine is not None)
        else {}
    )
    report = Report(image.meta.model, seed)
    tracer = _trace(image, inputs, segments, points, host, orders)
    report.findings += [Finding("table", "table", text) for text in stale_points(image) + tracer.unlisted]
    machine = _machine(image, segments)
    load(machine, image, segments, inputs)
    _Check(machine, image, segments, tracer.cuts, report, np.random.default_rng(seed)).run()
    return report


def _machine(image: Image, segments: Segments) -> Machine:
    """A machine whose DRAM ends with the image, so that copies are small."""
    end = max(base + limit for base, limit in segments[:6])
    return Machine(image.params, np.zeros(end, np.uint8))


def _trace(image, inputs, segments: Segments, points, host: HostCall | None, orders: Orders) -> Tracer:
    machine = _machine(image, segments)
    load(machine, image, segments, inputs)
    tracer = Tracer(machine, image, segments, points)
    tracer.run(host, orders)
    tracer.settle_needs()
    return tracer


class _Check:
    """The undisturbed ``machine`` and, during a stretch, its disturbed copy."""

    def __init__(
        self,
        machine: Machine,
        image: Image,
        segments: Segments,
        cuts: list[Cut],
        report: Report,
        rng: np.random.Generator,
    ) -> None:
        self._machine, self._image, self._segments = machine, image, segments
        self._cuts, self._report, self._rng = cuts, report, rng

    def run(self) -> None:
        """All cuts in order."""
        for number, cut in enumerate(self._cuts):
            copy = self._disturbed(number) if cut.job is not None else None
            for tensor, value in cut.host.items():
                put(self._machine, self._segments, self._image.tensor(tensor), value)
            self._advance(self._machine, cut)
            if copy is not None:
                self._compare(copy, number)

    def _find(self, cut: Cut, kind: str, text: str) -> None:
        self._report.findings.append(Finding(str(cut), kind, text))

    def _disturbed(self, number: int) -> Machine | None:
        """A copy of the machine that was preempted at a cut; None if the declarations cannot be carried out."""
        cut, copy = self._cuts[number], _copy(self._machine)
        self._count(cut)
        try:
            declared = declared_semaphores(cut, self._image.params.semaphores)
            wrong = [i for i, (a, b) in enumerate(zip(declared, cut.semaphores, strict=True)) if a != b]
            for i in wrong:
                self._find(cut, "semaphores", f"semaphore {i} is {cut.semaphores[i]}, declared {declared[i]}")
            disturb(copy, self._image, self._segments, cut, self._rng)
            for memory, odd in undeclared(copy, self._image, self._segments, cut):
                self._find(cut, "undeclared", self._describe(memory, odd, number))
        except DeclarationError as error:
            self._find(cut, "declaration", str(error))
            return None
        except FunctionalFault as error:
            self._find(cut, "fault", f"in the reload: {error}")
            return None
        for memory, odd in differing(self._machine, copy, cut.needs):
            self._find(cut, "lost", self._describe(memory, odd, number))
        return copy

    def _count(self, cut: Cut) -> None:
        if cut.point is None:
            self._report.jobs += 1
            return
        sizes = {True: 0, False: 0}
        for r in cut.point.live:
            sizes[r.dirty] += r.size * (self._image.params.pes if r.space in (Space.LV0_ACT, Space.LV0_WGT) else 1)
        needed = sum(int(np.unpackbits(need).sum()) for need in cut.needs)
        self._report.points.append(PointBytes(cut.point.point, sizes[True], sizes[False], needed))

    def _advance(self, machine: Machine, cut: Cut) -> None:
        for step in cut.stretch:
            run = machine.step if step.body else machine.execute
            run(step.insn, self._segments, step.engine, step.pc)

    def _compare(self, copy: Machine, number: int) -> None:
        """Run the copy through its stretch and compare it with the machine, which stands at the end of it."""
        cut, following = self._cuts[number], self._cuts[number + 1]
        try:
            # Parameters of VEC that were lost may be any numbers.
            with np.errstate(over="ignore", invalid="ignore"):
                self._advance(copy, cut)
        except FunctionalFault as error:
            self._find(cut, "fault", f"after the point: {error}")
            return
        if [e.semaphores for e in copy.engines] != [e.semaphores for e in self._machine.engines]:
            self._find(cut, "result", f"semaphores differ at {following}")
        if not np.array_equal(copy.dram, self._machine.dram):
            self._find(cut, "result", self._dram_difference(copy))
        for memory, odd in differing(self._machine, copy, following.needs):
            self._find(cut, "result", f"at {following} differ {self._describe(memory, odd, number + 1)}")

    def _dram_difference(self, copy: Machine) -> str:
        odd = np.flatnonzero(copy.dram != self._machine.dram)
        for number, (base, limit) in enumerate(self._segments[:6]):
            if base <= odd[0] < base + limit:
                return f"{odd.size} bytes of DRAM differ, the first at {odd[0] - base} of segment {number}"
        return f"{odd.size} bytes of DRAM differ, the first at {odd[0]}"

    def _describe(self, number: int, odd: npt.NDArray[np.int64], cut: int) -> str:
        memory = next(islice(memories(self._machine), number, None))
        first = int(odd[0])
        reader = first_reader(chain.from_iterable(c.stretch for c in self._cuts[cut:]), memory, first)
        by = f", read by {reader.insn.op.name} at PC {reader.pc}" if reader else ""
        where = memory.name if memory.engine < 0 else f"{memory.name} of engine {memory.engine}"
        return f"{odd.size} bytes of {where} from {first} to {int(odd[-1])}{by}"


def _copy(machine: Machine) -> Machine:
    """The same state again; DRAM included."""
    copy = Machine(machine.params, machine.dram.copy())
    copy.lv2 = machine.lv2.copy()
    copy.engines = [
        EngineMemories(e.lv1.copy(), e.act.copy(), e.wgt.copy(), e.acc.copy(), list(e.semaphores))
        for e in machine.engines
    ]
    return copy
