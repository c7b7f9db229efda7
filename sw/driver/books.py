"""Which jobs are queued on which engine, and the results of those that ended."""

from collections.abc import Callable
from dataclasses import dataclass

from hw.contract.image import CancelPoint
from hw.contract.job import COUNTERS
from sw.driver.errors import DriverError
from sw.driver.loaded import LoadedModel
from sw.driver.suspension import QueuedJob


@dataclass(frozen=True)
class JobResult:
    """One job that ran: times are the SoC's global cycle count, ``counters`` those of ``hw.contract.job.COUNTERS``."""

    model: LoadedModel
    job: int  #: index in the image's job table
    engine: int
    prologue_start: int  #: 0 without a prologue
    prologue_end: int
    start: int
    end: int
    counters: dict[str, int]
    resumed: bool = False  #: the job was preempted; times and counters cover what came after


@dataclass(frozen=True)
class Submitted:
    """A job that has not finished. ``point``: it was queued again behind this cancellation point."""

    model: LoadedModel
    job: int
    engine: int
    point: CancelPoint | None = None


class Books:
    """The jobs of one device. ``outstanding``: those queued on engines; ``finished``: results nobody has collected;
    both by job id."""

    def __init__(self) -> None:
        self.outstanding: dict[int, Submitted] = {}
        self.finished: dict[int, JobResult] = {}
        self._next_id = 1

    def new_id(self) -> int:
        """A job id that was not used lately."""
        job_id = self._next_id
        self._next_id = self._next_id % 0xFFFFFFFF + 1
        return job_id

    def enter(self, model: LoadedModel, job: int, engine: int) -> int:
        """A job that is about to be queued; returns its id."""
        job_id = self.new_id()
        self.outstanding[job_id] = Submitted(model, job, engine)
        return job_id

    def finish(self, engine: int, entry: dict[str, int]) -> None:
        """A job retired; ``entry``: members of its ``hw.contract.job.COMPLETION``."""
        known = self.outstanding.pop(entry["job_id"], None)
        if known is None:
            raise DriverError(f"engine {engine}: completion of job id {entry['job_id']}, which is not outstanding")
        times = {name: entry[name] for name in ("prologue_start", "prologue_end", "start", "end")}
        counters = {name: entry[name] for name, _ in COUNTERS}
        resumed = known.point is not None
        self.finished[entry["job_id"]] = JobResult(
            known.model, known.job, engine, counters=counters, resumed=resumed, **times
        )

    def withdraw(self, job_id: int) -> Submitted:
        """Take a queued job off the books: its engine was emptied and its task keeps it."""
        return self.outstanding.pop(job_id)

    def readmit(self, job: QueuedJob, engine: int, point: CancelPoint | None) -> None:
        """Put a withdrawn job back: it was queued again, behind ``point`` if its body had begun."""
        self.outstanding[job.job_id] = Submitted(job.model, job.job, engine, point)

    def drop(self, which: Callable[[Submitted], bool]) -> None:
        """Forget outstanding jobs that are lost."""
        self.outstanding = {i: entry for i, entry in self.outstanding.items() if not which(entry)}

    def forget_results(self, model: LoadedModel) -> None:
        """Forget results of ``model`` that nobody has collected."""
        self.finished = {i: result for i, result in self.finished.items() if result.model is not model}

    def engines_of(self, model: LoadedModel) -> list[int]:
        """Engines with jobs of ``model``."""
        return sorted({entry.engine for entry in self.outstanding.values() if entry.model is model})

    def conflicts(self, model: LoadedModel) -> bool:
        """Whether an outstanding job is of ``model`` or uses the same bytes of LV2."""
        return any(entry.model is model or entry.model.overlaps(model) for entry in self.outstanding.values())

    def holder(self, model: LoadedModel, job: int) -> tuple[int, Submitted] | None:
        """Id and record of the outstanding job that uses the weight window of ``job``."""
        before = model.predecessors[job]
        if before is None:
            return None
        found = (item for item in self.outstanding.items() if item[1].model is model and item[1].job == before)
        return next(found, None)
