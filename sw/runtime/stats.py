"""Tells where the cycles of an inference went: per layer and in total, from the jobs' completions."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hw.contract.html_table import html_table
from hw.contract.job import COUNTERS
from hw.contract.params import SocParams
from hw.image import Image, LayerInfo
from sw.driver import DramTraffic, JobResult
from sw.runtime.stats_plot import plot_layers


@dataclass(frozen=True)
class LayerStats:
    """Describes one layer. ``start``/``end``: global cycle count of its bodies; ``counters``: sums over its jobs,
    high-water marks (``*_occupancy``) their maximum. A layer without jobs (free, or on the CPU) has no cycles."""

    name: str
    kind: str
    output: str  #: ONNX name of the tensor it computes
    macs: int = 0
    start: int = 0
    end: int = 0
    engines: tuple[int, ...] = ()
    utilisation: float = 0.0  #: of the MAC peak of the engines it used, 0..1
    counters: dict[str, int] = field(default_factory=dict)
    nodes: tuple[str, ...] = ()  #: names of the ONNX nodes it stands for

    @property
    def cycles(self) -> int:
        """Return the cycles from the start of the layer's first body to the end of its last."""
        return self.end - self.start

    @property
    def traffic(self) -> DramTraffic | None:
        """Return what the layer's jobs moved between DRAM and LV2, or None without jobs."""
        return DramTraffic.of(self.counters) if self.counters else None


@dataclass(frozen=True)
class StepOnCpu:
    """Is a step of a model that the CPU computed from cycle ``begin`` to ``end``; ``reason`` says why it did."""

    outputs: tuple[str, ...]
    reason: str
    begin: int
    end: int


@dataclass(frozen=True)
class RunStats:
    """Describes one inference. ``cycles``: first prologue or body to last end, on the accelerator; ``latency``: the
    host's view from cycle ``begin`` on, with everything ``hw.contract.bus.HostCosts`` charges; ``on_cpu``: of that, the
    steps that the CPU computed."""

    cycles: int
    latency: int
    macs: int
    utilisation: float  #: of the MAC peak of all engines used, over ``cycles``, 0..1
    layers: list[LayerStats]
    jobs: list[JobResult]
    begin: int = 0
    on_cpu: tuple[StepOnCpu, ...] = ()

    def __repr__(self) -> str:
        """Return in a line what an inference took; its fields have all of it."""
        cpu = f", {self.host:,} cycles on the CPU" if self.host else ""
        return f"<RunStats: {self.cycles:,} cycles, {self.utilisation:.1%} of the MAC peak{cpu}>"

    def _repr_html_(self) -> str:
        """Return a table of the layers, as notebooks show it."""
        ran = [one for one in self.layers if one.engines]
        rows = [(one.name, one.kind, one.macs, one.cycles, f"{one.utilisation:.1%}") for one in ran]
        return html_table(self, ("layer", "kind", "MACs", "cycles", "utilisation"), rows)

    def to_pandas(self) -> Any:
        """Return a ``pandas.DataFrame`` with a row for each layer that had jobs. Raises ``ImportError`` that says what
        to install."""
        try:
            import pandas
        except ImportError:
            raise ImportError("RunStats.to_pandas needs pandas: pip install pandas") from None
        names = ("name", "kind", "output", "macs", "start", "end", "cycles", "engines", "utilisation")
        rows = [{name: getattr(one, name) for name in names} | one.counters for one in self.layers if one.engines]
        return pandas.DataFrame(rows)

    def plot(self, axes: Any = None) -> Any:
        """Draw when each layer ran, in ``axes`` or a figure of its own, and return the ``matplotlib.axes.Axes``. Raises
        ``ImportError`` that says what to install."""
        return plot_layers(self, axes)

    @property
    def host(self) -> int:
        """Return the cycles of the steps on the CPU."""
        return sum(step.end - step.begin for step in self.on_cpu)


def run_stats(
    image: Image, params: SocParams, jobs: Sequence[JobResult], begin: int, latency: int,
    on_cpu: Sequence[StepOnCpu] = (),
) -> RunStats:  # fmt: skip
    """Return statistics of one inference of ``image`` from the results of its jobs, and of its steps on the CPU."""
    mine: dict[int, list[JobResult]] = {}
    for job in jobs:
        mine.setdefault(image.meta.jobs[job.job].layer, []).append(job)
    peak = params.macs // params.engines
    layers = [_layer_stats(info, mine.get(index, []), peak) for index, info in enumerate(image.meta.layers)]
    first = min((job.prologue_start or job.start for job in jobs), default=0)
    cycles = max((job.end for job in jobs), default=0) - first
    macs = sum(layer.macs for layer in layers if layer.engines)
    engines = {job.engine for job in jobs}
    used = _utilisation(macs, peak * len(engines) * cycles)
    return RunStats(cycles, latency, macs, used, layers, list(jobs), begin, tuple(on_cpu))


def _layer_stats(info: LayerInfo, mine: Sequence[JobResult], peak: int) -> LayerStats:
    if not mine:
        return LayerStats(info.name, info.kind, info.output, info.macs, nodes=tuple(info.nodes))
    start, end = min(job.start for job in mine), max(job.end for job in mine)
    engines = tuple(sorted({job.engine for job in mine}))
    return LayerStats(
        info.name, info.kind, info.output, info.macs, start, end, engines,
        _utilisation(info.macs, peak * len(engines) * (end - start)), _total_counters(mine), tuple(info.nodes),
    )  # fmt: skip


def _utilisation(macs: int, most: int) -> float:
    return macs / most if most else 0.0


def _total_counters(jobs: Sequence[JobResult]) -> dict[str, int]:
    total = {}
    for name, _ in COUNTERS:
        values = [job.counters[name] for job in jobs]
        total[name] = max(values) if name.endswith("_occupancy") else sum(values)
    return total
