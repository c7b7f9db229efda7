"""Keeps which jobs are queued on which engine, and the results of those that ended."""

from collections.abc import Container, Iterable
from dataclasses import dataclass

from hw.contract.image import CancelPoint
from hw.contract.job import COUNTERS
from sw.driver.models.loaded_model import LoadedModel
from sw.driver.models.traffic import DramTraffic


@dataclass(frozen=True)
class JobResult:
    """Describes one job that ran: times are the SoC's global cycle count, ``counters`` those of
    ``hw.contract.job.COUNTERS``."""

    model: LoadedModel
    job: int  #: index in the image's job table
    engine: int
    prologue_start: int  #: 0 without a prologue
    prologue_end: int
    start: int
    end: int
    counters: dict[str, int]
    resumed: bool = False  #: the job was preempted; times and counters cover what came after

    @property
    def traffic(self) -> DramTraffic:
        """Return what the job moved between DRAM and LV2."""
        return DramTraffic.of(self.counters)


@dataclass(frozen=True)
class SubmittedJob:
    """Describes a job that has not finished. ``point``: it was queued again behind this cancellation point."""

    model: LoadedModel
    job: int
    engine: int
    point: CancelPoint | None = None


class JobTable:
    """Holds the jobs of all loaded models of one device.

    ``outstanding``: those queued on engines; ``finished``: results that nobody has collected; both by job id.
    """

    def __init__(self) -> None:
        self.outstanding: dict[int, SubmittedJob] = {}
        self.finished: dict[int, JobResult] = {}

    def enter(self, job_id: int, model: LoadedModel, job: int, engine: int, point: CancelPoint | None = None) -> None:
        """Note a job that is about to be queued; ``point``: it continues behind this cancellation point."""
        self.outstanding[job_id] = SubmittedJob(model, job, engine, point)

    def finish(self, engine: int, entry: dict[str, int]) -> None:
        """Turn a job that retired into a result. ``entry``: members of its ``hw.contract.job.COMPLETION``."""
        known = self.outstanding.pop(entry["job_id"])
        times = {name: entry[name] for name in ("prologue_start", "prologue_end", "start", "end")}
        counters = {name: entry[name] for name, _ in COUNTERS}
        resumed = known.point is not None
        self.finished[entry["job_id"]] = JobResult(
            known.model, known.job, engine, counters=counters, resumed=resumed, **times
        )

    def remove(self, job_ids: Iterable[int]) -> None:
        """Forget outstanding jobs: they are lost, or were taken off their engine."""
        for job_id in job_ids:
            del self.outstanding[job_id]

    def forget_results(self, model: LoadedModel) -> None:
        """Forget results of ``model`` that nobody has collected."""
        self.finished = {i: result for i, result in self.finished.items() if result.model is not model}

    def models(self, engines: Container[int] | None = None) -> list[LoadedModel]:
        """Return the models with outstanding jobs, on ``engines`` or on any."""
        entries = (e for e in self.outstanding.values() if engines is None or e.engine in engines)
        return list({id(entry.model): entry.model for entry in entries}.values())

    def engines_of(self, model: LoadedModel) -> list[int]:
        """Return the engines with outstanding jobs of ``model``."""
        return sorted({entry.engine for entry in self.outstanding.values() if entry.model is model})

    def queued(self, model: LoadedModel) -> set[int]:
        """Return the outstanding jobs of ``model``, by index in its table."""
        return {entry.job for entry in self.outstanding.values() if entry.model is model}

    def conflicts(self, model: LoadedModel) -> bool:
        """Return whether an outstanding job is of ``model`` or uses the same bytes of LV2."""
        return any(entry.model is model or entry.model.overlaps(model) for entry in self.outstanding.values())

    def window_holder(self, model: LoadedModel, job: int, engine: int) -> tuple[int, SubmittedJob] | None:
        """Return id and record of the latest outstanding job that uses the weight window of ``job``, which comes to
        ``engine``, or None if there is none. Engines of a placed model have windows of their own."""
        if model.placed:
            mine = [item for item in self.outstanding.items() if item[1].model is model and item[1].engine == engine]
            others = (item for item in reversed(mine) if item[1].job != job)
            return next((item for item in others if _share_window(model, item[1].job, job)), None)
        before = model.predecessors[job]
        if before is None:
            return None
        found = (item for item in self.outstanding.items() if item[1].model is model and item[1].job == before)
        return next(found, None)


def _share_window(model: LoadedModel, a: int, b: int) -> bool:
    """Return whether two jobs use common bytes of their engine's ring of weight windows."""
    (first, size), (second, length) = (model.image.meta.jobs[job].window for job in (a, b))
    return first < second + length and second < first + size
