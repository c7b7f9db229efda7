"""An untimed, bit-exact executor of programs: what they compute, without when.

Instructions run in program order on NumPy memories. Because every wait of a legal program is satisfied by signals
earlier in program order, the result equals that of the hardware, whose units overlap; whether a program is legal in
that sense (no data races hidden by the order) is what :mod:`sim.check.races` checks, as an observer of this machine.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from hw.contract.isa import INSN_BYTES, UNIT_OF, Insn, IsaError, Op, Segment
from hw.contract.job import Fault, FaultUnit
from hw.contract.params import SocParams
from sim.functional.state import AccessObserver, FunctionalFault, Halt, Segments
from sim.functional.units import Units, bits

__all__ = ["AccessObserver", "FunctionalFault", "Halt", "Machine", "Segments"]


@lru_cache(maxsize=1 << 16)
def _decode(raw: bytes) -> Insn:
    return Insn.decode(raw)


class Machine(Units):
    """Runs jobs, prologues and bodies on the :class:`Units` of one SoC; tells ``observer`` of every instruction."""

    def __init__(
        self,
        params: SocParams,
        dram: bytearray | npt.NDArray[np.uint8] | None = None,
        observer: AccessObserver | None = None,
    ) -> None:
        super().__init__(params, dram)
        self.observer = observer

    # -- programs --------------------------------------------------------------------------------------------
    def run_job(
        self,
        segments: Segments,
        body_pc: int,
        prologue_pc: int | None = None,
        engine: int = 0,
        stop_at: int | None = None,
        semaphores: Sequence[int] = (),
    ) -> Halt | None:
        """Prologue, then body, of one job whose code is segment 0; raises :class:`FunctionalFault`.

        ``stop_at``: cancellation point at which to stop; the result says where the body stands, or is None if it
        reached END. It goes on as a job with ``body_pc`` = ``halt.pc + 1`` and ``halt.semaphores``.
        """
        base, limit = segments[Segment.CODE]
        code = self.dram[base : base + limit].tobytes()
        if prologue_pc is not None:
            self.run_prologue(code, prologue_pc, segments, engine)
        pc = self.run_program(code, body_pc, segments, engine, stop_at, semaphores)
        insn = self.fetch(code, pc)
        if insn.op is Op.END:
            return None
        return Halt(insn["point"], pc, tuple(self.engines[engine].semaphores))

    def run_prologue(self, code: bytes, pc: int, segments: Segments, engine: int = 0) -> int:
        """Execute a prologue: LD2 without semaphores up to END. Returns the PC of END."""
        while True:
            insn = self.fetch(code, pc, FaultUnit.LOADER)
            if insn.op is Op.END:
                return pc
            if insn.op is not Op.LD2 or insn["wait"] or insn["signal"]:
                raise FunctionalFault(Fault.ILLEGAL, pc, 0, FaultUnit.LOADER, f"{insn.op.name} in a prologue")
            self.execute(insn, segments, engine, pc)
            pc += 1

    def run_program(
        self,
        code: bytes,
        pc: int,
        segments: Segments,
        engine: int = 0,
        stop_at: int | None = None,
        semaphores: Sequence[int] = (),
    ) -> int:
        """Execute a body from ``pc`` to END, or to the CANCEL of point ``stop_at``, in program order; returns its PC.

        ``semaphores``: first counts, those beyond its end zero. Raises :class:`FunctionalFault`."""
        counts = self.engines[engine].semaphores
        counts[:] = [*semaphores, *[0] * (len(counts) - len(semaphores))]
        while True:
            insn = self.fetch(code, pc)
            if insn.op is Op.END:
                break
            if insn.op is not Op.CANCEL:
                self.step(insn, segments, engine, pc)
            elif insn["point"] == stop_at:
                return pc
            pc += 1
        self.finish(engine, pc)
        return pc

    def step(self, insn: Insn, segments: Segments, engine: int = 0, pc: int = 0) -> None:
        """One LD2 ... VEC of a body with its waits and signals; raises :class:`FunctionalFault`."""
        self._take(insn, pc, engine)
        self.execute(insn, segments, engine, pc)
        self._give(insn, pc, engine)
        if self.observer:
            self.observer.instruction(pc, engine, insn, self.accesses)

    def finish(self, engine: int, pc: int) -> None:
        """END at ``pc``: a fault unless all semaphores of the engine are zero."""
        for number, count in enumerate(self.engines[engine].semaphores):
            if count:
                raise FunctionalFault(Fault.SEMAPHORE_RESIDUE, pc, number, why=f"semaphore {number} is {count} at END")
        if self.observer:
            self.observer.end(engine)

    @staticmethod
    def fetch(code: bytes, pc: int, unit: FaultUnit = FaultUnit.EXECUTOR) -> Insn:
        """The instruction at ``pc``; a LIMIT or ILLEGAL fault of ``unit`` if there is none."""
        raw = code[pc * INSN_BYTES : (pc + 1) * INSN_BYTES]
        if len(raw) < INSN_BYTES:
            raise FunctionalFault(Fault.LIMIT, pc, pc * INSN_BYTES, unit, "beyond the code segment")
        try:
            return _decode(bytes(raw))
        except IsaError as error:
            raise FunctionalFault(Fault.ILLEGAL, pc, 0, unit, str(error)) from None

    def _take(self, insn: Insn, pc: int, engine: int) -> None:
        counts, mask = self.engines[engine].semaphores, insn.fields.get("wait", 0)
        for number in bits(mask):
            if number >= len(counts) or counts[number] == 0:
                raise FunctionalFault(
                    Fault.SEMAPHORE_UNDERFLOW,
                    pc,
                    number,
                    UNIT_OF[insn.op],
                    f"nothing signals semaphore {number} before",
                )
            counts[number] -= 1

    def _give(self, insn: Insn, pc: int, engine: int) -> None:
        counts, mask = self.engines[engine].semaphores, insn.fields.get("signal", 0)
        for number in bits(mask):
            if number >= len(counts) or counts[number] >= self.params.semaphore_max:
                raise FunctionalFault(Fault.SEMAPHORE_OVERFLOW, pc, number, UNIT_OF[insn.op])
            counts[number] += 1
