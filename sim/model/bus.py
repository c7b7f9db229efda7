"""Puts the fast model behind ``Bus``."""

import numpy as np
import numpy.typing as npt

from hw.contract.bus import HostCosts, Progress
from hw.contract.params import SocParams
from hw.contract.timing import REGISTER_ACCESS, REGISTER_TOUCHED
from sim.instruction_runs import InstructionRun, as_runs
from sim.model.engine import SocModel
from sim.model.registers import RegisterModel
from sim.simulated_bus import SimulatedBus, check_register, refused

_SLICE = 100_000  #: cycles between two calls of ``progress``


class ModelBus(SimulatedBus):
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
        super().__init__(params, costs, progress)
        self._soc = SocModel(params, data=data)
        self._registers = RegisterModel(self._soc)
        self._memory = self._soc.shared.memory

    # -- more than a Bus -------------------------------------------------------------------------------------
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

    # -- hooks -----------------------------------------------------------------------------------------------
    def _access(self, write: bool, address: int, value: int) -> int:
        self._check_open()
        access = "write to" if write else "read of"
        check_register(access, address)
        begin = self._cycle
        touched = self._registers.touched(address, begin + REGISTER_TOUCHED)
        self._run_to(touched + 1)
        known, found = address in (self._registers.writers if write else self._registers.readers), 0
        if known and write:
            self._registers.writers[address](touched + 1, value)
        elif known:
            found = self._registers.readers[address](touched)
        took = touched - begin + REGISTER_ACCESS - REGISTER_TOUCHED
        self._run_to(begin + max(took, self.costs.register_access))
        if not known:
            raise refused(access, address)
        return found

    def _irq(self) -> bool:
        return self._soc.line()

    def _pass(self, cycles: int, interrupt: bool) -> bool:
        return self._run_to(self._cycle + cycles, until_interrupt=interrupt)

    def _load(self, address: int, size: int) -> bytes:
        return self._soc.shared.dram[address : address + size].tobytes()

    def _store(self, address: int, data: bytes) -> None:
        self._soc.shared.store(address, data)

    def _stall_from_next(self, seed: int, rate: int) -> None:
        self.advance(1)
        self._memory.set_stalls(self._cycle, seed, rate)

    def _fail(self, kind: int, base: int, last: int, begin: int, end: int) -> None:
        self._memory.set_fault(self._cycle, kind, base, last, begin, end)

    def _release(self) -> None:
        """Do nothing: Python frees the model."""

    def _dram_timing(self, latency: int, row_miss: int, bandwidth: int) -> None:
        self._memory.set_timing(latency, row_miss, bandwidth)

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
