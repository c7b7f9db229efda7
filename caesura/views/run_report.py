"""Reports what ``caesura run`` found, and where its cycles went: one JSON object, or tables."""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from rich.console import Group
from rich.table import Table
from rich.text import Text

from caesura.api import Arrays
from caesura.checks import CheckResult
from caesura.profiles import LayerProfile, Profile
from caesura.views.tables import Column, ColumnTable, not_zero, percent, table_of
from caesura.views.terminal import line
from hw.image import Image
from sim.host import work_of
from sw.runtime import RunStats

_SMALL = 64  #: outputs up to this many elements are given in full

_LAYER_COLUMNS = (
    Column("name", "layer", csv="layer"),
    Column("kind"),
    Column("macs", "MACs", number=True, text=not_zero),
    Column("cycles", number=True, text=not_zero),
    Column("utilisation", number=True, text=lambda share: percent(share or None)),
    Column("engines"),
    Column("nodes"),
    Column("counters"),
)

_PLUMBING = (
    "Cast", "DequantizeLinear", "Flatten", "Identity", "QuantizeLinear", "Reshape", "Squeeze", "Transpose", "Unsqueeze",
)  # fmt: skip

_LEGEND = (
    "Cycles: from the start of a layer's first body to the end of its last. Losses are parts of the layer's share "
    "of the run, gaps before its bodies included, in which the MAC arrays could have done more (mean over the "
    "engines): array = rows, columns or taps without work; overhead = start, drain, ports; dram = MAC waited for "
    "data that LD2 still fetched; activations, weights = for data on the way from LV2; accumulators = for VEC; "
    "issue = MAC was about to start; empty = it had no instruction; prologue, events, turnaround = no body ran. "
    "Busiest: the unit besides MAC that worked longest. VEC waits: for what it waited longest, MAC's sums aside. "
    "Fetch: cycles in which the executor waited for an instruction."
)

_PROFILE_COLUMNS = (
    Column("name", "layer"),
    Column("kind"),
    Column("macs", "MACs", number=True),
    Column("cycles", number=True, text="{:,.0f}".format),
    Column("share", number=True, text="{:,.0f}".format),
    Column("lost", number=True, text="{:,.0f}".format),
    Column("bound", number=True),
    Column("reached", number=True, text=percent),
    Column("losses"),
    Column("busiest"),
    Column("vec_waits", "VEC waits"),
    Column("fetch", number=True, text="{:,.0f}".format),
)


@dataclass(frozen=True)
class Shares:
    """Counts the ``layers`` and ``macs`` that the accelerator and the CPU have."""

    layers: int
    macs: int
    cpu_layers: int
    cpu_macs: int

    @property
    def all_on_cpu(self) -> bool:
        """Return whether the accelerator computes nothing."""
        return not self.layers

    def sentence(self) -> str:
        """Return the shares as a sentence."""
        macs = self.macs + self.cpu_macs
        share = f", {_percent(self.macs, macs)} of MACs" if macs else ""
        return f"{self.layers} of {self.layers + self.cpu_layers} layers on the accelerator{share}"

    def division(self) -> str:
        """Return what is where, as a line to be read before a run."""
        accelerator = f"{_layers(self.layers, self.macs)} on the accelerator"
        return f"{accelerator}, {_layers(self.cpu_layers, self.cpu_macs) if self.cpu_layers else 'none'} on the CPU"

    def to_dict(self) -> dict[str, int]:
        """Return the shares as data for JSON."""
        return vars(self).copy()


@dataclass
class RunReport:
    """Holds everything that one ``caesura run`` found out. ``check`` is None without ``--check``."""

    model: str
    preset: str
    backend: str
    inputs: str  #: where the inputs came from
    outputs: list[Arrays] = field(default_factory=list)  #: per sample
    stats: list[RunStats] = field(default_factory=list)  #: per sample
    host_steps: list[str] = field(default_factory=list)  #: what ran on the CPU and why
    check: CheckResult | None = None
    shares: Shares | None = None  #: of accelerator and CPU
    labels: npt.NDArray[np.int64] | None = None  #: classes of the samples, if the file of the inputs names them

    def to_dict(self) -> dict[str, Any]:
        """Return the report as data for JSON. ``outputs``, ``cycles`` and ``layers`` are those of the first sample."""
        return {
            "model": self.model,
            "preset": self.preset,
            "backend": self.backend,
            "inputs": self.inputs,
            "outputs": {name: describe(value) for name, value in self.outputs[0].items()},
            "cycles": self.stats[0].cycles,
            "latency_cycles": self.stats[0].latency,
            "host_cycles": self.stats[0].host,
            "macs": self.stats[0].macs,
            "utilisation": round(self.stats[0].utilisation, 6),
            "layers": self.layers().without("check").fields(),
            "samples": [
                {"outputs": digest(outputs), "cycles": stats.cycles, "latency_cycles": stats.latency}
                for outputs, stats in zip(self.outputs, self.stats, strict=True)
            ],
            "host_steps": self.host_steps,
            "shares": None if self.shares is None else self.shares.to_dict(),
            "correct": self.correct(),
            "check": None if self.check is None else self.check.to_dict(),
        }

    def layers(self) -> ColumnTable:
        """Return the layers of the first sample as a table, with ``check`` where that was asked for."""
        checked = [Column("check")] if self.check else []
        rows = [
            {
                "name": layer.name,
                "kind": layer.kind,
                "macs": layer.macs,
                "cycles": layer.cycles,
                "utilisation": round(layer.utilisation, 6),
                "engines": list(layer.engines),
                "nodes": list(layer.nodes),
                "counters": layer.counters,
                "check": self.check.verdict_of(layer.name, layer.output, layer.nodes) if self.check else "",
            }
            for layer in self.stats[0].layers
        ]
        return ColumnTable("", [*_LAYER_COLUMNS, *checked], rows)

    def to_csv(self) -> str:
        """Return the layers of the first sample as rows for comma-separated values."""
        return self.layers().without("nodes", "counters").csv()

    def to_tables(self) -> Group:
        """Return the report as tables for a terminal."""
        stats = self.stats[0]
        head = line(f"{self.model} on {self.preset} ({self.backend}), inputs: {self.inputs}")
        tail = line(
            f"{stats.cycles:,} cycles, {stats.macs:,} MACs, utilisation {stats.utilisation:.1%} of the MAC peak; "
            f"{stats.latency:,} cycles with the host's part"
            + (f", of which {stats.host:,} for steps on the CPU" if stats.host else "")
        )
        layers = self.layers().without("engines", "nodes", "counters").rich()
        steps = [line(f"on the CPU: {step}") for step in self.host_steps]
        verdict = [] if self.check is None else [line(self.check.summary(), "green" if self.check.ok else "bold red")]
        return Group(head, layers, *steps, self._output_table(), tail, *self._accuracy(), *self._on_cpu(), *verdict)

    def correct(self) -> int | None:
        """Return how many samples have their largest output at their label, or None without labels, or if that makes no
        sense."""
        first = [next(iter(outputs.values())) for outputs in self.outputs]
        if self.labels is None or any(value.size < 2 or value.size != value.shape[-1] for value in first):
            return None
        return sum(int(value.argmax() == label) for value, label in zip(first, self.labels, strict=True))

    def _accuracy(self) -> list[Text]:
        correct, count = self.correct(), len(self.outputs)
        return [] if correct is None else [line(f"{correct} of {count} correct ({correct / count:.1%}), by the labels")]

    def _on_cpu(self) -> list[Text]:
        """Return how much of the model the accelerator had, if not all."""
        if self.shares is None or not self.shares.cpu_layers:
            return []
        told = self.shares.sentence()
        if self.shares.all_on_cpu and self.check is not None:
            told += "; the check compared onnxruntime with itself"
        return [line(told, "yellow")]

    def _output_table(self) -> Table:
        rows = [
            (
                name, str(list(value.shape)), digest({name: value})[:12],
                " ".join(f"{x:.4g}" for x in value.ravel()[:8]) + (" ..." if value.size > 8 else ""),
            )
            for name, value in self.outputs[0].items()
        ]  # fmt: skip
        return table_of("", ("output", "shape", "sha256", "values"), rows).rich()


def describe(value: npt.NDArray) -> dict[str, Any]:
    """Return dtype, shape, digest and, if there are few, the values of an array."""
    result: dict[str, Any] = {"dtype": str(value.dtype), "shape": list(value.shape), "sha256": digest({"": value})}
    if value.size <= _SMALL:
        result["values"] = value.tolist()
    return result


def digest(arrays: Arrays) -> str:
    """Return the SHA-256 over the bytes of arrays in order."""
    total = hashlib.sha256()
    for value in arrays.values():
        total.update(np.ascontiguousarray(value).tobytes())
    return total.hexdigest()


def shares(image: Image) -> Shares:
    """Return the shares of an image. Nodes that only move or convert data are no layers of the CPU."""
    nodes, macs = 0, 0
    for raw in image.host_models:
        nodes += sum(node.op_type not in _PLUMBING for node in onnx.load_from_string(raw).graph.node)
        macs += work_of(raw).macs
    layers = [image.meta.layers[number] for number in {job.layer for job in image.meta.jobs}]
    return Shares(len(layers), sum(layer.macs for layer in layers), nodes, macs)


def _layers(count: int, macs: int) -> str:
    return f"{count} layer{'s' if count != 1 else ''} with {macs:,} MACs"


def _percent(part: int, whole: int) -> str:
    return f"{math.floor(100 * part / whole)} %" if part < whole else "100 %"


def profile_table(profile: Profile) -> Group:
    """Return a table of the layers, the longest loss first, and the whole run at the end."""
    head = line("\nwhere the MAC cycles went, the longest loss first", "bold", lines=True)
    rows = layer_table(profile.by_loss(), profile.total).without("kind", "macs", "share")
    return Group(head, rows.rich(), line(_LEGEND, "dim"))


def layer_table(layers: Sequence[LayerProfile], total: LayerProfile) -> ColumnTable:
    """Return a table with a row for each of ``layers``, and one for the run."""
    return ColumnTable("", _PROFILE_COLUMNS, [_profile_row(layer) for layer in layers], [_profile_row(total)])


def losses(layer: LayerProfile, limit: float = 0.005) -> str:
    """Return the parts of a layer's share that are losses, the longest first, those below ``limit`` left out: ``dram
    36%, empty 24%``."""
    if not layer.share:
        return ""
    shares = sorted(((layer.parts[part] / layer.share, part) for part in layer.parts if part != "peak"), reverse=True)
    return ", ".join(f"{part} {share:.0%}" for share, part in shares if share >= limit)


def _profile_row(layer: LayerProfile) -> dict[str, Any]:
    unit, share = layer.busiest
    waits = {name: cycles for name, cycles in layer.vec_waits.items() if name != "sums"}
    cause = max(waits, key=lambda name: waits[name])
    bounded = layer.bound.cycles and layer.cycles
    return {
        "name": layer.name,
        "kind": layer.kind,
        "macs": layer.macs,
        "cycles": layer.cycles,
        "share": layer.share,
        "lost": layer.lost,
        "bound": f"{layer.bound.cycles:,.0f} {layer.bound.limit}" if bounded else "",
        "reached": layer.bound.cycles / layer.cycles if bounded else None,
        "losses": losses(layer),
        "busiest": f"{unit} {share:.0%}",
        "vec_waits": f"{cause} {waits[cause] / layer.share:.0%}" if layer.share and waits[cause] else "",
        "fetch": layer.fetch_stalled,
    }
