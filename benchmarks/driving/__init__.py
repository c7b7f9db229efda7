"""Perception and planning of a car, the worked example of **Cancellation points**: as a schedule and on the RTL.

``latencies(device)`` measures what ``schedule(way)`` calculates.
"""

from benchmarks.driving.frames import Run, latencies, run
from benchmarks.driving.pipeline import Pipeline, Workload, prepare
from benchmarks.driving.schedule import WAYS, Schedule, Slot, Times, Way, schedule

__all__ = [
    "WAYS",
    "Pipeline",
    "Run",
    "Schedule",
    "Slot",
    "Times",
    "Way",
    "Workload",
    "latencies",
    "prepare",
    "run",
    "schedule",
]
