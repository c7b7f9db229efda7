"""One case at an edge: a job, and how it must end by rules that are written down by hand.

The modules ``edges_*`` share encodings with the hardware and nothing else: which segments an operation may name, what a
bound is and which fields fit together stands in them once more, so that a mistake in the tables of ``hw.contract`` has
no accomplice here (``tests/benchmarks/trust/test_edges.py`` checks what they import).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from benchmarks.trust.words import raw_word
from hw.contract.isa import Op
from hw.contract.job import Fault, FaultUnit

WRAP = 1 << 32  #: offsets are modulo this
END = raw_word(Op.END, {})


@dataclass(frozen=True)
class Ending:
    """How a job must end. ``pc`` and ``address`` count where they are given."""

    code: Fault = Fault.NONE
    unit: FaultUnit = FaultUnit.LD2
    pc: int | None = None
    address: int | None = None


WELL = Ending()


@dataclass(frozen=True)
class EdgeCase:
    """A job with code ``prologue`` and ``body``, whose descriptor has ``fields``. ``kind``: what it is an edge of,
    ``what``: which one."""

    kind: str
    what: str
    body: tuple[bytes, ...]
    ending: Ending
    prologue: tuple[bytes, ...] = ()
    fields: Mapping[str, int] = field(default_factory=dict)


def one(kind: str, what: str, word: bytes, ending: Ending) -> EdgeCase:
    """The case of one instruction at PC 0."""
    return EdgeCase(kind, what, (word, END), ending)


def executor(code: Fault, pc: int = 0) -> Ending:
    """What the sequencer of bodies finds, before any unit sees the instruction."""
    return Ending(code, FaultUnit.EXECUTOR, pc, pc * 64)


def unit(op: Op, code: Fault, address: int | None = None) -> Ending:
    """What the unit of ``op`` finds in the instruction at PC 0."""
    return Ending(code, FaultUnit[op.name], 0, address)
