"""``caesura bench simspeed``: how fast the RTL is simulated, and what that costs to begin with.

Ratios come from one run of ResNet-50 that several simulators of the same netlist execute in turn, slice by slice, so
they hold although the machine's speed varies. Wall time is that of one inference by itself, from writing the input to
reading the output; the simulator was built and the model compiled before.
"""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from functools import cache, partial
from typing import NamedTuple

import numpy as np

import caesura
from benchmarks.figures import Figure, Measured, NotAvailableError, Target
from benchmarks.lab import ALONE, Lab, Run
from benchmarks.race import RaceBus
from benchmarks.verilator import installed, open_verilator
from benchmarks.workloads import inputs, workload
from compiler import golden
from sim.rtl import RtlBus, SimTop, design_digest, open_bus
from sim.toolchain import BuildError

NETWORK = "resnet50"
_BUILD = "import sys, hw.contract.params, sim.rtl; sim.rtl.open_bus(hw.contract.params.preset(sys.argv[1])).close()"


def figures() -> list[Figure]:
    """Return all rows, in the order of the report."""
    seconds = partial(Target, unit="CPU s", at_most=True)
    return [
        Figure("native_over_cxxrtl", Target(12.5, 14, "x"), partial(_ratio, rival="cxxrtl")),
        Figure("native_over_verilator", Target(2.5, 4, "x"), partial(_ratio, rival="verilator")),
        Figure("resnet50_seconds", Target(40, 25, "s", at_most=True), _seconds),
        Figure("cycles_per_second", Target(250_000, 400_000, "cycles/s"), _rate),
        Figure("cold_build_tiny", seconds(30, 15), partial(_cold_build, preset="tiny")),
        Figure("cold_build_base", seconds(90, 45), partial(_cold_build, preset="base")),
    ]


class _Race(NamedTuple):
    """Ratios of seconds to those of ``native``, of each slice, by rival. ``equal``: all outputs equal onnxruntime's."""

    ratios: dict[str, list[float]]
    equal: bool
    cycles: int


@cache
def _race(params: caesura.SocParams) -> _Race:
    """Return all that can be opened, in one run. Different cycles or answers raise ``DisagreementError``."""
    buses: dict[str, RtlBus] = {"native": open_bus(params, "native"), "cxxrtl": open_bus(params, "cxxrtl")}
    if installed():
        buses["verilator"] = _verilator(params)
    path, feed = workload(NETWORK), inputs(NETWORK)
    bus = RaceBus(buses)
    with caesura.Device(bus) as device:
        model = device.load(caesura.compile(path, params, options=ALONE))
        bus.restart()
        begin = bus.cycle
        outputs, _ = model.run(feed)
        cycles = bus.cycle - begin
    expected = golden.golden_outputs(path, feed)
    equal = all(np.array_equal(value, outputs[name]) for name, value in expected.items())
    rivals = [name for name in buses if name != "native"]
    return _Race({name: [s[name] / s["native"] for s in bus.slices] for name in rivals}, equal, cycles)


def _verilator(params: caesura.SocParams) -> RtlBus:
    def make() -> SimTop:
        from hw import Soc

        return SimTop(params, Soc(params))

    return open_verilator(params, make, caesura.HostCosts(), source=design_digest(params))


def _ratio(lab: Lab, rival: str) -> Measured:
    race = _race(lab.params)
    if rival not in race.ratios:
        raise NotAvailableError(f"{rival} is not installed: pip install {rival}")
    ratios = race.ratios[rival]
    detail = {
        "workload": NETWORK,
        "counted": f"median over {len(ratios)} slices of one run that the simulators execute in turn",
        "least": round(min(ratios), 3),
        "most": round(max(ratios), 3),
        "simulated_cycles": race.cycles,
        "outputs": "all outputs equal onnxruntime's" if race.equal else "outputs differ from onnxruntime's",
    }
    return Measured(statistics.median(ratios), race.equal, detail)


def _seconds(lab: Lab) -> Measured:
    run = lab.run(NETWORK)
    return Measured(run.wall_seconds, run.correct, _detail(run))


def _rate(lab: Lab) -> Measured:
    run = lab.run(NETWORK)
    return Measured(run.simulated / run.wall_seconds, run.correct, _detail(run))


def _detail(run: Run) -> dict[str, object]:
    return {
        "workload": run.workload,
        "counted": "one inference, from writing the input to reading the output; the simulator was built before",
        "seconds": round(run.wall_seconds, 3),
        "simulated_cycles": run.simulated,
        "accelerator_cycles": run.stats.cycles,
        "outputs": run.verdict,
    }


def _cold_build(lab: Lab, preset: str) -> Measured:
    """Open the default backend in a process of its own, with an empty cache folder."""
    with tempfile.TemporaryDirectory(prefix="caesura-") as folder:
        before = _children()
        command = [sys.executable, "-c", _BUILD, preset]
        done = subprocess.run(
            command, env={**os.environ, "XDG_CACHE_HOME": folder}, capture_output=True, text=True, check=False
        )
    if done.returncode:
        raise BuildError(f"the simulator of {preset} could not be built: {done.stderr.strip()[-500:]}")
    detail = {"counted": "CPU time of all processes, from an empty cache folder to an open device"}
    return Measured(_children() - before, True, detail)


def _children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
