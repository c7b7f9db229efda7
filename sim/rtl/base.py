"""Holds what the RTL backends share. A backend adds a handful of hooks."""

import enum
from abc import abstractmethod

from hw.contract.bus import BusTimeout, HostCosts, Progress
from hw.contract.params import SocParams
from sim.simulated_bus import SimulatedBus, check_register, refused

REGISTER_TIMEOUT = 10_000  #: cycles a register access may take
#: Inputs of the design that are set together.
INPUTS = {
    "stall": ("stall_rate", "stall_seed"),
    "fault": ("fault_kind", "fault_base", "fault_last"),
    "dram_timing": ("dram_latency", "dram_row_miss", "dram_bandwidth"),
}


class Until(enum.IntEnum):
    """Names what ends a run before its limit."""

    LIMIT = 0  #: nothing
    IRQ = 1  #: a cycle with the interrupt line high
    RESPONSE = 2  #: the end of a register access


class RtlBus(SimulatedBus):
    """Is a :class:`hw.contract.bus.Bus` over a simulation of :class:`sim.rtl.top.SimTop`. Every backend calls
    ``set_dram_timing`` once, with its ``params``, when its simulator has been created."""

    def __init__(self, params: SocParams, costs: HostCosts | None, progress: Progress | None) -> None:
        super().__init__(params, costs, progress)
        self._to_come: list[tuple[int, tuple[int, int, int]]] = []  #: faults of the DRAM: cycle, arguments of the hook

    # -- hooks -----------------------------------------------------------------------------------------------
    @abstractmethod
    def _start_access(self, write: bool, address: int, value: int) -> None:
        """Run one cycle with ``cmd_valid`` and the other ``cmd_*`` inputs set."""

    @abstractmethod
    def _response(self) -> tuple[int, bool]:
        """Return ``rsp_data`` and ``rsp_error``."""

    @abstractmethod
    def _run(self, limit: int, until: Until) -> tuple[int, bool]:
        """Run up to ``limit`` cycles, ending after the first one in which ``until`` was met; return the number of
        cycles and whether it was met."""

    @abstractmethod
    def _set(self, what: str, *values: int) -> None:
        """Set the inputs that :data:`INPUTS` lists for ``what``."""

    # -- what is made of them --------------------------------------------------------------------------------
    def _pass(self, cycles: int, interrupt: bool) -> bool:
        return self._cycles(cycles, Until.IRQ if interrupt else Until.LIMIT)

    def _stall_from_next(self, seed: int, rate: int) -> None:
        self._set("stall", 0, seed)
        self.advance(1)
        self._set("stall", rate, seed)

    def _fail(self, kind: int, base: int, last: int, begin: int, end: int) -> None:
        self._set("fault", 0, 0, 0)
        self._to_come = [(begin, (kind, base, last)), (end, (0, 0, 0))] if kind else []

    def _dram_timing(self, latency: int, row_miss: int, bandwidth: int) -> None:
        self._set("dram_timing", latency, row_miss, bandwidth)

    def _cycles(self, limit: int, until: Until) -> bool:
        end, met = self._cycle + limit, False
        while self._cycle < end and not met:
            while self._to_come and self._to_come[0][0] <= self._cycle:
                self._set("fault", *self._to_come.pop(0)[1])
            stop = min(end, self._to_come[0][0]) if self._to_come else end
            ran, met = self._run(stop - self._cycle, until)
            self._cycle += ran
        return met

    def _access(self, write: bool, address: int, value: int) -> int:
        self._check_open()
        access = "write to" if write else "read of"
        check_register(access, address)
        before = self._cycle
        self._start_access(write, address, value)
        self._cycle += 1
        if not self._cycles(REGISTER_TIMEOUT, Until.RESPONSE):
            raise BusTimeout(
                f"{access} register {address:#06x}: no answer within {REGISTER_TIMEOUT} cycles (cycle {self._cycle})"
            )
        data, error = self._response()
        self.advance(max(0, self.costs.register_access - (self._cycle - before)))
        if error:
            raise refused(access, address)
        return data
