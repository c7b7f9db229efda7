"""The driving scenario end to end on the compiled RTL: a row of ``caesura bench scheduling``."""

from functools import partial

import caesura
from benchmarks import driving
from benchmarks.figures import Figure, Measured, Target
from benchmarks.lab import Lab
from sim import DEFAULT_BACKEND
from sw.runtime import Mechanism, Runtime, Situation

FRAMES = 5
PRESET = "tiny"  #: where planning is nearer to 10 units than on ``base``


def figures() -> list[Figure]:
    """Return one row, measured on the compiled RTL, whatever preset was asked for."""
    return [Figure("rtl_driving_end_to_end", Target(67, 56, "units", at_most=True), _end_to_end)]


def _end_to_end(lab: Lab) -> Measured:
    """From the start of a frame's perception to the end of its planning, frames back to back, in units in which
    perception alone takes 30 and parsing 15: the slowest frame.

    From the second frame on perception also waits for the planning of the frame before, so one accelerator cannot be
    below 30 + 10 + 15 + 10. The first frame shows what is left without that. As in the published schedule, the end of
    parsing is known ahead, so that the engine can be free by then.
    """
    with caesura.open(PRESET) as device:
        prepared = driving.prepare(device.driver)
        pipeline = driving.Pipeline(prepared, FRAMES)
        runtime = Runtime(device.driver, "idle_time", preemptive=True, rule=_dump, on_end=pipeline.ended)
        pipeline.run(partial(runtime.submit, announced=True), runtime.run_until_done)
        frames, equal = pipeline.latencies(), pipeline.equal()
    detail = {
        "measured_on": f"{DEFAULT_BACKEND}, {PRESET}",
        "policy": "idle_time",
        "frames": [round(units, 2) for units in frames],
        "first_frame": round(frames[0], 2),
        "planning_units": round(prepared.planning_units, 2),
        "cycles_per_unit": round(prepared.unit),
        "preemptions": runtime.switches,
    }
    return Measured(max(frames), equal, detail)


def _dump(situation: Situation) -> Mechanism:
    return Mechanism.DUMP
