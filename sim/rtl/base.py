"""Holds what the RTL backends share: host costs, checks and errors. A backend adds a handful of hooks."""

import enum
from abc import ABC, abstractmethod

from hw.contract.bus import BusTimeout, HostCosts, Progress
from hw.contract.params import SocParams
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

REGISTER_TIMEOUT = 10_000  #: cycles a register access may take


class Until(enum.IntEnum):
    """Names what ends a run before its limit."""

    LIMIT = 0  #: nothing
    IRQ = 1  #: a cycle with the interrupt line high
    RESPONSE = 2  #: the end of a register access


class RtlBus(ABC):
    """Is a :class:`hw.contract.bus.Bus` over a simulation of :class:`sim.rtl.top.SimTop`.

    All cycles are counted and charged here, so backends that simulate the same netlist agree cycle for cycle. A
    memory access is charged first and takes effect at the end of the charged cycles.
    """

    def __init__(self, params: SocParams, costs: HostCosts, progress: Progress | None) -> None:
        self.params = params
        self.costs = costs
        self._progress = progress
        self._cycle = 0
        self._closed = False
        self._to_come: list[tuple[int, tuple[int, int, int]]] = []  #: faults of the DRAM: cycle, arguments of the hook

    # -- hooks -----------------------------------------------------------------------------------------------
    @abstractmethod
    def _start_access(self, write: bool, address: int, value: int) -> None:
        """Run one cycle with ``cmd_valid`` and the other ``cmd_*`` inputs set."""

    @abstractmethod
    def _response(self) -> tuple[int, bool]:
        """Return ``rsp_data`` and ``rsp_error``."""

    @abstractmethod
    def _irq(self) -> bool:
        """Return the interrupt line as it is now."""

    @abstractmethod
    def _run(self, limit: int, until: Until) -> tuple[int, bool]:
        """Run up to ``limit`` cycles, ending after the first one in which ``until`` was met; return the number of
        cycles and whether it was met."""

    @abstractmethod
    def _load(self, address: int, size: int) -> bytes:
        """Return DRAM contents."""

    @abstractmethod
    def _store(self, address: int, data: bytes) -> None:
        """Set DRAM contents."""

    @abstractmethod
    def _stall(self, rate: int, seed: int) -> None:
        """Set ``stall_rate`` and ``stall_seed``."""

    @abstractmethod
    def _fault(self, kind: int, base: int, last: int) -> None:
        """Set ``fault_kind``, ``fault_base`` and ``fault_last``."""

    @abstractmethod
    def _dram_timing(self, latency: int, row_miss: int, bandwidth: int) -> None:
        """Set ``dram_latency``, ``dram_row_miss`` and ``dram_bandwidth``. Every backend calls this once, with the
        values of ``params``, when its simulator has been created."""

    @abstractmethod
    def _release(self) -> None:
        """Free the simulator."""

    # -- Bus -------------------------------------------------------------------------------------------------
    @property
    def cycle(self) -> int:
        """Return the cycles simulated since power-on."""
        return self._cycle

    def read_reg(self, address: int) -> int:
        """Read a 32-bit register; charges ``costs.register_access``, or what the access took if that is more."""
        return self._access(False, address, 0)

    def write_reg(self, address: int, value: int) -> None:
        """Write a 32-bit register; charges as :meth:`read_reg`."""
        check_value(address, value)
        self._access(True, address, value)

    def read_mem(self, address: int, size: int, *, charge: bool = True) -> bytes:
        """Read DRAM; charges ``costs.memory_line`` per line touched, if ``charge``."""
        self._check_open()
        check_memory(self.params, "read", address, size)
        if charge:
            self.advance(memory_cycles(self.costs, address, size))
        return self._load(address, size) if size else b""

    def write_mem(self, address: int, data: bytes, *, charge: bool = True) -> None:
        """Write DRAM; charging as for :meth:`read_mem`."""
        raw = bytes(data)
        self._check_open()
        check_memory(self.params, "write", address, len(raw))
        if charge:
            self.advance(memory_cycles(self.costs, address, len(raw)))
        if raw:
            self._store(address, raw)

    def wait_irq(self, limit: int) -> bool:
        """Run until the interrupt line is high (True; charges ``costs.interrupt``) or ``limit`` cycles have passed."""
        self._check_open()
        high = self._irq()
        if not high and limit > 0:
            high = self._cycles(limit, Until.IRQ)
        if high:
            self.advance(self.costs.interrupt)
        return high

    def advance(self, cycles: int) -> None:
        """Let the accelerator run for ``cycles`` cycles."""
        self._check_open()
        if cycles < 0:
            raise ValueError(f"cycles must not be negative, not {cycles}")
        if cycles:
            self._cycles(cycles, Until.LIMIT)

    def close(self) -> None:
        """Release the simulator; further calls raise RuntimeError."""
        if not self._closed:
            self._closed = True
            self._release()

    def __enter__(self):
        return self

    def __exit__(self, *exc) -> None:
        self.close()

    # -- for tests -------------------------------------------------------------------------------------------
    def set_stalls(self, seed: int, per_256: int) -> None:
        """Stall each DRAM channel at random in ``per_256`` of 256 cycles from the next cycle but one (0: off, 255 is
        the most); the same ``seed`` from 1 gives the same stalls. Takes one cycle."""
        check_stalls(seed, per_256)
        self._check_open()
        self._stall(0, seed)
        self.advance(1)
        self._stall(per_256, seed)

    def set_dram_fault(self, kind: int, base: int = 0, size: int = 1 << 32, *, after: int = 0, cycles: int = 1) -> None:
        """Let the DRAM go wrong, in place of what an earlier call asked for.

        kind : ``sim.dram.DramFault``: 0 nothing, 1 it stands still, 2 it answers SLVERR, 3 DECERR
        base, size : errors strike bursts that begin there, bytes
        after, cycles : it begins so many cycles from now and lasts so many
        """
        check_fault(kind, base, size, after, cycles)
        self._check_open()
        self._fault(0, 0, 0)
        begin = self._cycle + after
        self._to_come = [(begin, (int(kind), base, base + size - 1)), (begin + cycles, (0, 0, 0))] if kind else []

    def set_dram_timing(self, params: SocParams) -> None:
        """Give the DRAM the latency, the row miss and the bandwidth of ``params`` from the next cycle; all else must be
        as in the parameters of this bus. The DRAM must be idle."""
        check_timing(self.params, params)
        self._check_open()
        self.params = params
        self._dram_timing(params.dram_latency, params.dram_row_miss, params.dram_bandwidth)

    # -- shared ----------------------------------------------------------------------------------------------
    def _cycles(self, limit: int, until: Until) -> bool:
        end, met = self._cycle + limit, False
        while self._cycle < end and not met:
            while self._to_come and self._to_come[0][0] <= self._cycle:
                self._fault(*self._to_come.pop(0)[1])
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

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("the simulator behind this bus was closed")
