"""Defines the signatures between the parts of an engine's control, each named after what passes, and the records they
carry."""

from amaranth.hdl import Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.contract.isa import SEGMENTS, Unit
from hw.contract.job import JOB, SEMAPHORES
from hw.contract.params import SocParams
from hw.interfaces import ADDR, COMMAND, FAULT, PC

HEADER_WORDS = 16  #: 64-bit words of a descriptor before the segment table
HEADER_BITS = 4

SEGMENT = data.StructLayout({"base": ADDR, "limit": ADDR})

#: Why a job failed, as its completion tells it.
JOB_FAULT = data.StructLayout({"code": 8, "unit": 8, "pc": PC, "addr": ADDR})


class RamRead(wiring.Signature):
    """Carries reads of a local RAM, seen from the reader: ``data`` follows ``addr`` one cycle later."""

    def __init__(self, addr_width: int, shape) -> None:
        super().__init__({"addr": Out(addr_width), "data": In(shape)})


class HeaderRead(RamRead):
    """Reads 64-bit word ``addr[:HEADER_BITS]`` of the descriptor in slot ``addr[HEADER_BITS:]``."""

    def __init__(self, params: SocParams) -> None:
        super().__init__(params.job_slot_bits + HEADER_BITS, 64)


class SegmentRead(RamRead):
    """Reads segment ``addr[:3]`` of the descriptor in slot ``addr[3:]``."""

    def __init__(self, params: SocParams) -> None:
        super().__init__(params.job_slot_bits + (SEGMENTS - 1).bit_length(), SEGMENT)


def word_of(name: str) -> int:
    """Return the number of the 64-bit word of a descriptor that holds member ``name``."""
    return JOB[name].offset // 8


def member(word: Value, name: str) -> Value:
    """Return the bits of member ``name`` within its 64-bit word."""
    low = JOB[name].offset % 8 * 8
    return word[low : low + 8 * JOB[name].size]


EVENT_BITS = 6  #: bits of an event number
SEMAPHORE_GROUP = 8  #: semaphores that are set at a time, one byte each

#: What a unit does in this cycle (``mon_*`` and ``busy`` of its ``UnitPort``).
ACTIVITY = data.StructLayout({"bytes": 8, "busy": 1, "active": 1, "stalled": 1, "extent": ADDR, "extent_valid": 1})

#: What the executor needs to know of a job.
JOB_INFO = data.StructLayout(
    {
        "job_id": 32, "tag": 32, "flags": 16, "cycle_limit": 32, "signal_id": EVENT_BITS,
        "failed": 1,  # the loader reports a fault: there is no body to run
    }
)  # fmt: skip

#: A job that has ended; ``index`` is that of the current job at all times.
ENDED = data.StructLayout({"index": 32, "job": JOB_INFO, "fault": JOB_FAULT, "start": 64, "end": 64})


class Slots(wiring.Signature):
    """Reads the job slots, seen from the sequencer that reads: the header, and two segments at a time."""

    def __init__(self, params: SocParams) -> None:
        super().__init__(
            {"header": Out(HeaderRead(params)), "src": Out(SegmentRead(params)), "dst": Out(SegmentRead(params))}
        )


class StoredJobs(wiring.Signature):
    """Tells the loader what the ring has: ``count`` descriptors are here and valid; the next is ``bad`` for the reason
    ``bad_code``."""

    def __init__(self) -> None:
        super().__init__({"count": Out(32), "bad": Out(1), "bad_code": Out(8)})


class LoadedJobs(wiring.Signature):
    """Tells the executor what the loader has done.

    * ``count``: jobs handed over. ``failed`` (level): the next cannot run, ``fault`` tells why.
    * ``resting``: the loader is held, between two instructions, with nothing in the LD2 unit.
    """

    def __init__(self) -> None:
        super().__init__({"count": Out(32), "failed": Out(1), "fault": Out(JOB_FAULT), "resting": Out(1)})


class EndedJob(wiring.Signature):
    """Tells the retirer which job the executor has ended.

    * ``valid``: ``info`` describes a job that has ended, and it and the counters hold still until ``copied``. Only
      while ``free``.
    * ``failed`` (level): a completion could not be written; nothing more is taken.
    """

    def __init__(self) -> None:
        super().__init__({"info": Out(ENDED), "valid": Out(1), "free": In(1), "copied": In(1), "failed": In(1)})


class EventWait(wiring.Signature):
    """Asks to be told of an event, seen from who waits: while ``request`` is set with stable ``id`` and ``value``,
    ``reached`` pulses when the counter is at or past the value (modulo 2^32, signed distance)."""

    def __init__(self) -> None:
        super().__init__({"request": Out(1), "id": Out(EVENT_BITS), "value": Out(32), "reached": In(1)})


class EventPort(wiring.Signature):
    """Gives an engine access to the events: ``signal`` is a stream of event numbers, each of which adds one."""

    def __init__(self) -> None:
        super().__init__({"signal": Out(stream.Signature(EVENT_BITS)), "wait": Out(EventWait())})


class Dispatch(wiring.Signature):
    """Hands commands from the executor to the unit queues: ``command`` goes to the unit whose bit of ``push`` is set,
    once its ``ready`` is."""

    def __init__(self) -> None:
        super().__init__({"command": Out(COMMAND), "push": Out(len(Unit)), "ready": In(len(Unit))})


class SemaphoreSetup(wiring.Signature):
    """Lets the executor ``clear`` all semaphores, or ``load`` the eight of ``group`` with the bytes of ``counts``.
    ``nonzero``: those above zero."""

    def __init__(self, params: SocParams) -> None:
        groups = SEMAPHORES // SEMAPHORE_GROUP
        super().__init__(
            {
                "clear": Out(1),
                "load": Out(1),
                "group": Out(range(groups)),
                "counts": Out(8 * SEMAPHORE_GROUP),
                "nonzero": In(params.semaphores),
            }
        )


class ExecutorStatus(wiring.Signature):
    """Tells the registers what the executor does.

    * ``state``: ``EngineState``. ``in_job``: HALTED at a cancellation point.
    * ``point``, ``pc``: the last CANCEL's number, and the PC after it. ``next_pc``: of the next instruction.
    * ``halted``: a pulse in the cycle after the engine halted; ``cycle``: when it halted last.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "state": Out(4),
                "in_job": Out(1),
                "halted": Out(1),
                "point": Out(16),
                "pc": Out(PC),
                "next_pc": Out(PC),
                "cycle": Out(64),
            }
        )


class PrologueLoads(wiring.Signature):
    """Hands commands from the loader to the LD2 unit that it shares with the body.

    * ``cmd``, ``done``, ``fault``, ``fault_info``: as in ``UnitPort``, for the loader's commands alone.
    * ``active``: its commands are in the unit; ``activity``: what the unit does. ``present``: they are in the unit, on
      offer to it, or being taken out.
    * ``abandon``: take them out and reset the unit; they are never done, and a fault that comes later is dropped.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "cmd": Out(stream.Signature(COMMAND)),
                "done": In(1),
                "fault": In(1),
                "fault_info": In(FAULT),
                "active": In(1),
                "activity": In(ACTIVITY),
                "present": In(1),
                "abandon": Out(1),
            }
        )


class JobRingControl(wiring.Signature):
    """Tells the job ring what the registers hold: where it lies, and the doorbell. ``tail``, ``fetched``: jobs
    submitted, and jobs whose descriptor fetch has begun."""

    def __init__(self) -> None:
        super().__init__(
            {
                "base": Out(ADDR),
                "size_log2": Out(4),
                "tail_stb": Out(1),
                "tail_data": Out(32),
                "tail": In(32),
                "fetched": In(32),
            }
        )


class CompletionRingControl(wiring.Signature):
    """Connects the registers and the retirer.

    * ``base``, ``size_log2``, ``consumed``: the completion ring, and how much of it the host has read.
    * ``retired``: jobs retired = completions written. ``interrupt``: pulse.
    * ``failed`` (level), ``failed_job``: a completion could not be written.
    * ``view_index``, ``view``: a word of the current job's completion; ``view_request`` holds until ``view_ack``.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "base": Out(ADDR),
                "size_log2": Out(4),
                "consumed": Out(32),
                "retired": In(32),
                "interrupt": In(1),
                "failed": In(1),
                "failed_job": In(32),
                "view_index": Out(6),
                "view_request": Out(1),
                "view": In(32),
                "view_ack": In(1),
            }
        )
