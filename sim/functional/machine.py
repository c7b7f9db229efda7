"""Executes programs without timing, bit for bit: what they compute, not when.

Instructions run in program order on NumPy memories. Because every wait of a legal program is satisfied by signals
earlier in program order, the result equals that of the hardware, whose units overlap. Whether a program is legal in
that sense (no data races hidden by the order) is for an observer of this machine to check.
"""

from collections.abc import Iterable, Sequence
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
        parameters: Sequence[int] = (),
    ) -> Halt | None:
        """Run prologue, then body, of one job whose code is segment 0; raises :class:`FunctionalFault`.

        ``stop_at``: cancellation point at which to stop; the result says where the body stands, or is None if it
        reached END. It goes on as a job with ``body_pc`` = ``halt.pc + 1`` and ``halt.semaphores``. ``parameters``:
        what its instructions may name, none without the flag PARAMS.
        """
        base, limit = segments[Segment.CODE]
        code = self.dram[base : base + limit].tobytes()
        if prologue_pc is not None:
            self.run_prologue(code, prologue_pc, segments, engine)
        pc = self.run_program(code, body_pc, segments, engine, stop_at, semaphores, parameters)
        insn = self.fetch(code, pc, parameters=parameters)
        if insn.op is Op.END:
            return None
        return Halt(insn["point"], pc, tuple(self.engines[engine].semaphores))

    def run_prologue(self, code: bytes, pc: int, segments: Segments, engine: int = 0) -> int:
        """Execute a prologue: LD2 without semaphores up to END. Return the PC of END."""
        while True:
            insn = self.fetch(code, pc, FaultUnit.LOADER)
            if insn.op is Op.END:
                return pc
            if insn.op is not Op.LD2 or insn["wait"] or insn["signal"]:
                why = f"{insn.op.name} in a prologue"
                raise FunctionalFault(Fault.ILLEGAL, pc, pc * INSN_BYTES, FaultUnit.LOADER, why)
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
        parameters: Sequence[int] = (),
    ) -> int:
        """Execute a body from ``pc`` to END, or to the CANCEL of point ``stop_at``, in program order; return its PC.

        ``semaphores``: first counts, those beyond its end zero. Raises :class:`FunctionalFault`.
        """
        counts = self.engines[engine].semaphores
        counts[:] = [*semaphores, *[0] * (len(counts) - len(semaphores))]
        while True:
            insn = self.fetch(code, pc, parameters=parameters)
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
        """Run one LD2 ... VEC of a body with its waits and signals; raises :class:`FunctionalFault`."""
        self._refuse_unknown_semaphores(insn, pc)
        self._take(insn, pc, engine)
        self.execute(insn, segments, engine, pc)
        self._give(insn, pc, engine)
        if self.observer:
            self.observer.instruction(pc, engine, insn, self.accesses)

    def finish(self, engine: int, pc: int) -> None:
        """Take END at ``pc``, which is a fault unless all semaphores of the engine are zero."""
        left = _mask(number for number, count in enumerate(self.engines[engine].semaphores) if count)
        if left:
            raise FunctionalFault(Fault.SEMAPHORE_RESIDUE, pc, left, why=f"semaphores {bits(left)} are not zero at END")
        if self.observer:
            self.observer.end(engine)

    @staticmethod
    def fetch(code: bytes, pc: int, unit: FaultUnit = FaultUnit.EXECUTOR, parameters: Sequence[int] = ()) -> Insn:
        """Return the instruction at ``pc``, with ``parameters`` where it names them; raises a LIMIT or ILLEGAL fault of
        ``unit`` if there is none."""
        raw = code[pc * INSN_BYTES : (pc + 1) * INSN_BYTES]
        if len(raw) < INSN_BYTES:
            raise FunctionalFault(Fault.LIMIT, pc, pc * INSN_BYTES, unit, "beyond the code segment")
        try:
            return _decode(bytes(raw)).resolve(parameters)
        except IsaError as error:
            raise FunctionalFault(Fault.ILLEGAL, pc, pc * INSN_BYTES, unit, str(error)) from None

    def _refuse_unknown_semaphores(self, insn: Insn, pc: int) -> None:
        named = insn.fields.get("wait", 0) | insn.fields.get("signal", 0)
        if named >> self.params.semaphores:
            why = f"there are {self.params.semaphores} semaphores"
            raise FunctionalFault(Fault.ILLEGAL, pc, pc * INSN_BYTES, FaultUnit.EXECUTOR, why)

    def _take(self, insn: Insn, pc: int, engine: int) -> None:
        counts, wanted = self.engines[engine].semaphores, bits(insn.fields.get("wait", 0))
        missing = _mask(number for number in wanted if counts[number] == 0)
        if missing:
            why = f"nothing signals semaphores {bits(missing)} before"
            raise FunctionalFault(Fault.SEMAPHORE_UNDERFLOW, pc, missing, UNIT_OF[insn.op], why)
        for number in wanted:
            counts[number] -= 1

    def _give(self, insn: Insn, pc: int, engine: int) -> None:
        counts, named = self.engines[engine].semaphores, bits(insn.fields.get("signal", 0))
        full = _mask(number for number in named if counts[number] >= self.params.semaphore_max)
        if full:
            raise FunctionalFault(Fault.SEMAPHORE_OVERFLOW, pc, full, UNIT_OF[insn.op])
        for number in named:
            counts[number] += 1


def _mask(numbers: Iterable[int]) -> int:
    return sum(1 << number for number in numbers)
