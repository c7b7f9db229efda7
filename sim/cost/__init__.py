"""Keeps one account of time: what instructions, programs, regions and inferences take, typically and at the worst."""

from sim.cost.backlog import Counts, issued
from sim.cost.bound import set_bounds, worst_intervals
from sim.cost.dram import WorstDram, moved, tile_load_cycles
from sim.cost.overheads import HIDDEN, LAYER_TO_FULL_WORK, LAYER_TO_LOAD, LAYER_TO_RESULT, SHORT_RUN, TILE_START
from sim.cost.prediction import Prediction, inference
from sim.cost.region_time import RegionMember, side_by_side_cycles
from sim.cost.rivals import Others, Rivals
from sim.cost.schedule import QueuedTasks
from sim.cost.shapes import MacShape, VecShape, essence
from sim.cost.units import contended_cycles, insn_cycles, overlapped, work_cycles

__all__ = [
    "HIDDEN",
    "LAYER_TO_FULL_WORK",
    "LAYER_TO_LOAD",
    "LAYER_TO_RESULT",
    "SHORT_RUN",
    "TILE_START",
    "Counts",
    "MacShape",
    "Others",
    "Prediction",
    "QueuedTasks",
    "RegionMember",
    "Rivals",
    "VecShape",
    "WorstDram",
    "contended_cycles",
    "essence",
    "inference",
    "insn_cycles",
    "issued",
    "moved",
    "overlapped",
    "set_bounds",
    "side_by_side_cycles",
    "tile_load_cycles",
    "work_cycles",
    "worst_intervals",
]
