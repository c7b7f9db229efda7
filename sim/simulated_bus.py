"""Holds what every simulated SoC does in the same way behind ``Bus``: which accesses it refuses, what they cost the
host, and how its memory is made to go wrong. A simulator adds a handful of hooks."""

from abc import ABC, abstractmethod
from typing import Self

from hw.contract.bus import LINE_BYTES, BusError, HostCosts, Progress
from hw.contract.params import SocParams


class SimulatedBus(ABC):
    """Is a :class:`hw.contract.bus.Bus` over a simulator.

    All cycles are counted and charged here, so simulators of the same machine agree cycle for cycle. A memory access is
    charged first and takes effect at the end of the charged cycles.
    """

    def __init__(self, params: SocParams, costs: HostCosts | None, progress: Progress | None) -> None:
        self.params = params
        self.costs = costs or HostCosts()
        self._progress = progress
        self._cycle = 0
        self._closed = False

    # -- hooks -----------------------------------------------------------------------------------------------
    @abstractmethod
    def _access(self, write: bool, address: int, value: int) -> int:
        """Read or write a register and return what was read; charges ``costs.register_access``, or what the access took
        if that is more."""

    @abstractmethod
    def _irq(self) -> bool:
        """Return the interrupt line as it is now."""

    @abstractmethod
    def _pass(self, cycles: int, interrupt: bool) -> bool:
        """Let ``cycles`` pass, or with ``interrupt`` those up to the first in which the interrupt line is high; return
        whether there was one."""

    @abstractmethod
    def _load(self, address: int, size: int) -> bytes:
        """Return DRAM contents."""

    @abstractmethod
    def _store(self, address: int, data: bytes) -> None:
        """Set DRAM contents."""

    @abstractmethod
    def _stall_from_next(self, seed: int, rate: int) -> None:
        """Let one cycle pass, and stall from the next on."""

    @abstractmethod
    def _fail(self, kind: int, base: int, last: int, begin: int, end: int) -> None:
        """Let the DRAM go wrong from cycle ``begin`` to before ``end``; ``base`` to ``last`` are bytes."""

    @abstractmethod
    def _dram_timing(self, latency: int, row_miss: int, bandwidth: int) -> None:
        """Set latency, row miss and bandwidth of the DRAM."""

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
        _check_value(address, value)
        self._access(True, address, value)

    def read_mem(self, address: int, size: int, *, charge: bool = True) -> bytes:
        """Read DRAM; charges ``costs.memory_line`` per line touched, if ``charge``."""
        self._check_memory("read", address, size, charge)
        return self._load(address, size) if size else b""

    def write_mem(self, address: int, data: bytes, *, charge: bool = True) -> None:
        """Write DRAM; charging as for :meth:`read_mem`."""
        raw = bytes(data)
        self._check_memory("write", address, len(raw), charge)
        if raw:
            self._store(address, raw)

    def wait_irq(self, limit: int) -> bool:
        """Run until the interrupt line is high (True; charges ``costs.interrupt``) or ``limit`` cycles have passed."""
        self._check_open()
        high = self._irq()
        if not high and limit > 0:
            high = self._pass(limit, True)
        if high:
            self.advance(self.costs.interrupt)
        return high

    def advance(self, cycles: int) -> None:
        """Let the accelerator run for ``cycles`` cycles."""
        self._check_open()
        if cycles < 0:
            raise ValueError(f"cycles must not be negative, not {cycles}")
        if cycles:
            self._pass(cycles, False)

    def close(self) -> None:
        """Release the simulator; further calls raise RuntimeError."""
        if not self._closed:
            self._closed = True
            self._release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # -- for tests -------------------------------------------------------------------------------------------
    def set_stalls(self, seed: int, per_256: int) -> None:
        """Stall each DRAM channel at random in ``per_256`` of 256 cycles from the next cycle but one (0: off, 255 is
        the most); the same ``seed`` from 1 gives the same stalls. Takes one cycle. On the fast model, bursts that were
        taken before are not held up."""
        _check_stalls(seed, per_256)
        self._check_open()
        self._stall_from_next(seed, per_256)

    def set_dram_fault(self, kind: int, base: int = 0, size: int = 1 << 32, *, after: int = 0, cycles: int = 1) -> None:
        """Let the DRAM go wrong, in place of what an earlier call asked for.

        kind : ``sim.dram.DramFault``: 0 nothing, 1 it stands still, 2 it answers SLVERR, 3 DECERR
        base, size : errors strike bursts that begin there, bytes
        after, cycles : it begins so many cycles from now and lasts so many
        """
        _check_fault(kind, base, size, after, cycles)
        self._check_open()
        begin = self._cycle + after
        self._fail(int(kind), base, base + size - 1, begin, begin + cycles)

    def set_dram_timing(self, params: SocParams) -> None:
        """Give the DRAM the latency, the row miss and the bandwidth of ``params`` from the next cycle; all else must be
        as in the parameters of this bus. The DRAM of the RTL must be idle."""
        _check_timing(self.params, params)
        self._check_open()
        self.params = params
        self._dram_timing(params.dram_latency, params.dram_row_miss, params.dram_bandwidth)

    # -- checks ----------------------------------------------------------------------------------------------
    def _check_memory(self, access: str, address: int, size: int, charge: bool) -> None:
        """Refuse an access that leaves the DRAM, and charge one that does not: each line that it touches has a cost."""
        self._check_open()
        if address < 0 or size < 0 or address + size > self.params.dram_bytes:
            limit = self.params.dram_bytes
            raise BusError(f"{access} of {size} bytes at {address:#x} leaves the DRAM of {limit:#x} bytes")
        if charge and size:
            lines = (address + size - 1) // LINE_BYTES - address // LINE_BYTES + 1
            self.advance(lines * self.costs.memory_line)

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("the simulator behind this bus was closed")


def check_register(access: str, address: int) -> None:
    """Raise :class:`BusError` if ``address`` is no register's. ``access`` is for the message, such as ``read of``."""
    if address % 4 or not 0 <= address < 1 << 16:
        raise BusError(f"{access} register {address:#06x}: the address must be a multiple of 4 below 0x10000")


def _check_value(address: int, value: int) -> None:
    """Raise :class:`BusError` for a value that no register can hold."""
    if not 0 <= value < 1 << 32:
        raise BusError(f"a register holds 0 to 0xffffffff, not {value:#x} (write to {address:#06x})")


def refused(access: str, address: int) -> BusError:
    """Return the error to raise when the SoC has answered with an error."""
    return BusError(
        f"{access} register {address:#06x}: the SoC answered with an error; is the address in the register map?"
    )


def _check_fault(kind: int, base: int, size: int, after: int, cycles: int) -> None:
    """Raise ValueError for what is no fault of the DRAM; ``SimulatedBus.set_dram_fault`` says which there are."""
    if kind not in range(4) or base < 0 or size < 1 or base + size > 1 << 32 or after < 0 or cycles < 1:
        raise ValueError(f"no fault of kind {kind} at {base:#x}, {size} bytes, {after} cycles from now for {cycles}")


def _check_stalls(seed: int, per_256: int) -> None:
    """Raise ValueError for what is no stall of the DRAM; ``SimulatedBus.set_stalls`` says which there are."""
    if not 1 <= seed < 1 << 32 or not 0 <= per_256 <= 255:
        raise ValueError(f"seed must be 1 to {(1 << 32) - 1} and per_256 0 to 255, not {seed} and {per_256}")


def _check_timing(present: SocParams, wanted: SocParams) -> None:
    """Raise ValueError unless ``wanted`` differs from the parameters at ``present`` in the timing of the DRAM alone."""
    if wanted.digest() != present.digest():
        raise ValueError(f"{wanted.name!r} differs from {present.name!r} in more than the timing of the DRAM")
