"""Programs of guests: straight lines of long copies."""

from dataclasses import dataclass, field

from hw.contract.isa import Insn, Op

RUN = 4096  #: bytes of one run of a long copy; the least that segment 6 of a guest has
SEMAPHORES = 32  #: by which each instruction waits for the one before: more than queues of units hold


@dataclass
class GuestChain:
    """A program in which each instruction waits for the one before. At a point one semaphore is left over."""

    insns: list[Insn] = field(default_factory=list)
    number: int = 0

    def add(self, op: Op, /, **fields: int) -> int:
        """Append an instruction; returns its PC."""
        wait = 1 << self.number % SEMAPHORES if self.number else 0
        self.number += 1
        self.insns.append(Insn(op, fields | {"wait": wait, "signal": 1 << self.number % SEMAPHORES}))
        return len(self.insns) - 1

    def copy(self, op: Op, src: int, dst: int, size: int, /, **fields: int) -> list[int]:
        """Copies of ``size`` bytes; returns their PCs."""
        pcs, runs, rest = [], *divmod(size, RUN)
        if runs:
            strides = {"src_s0": RUN, "dst_s0": RUN} if runs > 1 else {}
            run = {"len": RUN, "hi": RUN, "n0": runs, "hi0": runs, "hi1": 1}
            pcs.append(self.add(op, src=src, dst=dst, **run, **strides, **fields))
        if rest:
            at = runs * RUN
            pcs.append(self.add(op, src=src + at, dst=dst + at, len=rest, hi=rest, hi0=1, hi1=1, **fields))
        return pcs

    def end(self) -> None:
        """The last signals nothing."""
        last = self.insns[-1]
        self.insns[-1] = Insn(last.op, last.fields | {"signal": 0})
        self.insns.append(Insn(Op.END))
