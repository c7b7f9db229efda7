"""Holds the constants of the hardware's pipelines and queues, each stated once.

The RTL is built with those that shape it, and the fast model takes the others for what the RTL does: all are exact.
Bounds and estimates read the same numbers; what these take in place of exact ones is in ``sim/cost/overheads.py``. They
are cycles unless the comment says otherwise.
"""

# -- instruction fetch ---------------------------------------------------------------------------------------------
FETCH_AHEAD = 16  #: instructions buffered or on their way: hides 256 cycles of latency at one per 16 cycles
FETCH_BURST_BYTES = 256  #: longest fetch burst, if the bus allows it

# -- executor and unit queues --------------------------------------------------------------------------------------
SLOT_RESOLVED = 2  #: for each parameter that an instruction names, between decode and dispatch
QUEUED = 2  #: from dispatch to the head of an empty unit queue
UNIT_IN_FLIGHT = 4  #: commands that a unit may have accepted without having finished them

# -- units -----------------------------------------------------------------------------------------------------------
RUNS_AHEAD = 8  #: runs between a scratchpad source and the realigner; covers the latency of one-word runs
WORDS_BEHIND = 8  #: words a store announces a burst ahead of its first data, so that bursts follow without a gap
WORDS_AHEAD = 8  #: words a scratchpad source fetches ahead; 5 cover request, response and queue

COPY_PLANNED = 5  #: from the acceptance of a copy until its first run leaves the planner
COPY_ASKED = 2  #: from there to the request for its first word at a scratchpad
COPY_FETCHED = 5  #: from the planner to the first word from a scratchpad at the realigner
COPY_FILLED = 2  #: the same where the run reads nothing
COPY_LANDED = 3  #: from a step of the realigner to the signal that it was the last
MAC_STARTS = 1  #: from the acceptance of a MAC to its first weight
MAC_LANDED = 8  #: from the last pixel to the signal
TABLE_ROW_BYTES = 8  #: bytes of its table that a lane takes per cycle
VEC_CHECK = 2  #: from the acceptance of a VEC to its first parameter
VEC_PIPELINE = 14  #: from the last operand to the signal
VEC_RAW_PIPELINE = 4  #: the same for RAW
VEC_RECORD = 1  #: what the record of a row takes beyond, besides a cycle for each doubling of the lanes

# -- ends ------------------------------------------------------------------------------------------------------------

JOB_READ = 6  #: from a job that the loader hands over until its body may be fetched
JOB_EVENTS = 3  #: from the start of a fetch to a job that may begin, without a wait for an event
RESTORED = 5  #: semaphores of a job that goes on, or parameters
PARAMETERS_TOO = 4  #: parameters behind semaphores
STUCK_CYCLES = 16  #: how long nothing may be able to move before it counts as a deadlock
SETTLED = 4  #: cycles of silence before a unit or an engine is reset, or an aborted job has ended

# -- buses -----------------------------------------------------------------------------------------------------------
AXI_STAGE = 1  #: from a client's request to the address at the memory
AXI_RETURN = 2  #: from a beat at the memory until its client has it
WRITE_BUFFERED = 4  #: from a client's request to its first word in the buffer of the memory
DRAM_QUEUED = 3  #: from an address at the memory until its burst may be served
FETCH_STARTS = 2  #: from the start of a fetch to its first request
FETCH_BUFFERED = 3  #: from the last word of an instruction at the memory's client until it is whole

# -- the host's registers --------------------------------------------------------------------------------------------
REGISTER_TOUCHED = 3  #: from the beginning of an access until the register is read or written
REGISTER_ACCESS = 7  #: a whole access
COUNTER_READ = 2  #: what the read of a counter takes beyond

# -- the DRAM controller in front of the chip ------------------------------------------------------------------------
DRAM_WRITE_BEATS = 32  #: words of write data the controller buffers
DRAM_QUEUE_BURSTS = 16  #: requests of each direction the controller looks ahead

# -- resets ----------------------------------------------------------------------------------------------------------
#: After so many cycles an engine reset that waits for the memory is HUNG: more than any burst takes with the slowest
#: latency that the parameters allow.
RESET_PATIENCE = 1 << 17
