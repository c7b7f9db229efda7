"""Names the cycles that the machine takes beside the work of instructions, as the accounts of time count them.

One time has up to three readings: what estimates and prices take it for, what bounds do, and what the machine takes.
Those of the first two came to be apart; ``docs/notes/overheads.md`` says by how much, and what it would change to mend
them. ``tests/sim/cost/test_overheads.py`` compares the exact ones with the RTL.
"""

from typing import NamedTuple

from hw.contract import timing
from hw.contract.job import COMPLETION, COUNTERS

UNIT_START = 12  #: typically, from the start of an instruction to its first element, and from its last to its signal
_COPIED = COMPLETION[COUNTERS[0][0]].offset // 4 + len(COUNTERS)  # words of a completion, copied one per cycle


class Overhead(NamedTuple):
    """Is one time in its readings. ``typical`` is 0 where estimates leave it out, ``exact`` is None where it depends on
    what else goes on."""

    typical: int
    worst: int
    exact: int | None


# -- of an instruction ---------------------------------------------------------------------------------------------
ISSUE = Overhead(3, 2, None)  #: from one instruction to the next in the executor; the worst is without the fetch
QUEUE = Overhead(4, 4, timing.QUEUED)  #: from the executor to the head of a unit's queue
GRANT = Overhead(9, 9, 2)  #: from the last signal until the unit sees the command: at worst every unit goes first
#: A copy between scratchpads beside its steps, from its acceptance to its signal.
COPY = Overhead(UNIT_START, 30, timing.COPY_PLANNED + timing.COPY_FETCHED + timing.COPY_LANDED - 1)
#: A MAC beside its blocks, and the ``rows`` cycles in which the first of them is loaded.
MAC = Overhead(UNIT_START, 16, timing.MAC_STARTS + timing.MAC_LANDED - 1)
VEC = Overhead(UNIT_START, 34, timing.VEC_CHECK + 1 + timing.VEC_PIPELINE)  #: a VEC beside parameters and operands
#: From the planner of a load from DRAM until the realigner has its first word, without the latency of the DRAM.
BUS = Overhead(UNIT_START, 40, timing.AXI_STAGE + timing.AXI_RETURN + 1)
VEC_LATENCY = 4  #: at the worst, of a VEC beyond that
COPY_PLAN = 6  #: at the worst, between commands in the planner of a copy unit
#: Typically, of an instruction beside its work: from its dispatch to the first element, and from the last to who waits.
INSN_AROUND = 2 * UNIT_START + QUEUE.typical + GRANT.typical
HIDDEN = 0.05  #: of the time of units, what typically does not overlap with the busiest

# -- of jobs -------------------------------------------------------------------------------------------------------
RETIREMENT = Overhead(0, 120, _COPIED + 4)  #: from a job's end until its completion goes to DRAM
JOB_START = Overhead(0, 100, None)  #: from a stored descriptor to the fetch of its body
POINT = 3  #: at the worst, of a CANCEL in the executor
DRAINED = 20  #: at the worst, from the last signal to HALTED, and what is in a pipeline behind the commands in flight
ABANDON = 20  #: at the worst, from a pause to the abort of a prologue's loads, and from their last data to a free unit

# -- between two layers, typically: the filling and the draining of the units are in it --------------------------------
LAYER_TO_FULL_WORK = 1000.0  #: from the end of one layer to the full work of the next: prices of splits
LAYER_TO_RESULT = 700.0  #: from the end of one layer to the first result of the next: quick prices of regions
LAYER_TO_LOAD = 400  #: from the last result of one layer to the first load of the next: prices of regions
BODY_TO_BODY = _COPIED + 3  #: exactly, from the end of one body to the start of the next, without any work

# -- within a layer, typically -----------------------------------------------------------------------------------------
TILE_START = 64  #: a tile of a pool, beside its arithmetic
SHORT_RUN = 14  #: a run of ``out_channels`` bytes to DRAM, a burst of its own
