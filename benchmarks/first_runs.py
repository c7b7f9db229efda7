"""How long the run time expects layers to take that it has never seen: rows of ``caesura bench scheduling``.

Each network runs for the first time on a device on which the others have run before. What was expected of its layers
when they were decided on is compared with what they took.
"""

import re
from collections.abc import Iterable
from functools import partial
from itertools import chain
from statistics import median
from typing import NamedTuple

import numpy as np

import caesura
from benchmarks.figures import Figure, Measured, Target
from benchmarks.lab import Lab
from benchmarks.workloads import inputs, workload
from hw.contract.params import SocParams
from hw.image import Image
from sim import open_simulator
from sw.driver import Device
from sw.runtime import Durations, MeasuredLayer, Runtime, Session, past_of, reference
from sw.runtime.policies import LayerCost

NETWORKS = (
    "resnet50", "mobilenetv2", "squeezenet", "squeezenet1_0", "inception", "densenet", "shufflenet", "bert_tiny",
    "vit_tiny",
)  # fmt: skip
BACKEND = "model"


def figures() -> list[Figure]:
    """Return the rows, measured on the fast model of ``base``: of networks that use both engines, and of networks on
    one of eight."""
    target, base = Target(10, 5, at_most=True), caesura.resolve("base")
    eight = base.replace(engines=8)
    return [
        Figure("first_run_duration_error", target, partial(_error, params=base, engines=2)),
        Figure("first_run_duration_error_one_engine", target, partial(_error, params=eight, engines=1)),
    ]


class Errors(NamedTuple):
    """Holds how far off the durations of a layer were, in percent of what they were: of compute, of memory access, and
    of both together. Memory access is 0 where there was none."""

    compute: float
    access: float
    both: float

    @classmethod
    def of(cls, cost: LayerCost, took: Durations) -> "Errors":
        """Return the errors of what was expected of a layer that took time."""
        access = took.load + took.stream
        compute_off, access_off = abs(cost.compute - took.compute), abs(cost.load - access)
        both = (compute_off + access_off) / (took.compute + access)
        return cls(100 * compute_off / took.compute, 100 * access_off / access if access else 0.0, 100 * both)


class FirstRun(NamedTuple):
    """Holds the errors of the layers of a network, or of the parts of layers that are decided on one by one, what was
    measured of its layers, and whether its outputs are those of a run without a scheduler."""

    errors: list[Errors]
    layers: list[MeasuredLayer]
    correct: bool


def _error(lab: Lab, params: SocParams, engines: int) -> Measured:
    """Return the median error over the layers of all networks, beside that of a device that knows no network."""
    images = {name: caesura.compile(workload(name), params, engines=engines) for name in NETWORKS}
    blind = {name: first_run(image, name) for name, image in images.items()}
    taught = {}
    for name in NETWORKS:
        lab.progress.task(f"{name} after the others")
        others = chain(*(run.layers for other, run in blind.items() if family(other) != family(name)))
        taught[name] = first_run(images[name], name, others)
    known, unknown = _medians(taught.values()), _medians(blind.values())
    detail = {
        "measured_on": f"{BACKEND}, base with {params.engines} engines, each network on {engines}",
        "compute": round(known.compute, 2), "memory_access": round(known.access, 2),
        "without_other_networks": {name: round(value, 2) for name, value in unknown._asdict().items()},
        "networks": {name: round(_medians([run]).both, 2) for name, run in taught.items()},
    }  # fmt: skip
    return Measured(known.both, all(run.correct for run in [*blind.values(), *taught.values()]), detail)


def family(name: str) -> str:
    """Return the name of a network without its version: networks of one family have layers in common."""
    return re.sub(r"\d+_\d+$", "", name)


def first_run(image: Image, name: str, known: Iterable[MeasuredLayer] = ()) -> FirstRun:
    """Return how the workload ``name`` runs on a device that has measured the layers ``known`` and not its own."""
    for layer in image.meta.layers:
        layer.measured_load = layer.measured_compute = layer.measured_stream = None
    device = Device(open_simulator(image.params, BACKEND))
    model, feed = device.load(image), inputs(name)
    past_of(device).add(known)
    runtime = Runtime(device, history=None)
    request = runtime.submit(model, feed)
    outputs = request.result()
    alone, _ = Session(device, model).run(feed)
    took = [(run.decision.cost, reference.longest(run.results)) for run in runtime.groups]
    device.close()
    errors = [Errors.of(cost, each) for cost, each in took if each.compute]
    correct = all(np.array_equal(alone[name], value) for name, value in outputs.items())
    return FirstRun(errors, MeasuredLayer.all_of(image), correct)


def _medians(runs: Iterable[FirstRun]) -> Errors:
    return Errors(*map(median, zip(*(errors for run in runs for errors in run.errors), strict=True)))
