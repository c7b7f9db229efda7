"""Tells what a run time and its device do at this moment: engines and their queues, LV2, requests.

It is what driver and run time know already, from registers that they have read and from the counters of completions:
nothing is read for it, so a look costs the device no cycle and changes nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass

from sw.driver import DeviceJob, LoadedModel
from sw.driver.queues.engine_queue import EngineQueue
from sw.runtime.request import Request, State
from sw.runtime.request_runner import RequestRunner

Names = Callable[[LoadedModel], str]


def name_of(model: LoadedModel) -> str:
    """Return the name of a model."""
    return model.name


@dataclass(frozen=True)
class EngineNow:
    """Describes an engine. ``job``: the oldest in its queue, as text, which runs or is next; ``queued``: jobs whose
    completion was not taken; ``computing`` and ``loading``: cycles in bodies and in prologues, of layers that have
    ended."""

    number: int
    model: str
    job: str
    queued: int
    computing: int
    loading: int


@dataclass(frozen=True)
class RequestNow:
    """Describes a request that has not ended. ``waits``: cycles since it arrived; ``windows``: bytes of LV2 that its
    model claims, once it has started; ``dumped``: bytes of a suspended one that have a copy in DRAM; ``to_dump``: those
    that lie on chip alone."""

    number: int
    model: str
    tenant: str | None
    priority: int
    state: State
    progress: float
    waits: int
    engines: tuple[int, ...]
    windows: int
    dumped: int = 0
    to_dump: int = 0


@dataclass(frozen=True)
class Snapshot:
    """Describes a moment. ``lv2``: all bytes of LV2; ``claimed``: of these, by loaded models, whether they run or not;
    ``moving``: whether a dump or a restore is under way; ``switches``: how often running requests gave way so far."""

    cycle: int
    engines: tuple[EngineNow, ...]
    requests: tuple[RequestNow, ...]
    lv2: int
    claimed: int
    moving: bool
    switches: int

    def count(self, state: State) -> int:
        """Return how many requests are in ``state``."""
        return sum(request.state is state for request in self.requests)


def take_snapshot(runtime: RequestRunner, names: Names = name_of) -> Snapshot:
    """Return what ``runtime`` does now, requests that have started first. ``names`` is what models are called. A
    request that has not arrived yet is none of them."""
    device, now = runtime.device, runtime.device.bus.cycle
    arrived = [r for r in runtime.requests if not r.done() and r.arrival <= now]
    requests = sorted(arrived, key=lambda request: (request.state is State.WAITING, -request.priority, request.number))
    return Snapshot(
        now,
        tuple(_engine(runtime, queue, names) for queue in device.engines),
        tuple(_request(runtime, request, now, names) for request in requests),
        device.params.lv2_bytes,
        device.params.lv2_bytes - device.lv2.free_bytes,
        device.transferring,
        runtime.switches,
    )


def _engine(runtime: RequestRunner, queue: EngineQueue, names: Names) -> EngineNow:
    jobs, busy = queue.unfinished, runtime.measured
    number = queue.number
    whose = ", ".join(names(model) for model in jobs[0].models) if jobs else ""
    what = _job(jobs[0]) if jobs else ""
    return EngineNow(
        number, whose, what, len(jobs), busy.compute_busy.get(number, 0), busy.load_busy.get(number, 0)
    )  # fmt: skip


def _job(job: DeviceJob) -> str:
    if not job.of_image:
        return job.party.describe(job).partition(", for ")[0]  # whose it is stands beside it
    meta = job.model.image.meta
    return meta.layers[meta.jobs[job.index].layer].name


def _request(runtime: RequestRunner, request: Request, now: int, names: Names) -> RequestNow:
    model, waiting = request.model, request.state is State.WAITING
    claims = 0 if waiting else sum(end - begin for begin, end in model.windows())
    dumped, kept = _dirty(runtime, request) if request.state is State.SUSPENDED else (0, 0)
    progress = 0.0 if waiting else request.progress
    engines = () if waiting else tuple(model.engines)
    return RequestNow(
        request.number, names(model), request.tenant, request.priority, request.state, progress,
        now - request.arrival, engines, claims, dumped, kept,
    )  # fmt: skip


def _dirty(runtime: RequestRunner, request: Request) -> tuple[int, int]:
    """Return how many bytes of a suspended request have a copy in DRAM, and how many have none."""
    mine = [r for task in runtime.device.suspensions for r in task.dirty if r.model is request.model]
    return sum(r.size for r in mine if r.copy is not None), sum(r.size for r in mine if r.copy is None)
