"""Puts the fast model behind ``Bus``."""

import numpy as np
import numpy.typing as npt

from hw.contract.bus import HostCosts, Progress
from hw.contract.params import SocParams
from hw.contract.timing import REGISTER_ACCESS, REGISTER_TOUCHED
from sim.accesses import (
    check_fault,
    check_memory,
    check_register,
    check_stalls,
    check_timing,
    check_value,
    memory_cycles,
    refused,
)
from sim.instruction_runs import InstructionRun, as_runs
from sim.model.engine import SocModel
from sim.model.registers import RegisterModel

_SLICE = 100_000  #: cycles between two calls of ``progress``


class ModelBus:
    """Is a :class:`hw.contract.bus.Bus` over the fast model.

    Parameters
    ----------
    params : SocParams
    costs : HostCosts
    data : bool
        Without it instructions are timed but not executed: results in DRAM are those of no inference.
    progress : optional
        Called with the cycle about every 100,000 cycles.
    """

    def __init__(
        self, params: SocParams, *, costs: HostCosts | None = None, data: bool = True, progress: Progress | None = None
    ) -> None:
        self.params = params
        self.costs = costs or HostCosts()
        self._progress = progress
        self._soc = SocModel(params, data=data)
        self._registers = RegisterModel(self._soc)
        self._cycle = 0
        self._closed = False

    # -- Bus -------------------------------------------------------------------------------------------------
    @property
    def cycle(self) -> int:
        """Return the cycles simulated since power-on."""
        return self._cycle

    def read_reg(self, address: int) -> int:
        """Read a 32-bit register; charges ``costs.register_access``, or what the access took if that is more."""
        touched, begin = self._touch("read of", address), self._cycle
        self._run_to(touched + 1)
        read = self._registers.readers.get(address)
        value = read(touched) if read else 0
        self._answer("read of", begin, touched, address, known=read is not None)
        return value

    def write_reg(self, address: int, value: int) -> None:
        """Write a 32-bit register; charges as :meth:`read_reg`."""
        check_value(address, value)
        touched, begin = self._touch("write to", address), self._cycle
        self._run_to(touched + 1)
        write = self._registers.writers.get(address)
        if write:
            write(touched + 1, value)
        self._answer("write to", begin, touched, address, known=write is not None)

    def read_mem(self, address: int, size: int, *, charge: bool = True) -> bytes:
        """Read DRAM; charges ``costs.memory_line`` per line touched, if ``charge``."""
        self._check_open()
        check_memory(self.params, "read", address, size)
        if charge:
            self.advance(memory_cycles(self.costs, address, size))
        return self._soc.shared.dram[address : address + size].tobytes()

    def write_mem(self, address: int, data: bytes, *, charge: bool = True) -> None:
        """Write DRAM; charging as for :meth:`read_mem`."""
        raw = bytes(data)
        self._check_open()
        check_memory(self.params, "write", address, len(raw))
        if charge:
            self.advance(memory_cycles(self.costs, address, len(raw)))
        self._soc.shared.store(address, raw)

    def wait_irq(self, limit: int) -> bool:
        """Run until the interrupt line is high (True; charges ``costs.interrupt``) or ``limit`` cycles have passed."""
        self._check_open()
        high = self._soc.line()
        if not high and limit > 0:
            high = self._run_to(self._cycle + limit, until_interrupt=True)
        if high:
            self.advance(self.costs.interrupt)
        return high

    def advance(self, cycles: int) -> None:
        """Let the accelerator run for ``cycles`` cycles."""
        self._check_open()
        if cycles < 0:
            raise ValueError(f"cycles must not be negative, not {cycles}")
        self._run_to(self._cycle + cycles)

    def close(self) -> None:
        """Release the model; further calls raise RuntimeError."""
        self._closed = True

    def __enter__(self) -> "ModelBus":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # -- more than a Bus -------------------------------------------------------------------------------------
    def set_dram_fault(self, kind: int, base: int = 0, size: int = 1 << 32, *, after: int = 0, cycles: int = 1) -> None:
        """Let the DRAM go wrong, as :meth:`sim.rtl.base.RtlBus.set_dram_fault` does."""
        check_fault(kind, base, size, after, cycles)
        self._check_open()
        begin = self._cycle + after
        self._soc.shared.memory.set_fault(self._cycle, kind, base, base + size - 1, begin, begin + cycles)

    def set_stalls(self, seed: int, per_256: int) -> None:
        """Stall DRAM channels as :meth:`sim.rtl.base.RtlBus.set_stalls` does, with the same draws; bursts that were
        taken before are not held up."""
        check_stalls(seed, per_256)
        self.advance(1)
        self._soc.shared.memory.set_stalls(self._cycle, seed, per_256)

    def set_dram_timing(self, params: SocParams) -> None:
        """Give the DRAM the latency, the row miss and the bandwidth of ``params`` from now on; all else must be as in
        the parameters of this bus."""
        check_timing(self.params, params)
        self._check_open()
        self.params = params
        self._soc.shared.memory.set_timing(params)

    def record(self) -> None:
        """Keep from now on when instructions run."""
        self._soc.shared.recorder.enabled = True

    @property
    def runs(self) -> list[InstructionRun]:
        """Return what was recorded of prologues and bodies that have ended."""
        return as_runs(self.run_table)

    @property
    def run_table(self) -> npt.NDArray[np.int64]:
        """Return what was recorded as a table, for ``sim.instruction_runs.save_runs``: it has a row for each
        instruction."""
        return self._soc.shared.recorder.table()

    # -- time ------------------------------------------------------------------------------------------------
    def _run_to(self, cycle: int, *, until_interrupt: bool = False) -> bool:
        """Simulate up to ``cycle``, which is the next to come; or to the first in which the interrupt line is high."""
        agenda = self._soc.shared.agenda
        self._soc.shared.awaiting_interrupt = until_interrupt
        while self._cycle < cycle:
            last = min(cycle, self._cycle + _SLICE) if self._progress else cycle
            agenda.run(last - 1)
            if agenda.stopped is not None and until_interrupt:
                self._cycle = max(agenda.stopped, self._cycle) + 1
                return True
            self._cycle = last
            if self._progress:
                self._progress(last)
        return False

    # -- checks ----------------------------------------------------------------------------------------------
    def _touch(self, what: str, address: int) -> int:
        """Return the cycle in which an access that begins now reads or writes the register."""
        self._check_open()
        check_register(what, address)
        return self._registers.touched(address, self._cycle + REGISTER_TOUCHED)

    def _answer(self, what: str, begin: int, touched: int, address: int, *, known: bool) -> None:
        took = touched - begin + REGISTER_ACCESS - REGISTER_TOUCHED
        self._run_to(begin + max(took, self.costs.register_access))
        if not known:
            raise refused(what, address)

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("the model behind this bus was closed")
