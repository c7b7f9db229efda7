"""Compares an interval of a load on the RTL with the same on the fast model, on which the loads are measured."""

from collections.abc import Mapping
from statistics import mean

from benchmarks.figures import Measured
from benchmarks.lab import Lab
from benchmarks.loads import disb
from benchmarks.loads.serving import ServedLoad, Server
from sim import DEFAULT_BACKEND

REQUESTS = 2  #: urgent ones in the interval


def measure(lab: Lab) -> Measured:
    """Return by how many percent the two differ at most: in the cycles from the first arrival to the last end, or in
    what a tenant's requests take on average. On the RTL outputs must be those of the models alone."""
    load = disb.loads()[0]
    model, rtl = Server(lab.params), Server(lab.params, backend=DEFAULT_BACKEND, open_device=None)
    alone = model.alone(load)
    expected, found = (_cycles(server.serve(load, alone, REQUESTS)) for server in (model, rtl))
    errors = {name: round(100 * (expected[name] / cycles - 1), 3) for name, cycles in found.items()}
    detail = {
        "measured_on": f"{DEFAULT_BACKEND} and fast model without data, {lab.params.name}",
        "load": load.name,
        "rtl_cycles": found,
        "errors_percent": errors,
    }
    return Measured(max(map(abs, errors.values())), not rtl.runner.mismatches, detail)


def _cycles(served: ServedLoad) -> Mapping[str, int]:
    """Return the cycles of the interval, and the mean of each tenant."""
    frames = served.outcome.frames
    means = {name: round(mean(frame.turnaround for frame in frames if frame.stream == name)) for name in served.alone}
    return {"interval": round(served.outcome.makespan), **means}
