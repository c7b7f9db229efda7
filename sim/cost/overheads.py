"""Names the cycles that the machine takes beside the work of instructions, as the accounts of time count them.

Each account came to its own, and those between layers differ, as some hold the filling and the draining of the units,
too. ``tests/sim/cost/test_overheads.py`` compares them with what the RTL takes.
"""

from hw.contract.timing import GRANT, TO_HEAD, UNIT_START

# -- between two layers ------------------------------------------------------------------------------------------------
LAYER_TO_FULL_WORK = 1000.0  #: from the end of one layer to the full work of the next: prices of splits
LAYER_TO_RESULT = 700.0  #: from the end of one layer to the first result of the next: quick prices of regions
LAYER_TO_LOAD = 400  #: from the last result of one layer to the first load of the next: prices of regions

# -- within a layer, typically -----------------------------------------------------------------------------------------
TILE_START = 64  #: a tile of a pool, beside its arithmetic
SHORT_RUN = 14  #: a run of ``out_channels`` bytes to DRAM, a burst of its own
#: Of an instruction beside its work: from its dispatch to the first element, and from the last to who waits for it.
INSN_AROUND = 2 * UNIT_START + TO_HEAD + GRANT
HIDDEN = 0.05  #: of the time of units, what does not overlap with the busiest

# -- instructions at the worst -----------------------------------------------------------------------------------------
BUS_LATENCY = 40  #: from the start of a copy from or to DRAM to its first word, without the DRAM
COPY_PLAN = 6  #: between commands in the planner of a copy unit
COPY_LATENCY = 30  #: from a scratchpad copy's start to its first word, and from its last to its signal
MAC_LATENCY = 16  #: from the last pixel to the signal
VEC_FIXED = 34  #: check, pipeline, last write
VEC_LATENCY = 4  #: beyond, until the signal
