"""Job descriptors, completions and fault codes are what the host and an engine exchange through DRAM rings.

Each engine reads descriptors from its job ring and writes one completion per job to its completion ring.
Ring indices are free-running 32-bit counts; entry i lives at slot i modulo the ring size.
"""

import enum

from hw.contract.formats import PARAMETERS
from hw.contract.isa import SEGMENTS
from hw.contract.layout import Member, Record, consecutive


class Fault(enum.IntEnum):
    """An engine stops for one of these reasons, which stands in the completion and in its FAULT registers."""

    NONE = 0
    ILLEGAL = 1  #: opcode, reserved bits, a zero count, or a field the unit cannot execute
    LIMIT = 2  #: an address beyond its segment or memory
    SEMAPHORE_OVERFLOW = 3  #: a semaphore was signalled above its largest count
    SEMAPHORE_UNDERFLOW = 4  #: a semaphore was taken below zero
    SEMAPHORE_RESIDUE = 5  #: a semaphore was not zero at END
    BUS = 6  #: AXI error response
    CYCLE_LIMIT = 7  #: the body ran longer than the descriptor allows
    DESCRIPTOR = 8  #: the job descriptor itself is invalid


class FaultUnit(enum.IntEnum):
    """One of these parts of the engine reports a fault; the first seven are ``hw.contract.isa.Unit``."""

    LD2 = 0
    ST2 = 1
    LD1 = 2
    ST1 = 3
    LD0 = 4
    MAC = 5
    VEC = 6
    LOADER = 8  #: sequencer of prologues
    EXECUTOR = 9  #: sequencer of bodies
    RING = 10  #: descriptor fetch and completion write


class JobFlag(enum.IntFlag):
    """These are the bits of ``flags`` in a job descriptor."""

    PROLOGUE = 1  #: there is a prologue at ``prologue_pc``
    INTERRUPT = 2  #: raise the completion interrupt when the job retires
    WAIT0 = 4  #: wait for event ``wait0_id`` to reach ``wait0_value`` before the body starts
    WAIT1 = 8  #: the same for ``wait1``
    SIGNAL = 16  #: add one to event ``signal_id`` when the job retires
    RESUME = 32  #: the body goes on after a cancellation point: semaphores start at ``sem0``... instead of zero
    PARAMS = 64  #: instructions of the body may name ``param0``...; without it such an instruction is ILLEGAL


JOB_MAGIC = 0xCA5E
SEMAPHORES = 32  #: semaphores an instruction can name

JOB = Record(
    "job", 256,
    (
        Member("magic", 0, 2, "`JOB_MAGIC`; anything else is a DESCRIPTOR fault"),
        Member("flags", 2, 2, "`JobFlag` bits"),
        Member("job_id", 4, 4, "chosen by the driver, returned in the completion"),
        Member("body_pc", 8, 4, "first instruction of the body, counted in instructions in segment 0"),
        Member("prologue_pc", 12, 4, "first instruction of the prologue"),
        Member("cycle_limit", 16, 4, "most cycles the body may take; 0 = no limit"),
        Member("window_after", 20, 2, "the prologue starts when the job this many places earlier in the ring "
                                      "has retired; 0 = at once"),
        Member("wait0_id", 22, 1, "event"),
        Member("wait1_id", 23, 1, "event"),
        Member("wait0_value", 24, 4, "the event counter must have reached this (modulo 2^32, signed distance)"),
        Member("wait1_value", 28, 4, "likewise"),
        Member("signal_id", 32, 1, "event"),
        Member("tag", 36, 4, "free for the driver (model, layer)"),
        *consecutive(64, 1, ((f"sem{i}", f"first count of semaphore {i} (RESUME)") for i in range(SEMAPHORES))),
        *consecutive(96, 4, ((f"param{i}", f"parameter {i} (PARAMS)") for i in range(PARAMETERS))),
        *(m for i in range(SEGMENTS) for m in (
            Member(f"base{i}", 128 + 16 * i, 8, f"segment {i}: first byte in DRAM (0-5) or LV2 (6, 7)"),
            Member(f"limit{i}", 136 + 16 * i, 4, f"segment {i}: size in bytes"),
        )),
    ),
)  # fmt: skip

_DMA = (
    ("bytes", "bytes read from the source"),
    ("busy", "cycles with an instruction in progress"),
    ("stalled", "busy cycles in which the source or destination held data up"),
    (
        "occupancy",
        "high-water mark in the destination: last byte written + 1 (LV2, DRAM: within the segment). It does not say "
        "how full the memory is: what has been freed since is known to software alone (`Device.lv2_use`)",
    ),
)
_COMPUTE = (
    ("busy", "cycles with an instruction in progress"),
    ("active", "cycles in which the datapath accepted an operand"),
    ("stalled", "busy cycles lost to memory ports"),
)

SEMAPHORE_CLASSES = 4  #: waiting cycles are counted by the number of the missing semaphore modulo this


def _missing(unit: str) -> tuple[tuple[str, str], ...]:
    """Return the counters that say, by class, where the waiting cycles of ``unit`` went; they add up to the whole."""
    what = f"of {unit}_waiting: a missing semaphore's number modulo {SEMAPHORE_CLASSES} was"
    rest = ("", *[", and none lower"] * (SEMAPHORE_CLASSES - 1))
    return tuple((f"{unit}_missing{c}", f"{what} {c}{rest[c]}") for c in range(SEMAPHORE_CLASSES))


#: What the sequencers count of a body, by one a cycle at most: ``hw/control/engine_control.py`` says of each when.
SEQUENCER_COUNTERS = (
    ("mac_empty", "cycles of the body with nothing queued for MAC"),
    ("instructions", "instructions of the body issued"),
    ("fetch_stalled", "cycles the executor waited for an instruction"),
)
#: Per-job counters, 32 bits each, in the order of completion words and COUNTER registers.
COUNTERS = (
    *((f"prologue_{n}", f"LD2 in the prologue: {d}") for n, d in _DMA),
    *((f"{u}_{n}", f"{u.upper()}: {d}") for u in ("ld2", "st2", "ld1", "st1", "ld0") for n, d in _DMA),
    *((f"{u}_{n}", f"{u.upper()}: {d}") for u in ("mac", "vec") for n, d in _COMPUTE),
    ("mac_waiting", "cycles in which MAC was idle and the head of its queue missed a semaphore"),
    ("vec_waiting", "the same for VEC"),
    *SEQUENCER_COUNTERS,
    (
        "mac_starved",
        "of mac_waiting: a missing semaphore's number was even (by convention: it stands for data) while LD2 worked "
        "and neither LD1 nor LD0 did; these cycles are not in mac_missing0 to 3",
    ),
    *_missing("mac"),
    *_missing("vec"),
)

COMPLETION = Record(
    "completion", 256,
    (
        Member("job_id", 0, 4, "from the descriptor"),
        Member("status", 4, 1, "`Fault`; 0 = success"),
        Member("unit", 5, 1, "`FaultUnit` that reported the fault"),
        Member("index", 8, 4, "ring index of the job"),
        Member("pc", 12, 4, "PC of the faulting instruction"),
        Member("address", 16, 4, "faulting address: offset in the segment or memory"),
        Member("tag", 20, 4, "from the descriptor"),
        Member("prologue_start", 24, 8, "global cycle count when the prologue started (0: none)"),
        Member("prologue_end", 32, 8, "when the last prologue load had landed"),
        Member("start", 40, 8, "when the body started"),
        Member("end", 48, 8, "when the body had drained"),
        *consecutive(64, 4, COUNTERS),
    ),
)  # fmt: skip
