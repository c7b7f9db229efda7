"""How late the pause for an urgent arrival is sent, whenever it comes: a row of ``caesura bench preemption``.

The driving networks (:mod:`benchmarks.driving`) on one engine, at the default costs of the host: planning arrives
in each run of perception, unannounced, one phase of it later from run to run.
"""

from collections.abc import Iterable

import numpy as np

import caesura
from benchmarks import driving
from benchmarks.driving import models
from benchmarks.driving.pipeline import cycle_of
from benchmarks.figures import Figure, Measured, Target
from benchmarks.lab import Lab
from sw.runtime import Mechanism, Runtime

PRESET, BACKEND = "tiny", "model"
PHASES = 1000


def figures() -> list[Figure]:
    """Return one row, measured on the fast model, whatever backend was asked for."""
    return [Figure("pause_after_arrival", Target(2000, 1500, "cycles", at_most=True), _worst)]


class Arrivals:
    """Runs perception on a device once for each arrival of planning."""

    def __init__(self, device: caesura.Device) -> None:
        self._device = device.driver
        self._workload = driving.prepare(self._device)
        self._camera = models.camera(0)
        self._seen = self._workload.expected(self._workload.perception, 0, self._camera)
        self._map = models.parse(self._seen["scores"])
        self.equal = True  #: every output of perception is that of an undisturbed run
        self.cycles = self._alone()

    def _alone(self) -> int:
        """Return the cycles of perception by itself."""
        begin = self._device.bus.cycle
        request = Runtime(self._device).submit(self._workload.perception, self._camera)
        request.result()
        return cycle_of(request.ended) - begin

    def delay(self, phase: int) -> int | None:
        """Return the cycles from the arrival of planning, ``phase`` cycles after that of perception, until the pause is
        sent; None if perception has ended before."""
        runtime = Runtime(self._device, "idle_time", preemptive=True, rule=lambda situation: Mechanism.DUMP)
        arrival = self._device.bus.cycle + phase
        perceived = runtime.submit(self._workload.perception, self._camera)
        planned = runtime.submit(self._workload.planning, self._map, priority=1, arrival=arrival)
        runtime.run_until_done()
        found = perceived.result()
        planned.result()
        self.equal &= all(np.array_equal(value, found[name]) for name, value in self._seen.items())
        return next((span.begin - arrival for span in runtime.spans() if span.kind == "pause"), None)

    def delays(self, phases: Iterable[int]) -> dict[int, int]:
        """Those of ``phases`` at which a pause was sent."""
        found = {phase: self.delay(phase) for phase in phases}
        return {phase: delay for phase, delay in found.items() if delay is not None}


def _worst(lab: Lab) -> Measured:
    with caesura.open(PRESET, BACKEND) as device:
        arrivals = Arrivals(device)
        delays = arrivals.delays(arrivals.cycles * i // PHASES for i in range(PHASES))
    times, worst = sorted(delays.values()), max(delays, key=lambda phase: delays[phase])
    detail = {
        "measured_on": f"{BACKEND}, {PRESET}",
        "phases": PHASES,
        "pauses": len(delays),
        "cycles_of_perception": arrivals.cycles,
        "median": times[len(times) // 2],
        "p99": times[len(times) * 99 // 100],
        "worst_phase": worst,
    }
    return Measured(delays[worst], arrivals.equal, detail)
