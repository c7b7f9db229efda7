"""Faults that are planted in jobs of loaded models, behind the driver's back, and the errors that they must end in."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from hw.contract.bus import Bus
from hw.contract.isa import INSN_BYTES, Insn, Op, Segment
from hw.contract.job import Fault
from sw.driver import FaultRecord, LoadedModel

_FAR = 0xF000_0000  #: an offset behind every segment
_NEVER = 1 << 30  #: a semaphore that nothing signals
_RUNS = {"n0": 65535, "n1": 255}  #: of a copy that takes longer than any job may
_COPY = {"src_seg": 2, "dst_seg": 6, "len": 8, "hi": 8, "hi1": 1, "hi0": 1}
_PLANTS: dict[str, tuple[Fault, bytes]] = {
    "illegal": (Fault.ILLEGAL, b"\x99"),
    "limit": (Fault.LIMIT, Insn(Op.LD2, _COPY | {"src": _FAR}).encode()),
    "stuck": (Fault.SEMAPHORE_UNDERFLOW, Insn(Op.LD2, _COPY | {"wait": _NEVER}).encode()),
    "endless": (Fault.CYCLE_LIMIT, Insn(Op.LD2, {"src_seg": 2, "dst_seg": 6, "len": 8, **_RUNS}).encode()),
    "residue": (Fault.SEMAPHORE_RESIDUE, Insn(Op.LD2, _COPY | {"signal": _NEVER}).encode() + Insn(Op.END).encode()),
}


@dataclass(frozen=True)
class Doom:
    """A fault of ``kind`` in job ``job`` of ``model``, which is the ``where`` (first, last, inner) of its jobs."""

    model: str
    job: int
    kind: str
    code: Fault
    where: str

    def complaint(self, record: FaultRecord) -> str:
        """What is wrong with an error that names ``record``; empty if nothing is."""
        if record.code is not self.code:
            return f"{record.code.name} instead of {self.code.name}"
        expected = f"job {self.job} of {self.model!r}"
        return "" if expected in str(record.job) else f"of {record.job} instead of {expected}"


def plant(rng: random.Random, bus: Bus, model: LoadedModel, kinds: Sequence[str] = tuple(_PLANTS)) -> Doom:
    """Change the code of one job of ``model``, in device memory alone, to a fault of one of ``kinds``."""
    jobs = model.image.meta.jobs
    number = rng.choice((0, len(jobs) - 1, rng.randrange(len(jobs))))
    kind = rng.choice(kinds)
    pc, prologue = jobs[number].body_pc, jobs[number].prologue_pc
    if prologue is not None and kind in ("illegal", "limit") and rng.random() < 0.3:
        pc, kind_there = prologue, f"{kind} in a prologue"
    else:
        kind_there = kind
    code, word = _PLANTS[kind]
    bus.write_mem(model.segments[Segment.CODE][0] + INSN_BYTES * pc, word, charge=False)
    where = "the first" if number == 0 else "the last" if number == len(jobs) - 1 else "an inner"
    return Doom(model.name, number, kind_there, code, where)
