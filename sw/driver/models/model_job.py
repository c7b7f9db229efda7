"""Holds a job of a loaded model, and what it says when it has ended."""

from dataclasses import dataclass

from hw.contract.job import COUNTERS
from sw.driver.models.loaded_model import LoadedModel
from sw.driver.queues.job import DeviceJob, DramTraffic


@dataclass(frozen=True)
class JobResult:
    """Says how one job ran: times are the SoC's global cycle count, ``counters`` those of
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


@dataclass(eq=False, kw_only=True)
class ModelJob(DeviceJob):
    """Is a job of a loaded model, number ``index`` in the table of its image. ``result`` is what it says once it is
    DONE."""

    model: LoadedModel
    index: int
    result: JobResult | None = None

    def retire(self, completion: dict[str, int]) -> None:
        """Keep what the completion of the job says."""
        times = {name: completion[name] for name in ("prologue_start", "prologue_end", "start", "end")}
        counters = {name: completion[name] for name, _ in COUNTERS}
        resumed = self.point is not None
        self.result = JobResult(self.model, self.index, self.engine, counters=counters, resumed=resumed, **times)

    def __str__(self) -> str:
        return self.model.describe_job(self.index)
