"""Constants of the hardware's pipelines and queues, each stated once.

The RTL is built with those that shape it; bounds, estimates and orders read the same numbers. They are cycles unless
the comment says otherwise.
"""

# -- instruction fetch ---------------------------------------------------------------------------------------------
FETCH_AHEAD = 16  #: instructions buffered or on their way: hides 256 cycles of latency at one per 16 cycles
FETCH_BURST_BYTES = 256  #: longest fetch burst, if the bus allows it

# -- executor and unit queues --------------------------------------------------------------------------------------
ISSUE = 2  #: an instruction in the executor
ISSUE_SPACING = 3  #: from one instruction to the next with the hand-over from fetch, as estimates assume it
POINT = 3  #: a CANCEL in the executor
TO_HEAD = 4  #: from the executor to the head of a unit's queue
GRANT = 9  #: from the last signal until the unit sees the command: every unit may be granted first
UNIT_IN_FLIGHT = 4  #: commands that a unit may have accepted without having finished them
MAC_IN_FLIGHT = 2  #: MAC works on one and knows the next
VEC_IN_FLIGHT = 1  #: VEC takes one at a time

# -- units -----------------------------------------------------------------------------------------------------------
UNIT_START = 12  #: typical, from the start of an instruction to its first element, and from its last to its signal
RUNS_AHEAD = 8  #: runs between a scratchpad source and the realigner; covers the latency of one-word runs
WORDS_AHEAD = 8  #: words a scratchpad source fetches ahead; 5 cover request, response and queue

# -- ends ------------------------------------------------------------------------------------------------------------
DRAINED = 20  #: from the last signal to HALTED, and the rest of what is in a pipeline behind the commands in flight
ABANDON = 20  #: from a pause to the abort of the loads of a prologue, and from their last data to a unit that is reset
RETIRED = 120  #: from a job's end until its completion goes to DRAM

# -- the DRAM controller in front of the chip ------------------------------------------------------------------------
DRAM_QUEUE_BURSTS = 16  #: requests of each direction the controller looks ahead
