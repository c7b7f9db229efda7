"""Perception and planning of a car, the worked example of **Cancellation points**: as a schedule and on the RTL.

``latencies(device)`` measures what ``schedule(way)`` calculates.
"""

from benchmarks.driving.frames import FramesRun, latencies, run
from benchmarks.driving.pipeline import Pipeline, Workload, prepare
from benchmarks.driving.schedule import WAYS, FrameSchedule, Slot, Times, Way, schedule

__all__ = [
    "WAYS",
    "FrameSchedule",
    "FramesRun",
    "Pipeline",
    "Slot",
    "Times",
    "Way",
    "Workload",
    "latencies",
    "prepare",
    "run",
    "schedule",
]
