"""Serves loads on the fast model without data, and measures how each tenant fares."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import mean
from typing import Any

import caesura
from benchmarks.loads import building
from benchmarks.loads.load import Load, Loop
from caesura.scenario import Frame, LayerRun, Outcome, Policies, RtlRunner, Scenario, report, times_alone
from hw.contract.bus import Progress
from hw.contract.params import MIB, SocParams
from sim.model import ModelBus
from sw.runtime import metrics

HERE = Path(__file__).parent
PERCENTILES = (50, 95, 99)
#: DRAM that the weights of all tenants of a whole load need: ten networks in DISB D.
WHOLE_DRAM = 1024 * MIB
PREEMPTION = {"dump": 0, "restore": 0, "interval": 1}  #: turns it on; costs are those of the machine


def timed(params: SocParams, backend: str, progress: Progress) -> caesura.Device:
    """Return a device on the fast model that has no data: outputs are not those of an inference."""
    return caesura.Device(ModelBus(params, data=False, progress=progress))


def machine(params: SocParams, *, whole: bool, preemptive: bool = True) -> dict[str, Any]:
    """Return the machine of a load as a scenario has it. Whole networks get the DRAM that they need."""
    fields = {name: value for name, value in params.to_dict().items() if name != "name"}
    if whole:
        fields["dram_bytes"] = max(WHOLE_DRAM, params.dram_bytes)
    return {"params": fields, "preemption": PREEMPTION if preemptive else None}


@dataclass(frozen=True)
class ServedLoad:
    """A load that was served. ``alone``: cycles of a request of each tenant that meets nobody. Times are in cycles."""

    load: Load
    scenario: Scenario
    outcome: Outcome
    alone: Mapping[str, float]
    params: SocParams

    @cached_property
    def figures(self) -> dict[str, Any]:
        """Return the metrics of scenarios; their definitions stand in ``sw.runtime.metrics``."""
        alone = {stream.name: self.alone[stream.name] for stream in self.scenario.streams}
        return report(self.scenario, self.load.policy, "model", self.outcome, alone)

    @property
    def dilation(self) -> float:
        """Return by how much the published times were stretched."""
        return self.load.dilation(building.alone_of_networks(self.load, self.alone))

    @property
    def urgent(self) -> list[Frame]:
        """Return the requests of the tenants above the load's lowest priority."""
        lowest = min(tenant.priority for tenant in self.load.tenants)
        names = {tenant.name for tenant in self.load.tenants if tenant.priority > lowest}
        return [frame for frame in self.outcome.frames if frame.stream in names]

    def against_alone(self, percent: float, alone: Mapping[str, float] | None = None) -> float:
        """Return a percentile of what urgent requests take, as a multiple of what they take ``alone``: by default of
        what the same image takes."""
        alone = self.alone if alone is None else alone
        return metrics.percentile([frame.turnaround / alone[frame.stream] for frame in self.urgent], percent)

    def cycles(self, percent: float) -> float:
        """Return a percentile of the cycles from the arrival of an urgent request to its end."""
        return metrics.percentile([frame.turnaround for frame in self.urgent], percent)

    @property
    def fairness_by_priority(self) -> float:
        """Return the smallest progress of a tenant over its priority, divided by the largest: 1 is fair. So the
        publications of PREMA and MoCA weigh it, told from memory; priorities count from 1."""
        lowest = min(tenant.priority for tenant in self.load.tenants)
        progress: dict[str, list[float]] = {tenant.name: [] for tenant in self.load.tenants}
        for frame in self.outcome.frames:
            progress[frame.stream].append(self.alone[frame.stream] / frame.turnaround)
        weighed = [mean(progress[one.name]) / (one.priority - lowest + 1) for one in self.load.tenants]
        return min(weighed) / max(weighed)

    @property
    def in_time(self) -> int:
        """Return how many requests ended by their deadlines; those without one count."""
        return sum(frame.deadline is None or frame.end <= frame.deadline for frame in self.outcome.frames)

    def late_start(self, percent: float) -> float:
        """Return a percentile of the cycles from the arrival of an urgent request to its first layer's start."""
        waits = [min((run.start for run in self._layers(f)), default=math.nan) - f.arrival for f in self.urgent]
        return metrics.percentile(waits, percent)

    @property
    def kept(self) -> float:
        """Return how much of the time that urgent requests leave the others use, in percent.

        What they did until the last urgent request ended counts as long as it takes alone; the time is that until then,
        less what the urgent requests take alone. A request that was under way counts by the share of its layers that
        had ended.
        """
        urgent = self.urgent
        mine = {frame.stream for frame in urgent}
        end, begin = max(frame.end for frame in urgent), min(frame.arrival for frame in self.outcome.frames)
        done = sum(
            self._share(frame, end) * self.alone[frame.stream]
            for frame in self.outcome.frames
            if frame.stream not in mine and frame.arrival < end
        )
        return 100 * done / (end - begin - sum(self.alone[frame.stream] for frame in urgent))

    def _share(self, frame: Frame, end: float) -> float:
        if frame.end <= end:
            return 1.0
        layers = self._layers(frame)
        return sum(run.end <= end for run in layers) / len(layers)

    def _layers(self, frame: Frame) -> list[LayerRun]:
        """Return the layers of a tenant that ran while ``frame`` was there."""
        runs = self._runs[frame.stream]
        return [run for run in runs if frame.arrival < run.end <= frame.end and frame.arrival <= run.decided]

    @cached_property
    def _runs(self) -> dict[str, list[LayerRun]]:
        found: dict[str, list[LayerRun]] = {tenant.name: [] for tenant in self.load.tenants}
        for run in self.outcome.layers:
            found[run.stream].append(run)
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return what a row says beside its value."""
        figures = self.figures
        detail = {
            "measured_on": f"fast model without data, {self.params.name}",
            "dram_bytes": self.scenario.machine.params["dram_bytes"],
            "policy": self.load.policy,
            "dilation": round(self.dilation, 3),
            "requests": len(self.outcome.frames),
            **{key: round(figures[key], 4) for key in ("antt", "stp", "fairness", "sla_violation_rate")},
            "preemptions": figures["preemptions"],
        }
        if self.urgent:
            detail["urgent_requests"] = len(self.urgent)
            detail["urgent_against_same_image_alone"] = {f"p{p}": round(self.against_alone(p), 4) for p in PERCENTILES}
            detail["urgent_start_cycles"] = {f"p{p}": round(self.late_start(p)) for p in PERCENTILES}
            if Loop() in [tenant.pattern for tenant in self.load.tenants] and len(self.urgent) < len(
                self.outcome.frames
            ):
                detail["others_keep_percent"] = round(self.kept, 2)
        return {**detail, "published": self.load.published.to_dict()}


class Server:
    """Serves loads on one machine. Images are compiled once.

    ``whole``: networks in full size instead of narrow ones of small images.
    """

    def __init__(
        self, params: SocParams, *, whole: bool = False, backend: str = "model",
        open_device: Callable[[SocParams, str, Progress], caesura.Device] | None = timed,
    ) -> None:  # fmt: skip
        self.params, self.whole = params, whole
        self.runner = RtlRunner(backend, open_device=open_device)

    def alone(self, load: Load) -> dict[str, float]:
        """Return the cycles of a request of each tenant that meets nobody, with all models of the load on the
        device."""
        single = building.one_by_one(load, machine(self.params, whole=self.whole), whole=self.whole)
        outcome = self.runner.run(single, Policies.named("fcfs"), HERE)
        return {frame.stream: frame.turnaround for frame in outcome.frames}

    def alone_on_the_machine(self, load: Load) -> dict[str, float]:
        """Return the cycles of a request of each urgent tenant with nobody else on the device, whose image has all of
        LV2."""
        lowest = min(tenant.priority for tenant in load.tenants)
        single = building.one_by_one(load, machine(self.params, whole=self.whole), whole=self.whole)
        urgent = {tenant.name for tenant in load.tenants if tenant.priority > lowest}
        wanted = [stream for stream in single.streams if stream.name in urgent]
        return times_alone(self.runner, single.model_copy(update={"streams": wanted}), HERE).streams

    def serve(
        self, load: Load, alone: Mapping[str, float], requests: int, *, preemptive: bool = True,
        policy: str | None = None, seed: int = 0, undisturbed: bool = False,
    ) -> ServedLoad:  # fmt: skip
        """Serve ``load``; ``undisturbed``: without the tenants of the lowest priority."""
        chosen = machine(self.params, whole=self.whole, preemptive=preemptive)
        scenario = building.scenario(load, chosen, alone, requests, whole=self.whole, seed=seed)
        if undisturbed:
            lowest = min(tenant.priority for tenant in load.tenants)
            scenario = building.without(scenario, {s.name for s in scenario.streams if s.priority == lowest})
        outcome = self.runner.run(scenario, Policies.named(policy or load.policy), HERE)
        return ServedLoad(load, scenario, outcome, alone, self.params)
