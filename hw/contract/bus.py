"""Defines ``Bus``, which is all that a driver can see of a SoC. Every backend implements it; nothing above can tell
which it has.

The host is not free: each access charges cycles of the accelerator's clock to simulated time (``HostCosts``), during
which the accelerator runs on. Two backends that receive the same calls report the same cycle counts.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Protocol, runtime_checkable

from hw.contract.params import SocParams


@dataclass(frozen=True)
class HostCosts:
    """Says what host actions cost, in accelerator cycles at a nominal 1 GHz. ``HostCosts.free()`` sets all to zero."""

    register_access: int = 50  #: one 32-bit register read or write over the peripheral bus
    memory_line: int = 10  #: one 64-byte cache line of control data written to or read from DRAM
    interrupt: int = 1000  #: from the interrupt line to the first instruction of the driver's handler
    decision: int = 500  #: one scheduler decision, charged by the run time
    # Steps of a model that the CPU computes, charged by the run time; sim/host/cost.py says what counts as which.
    cpu_step: int = 1000  #: one call, besides the cache lines of the tensors that it reads and writes
    cpu_element: float = 1.0  #: an element of simple arithmetic, of a copy or of (de)quantisation
    cpu_function: float = 8.0  #: an element of an exponential, a root, a normalisation
    cpu_mac: float = 0.25  #: a multiply-accumulate: four in a cycle

    @classmethod
    def free(cls) -> "HostCosts":
        """Return costs of zero, for unit tests that count accelerator cycles only."""
        return cls(*(0 for _ in fields(cls)))


LINE_BYTES = 64


class BusError(RuntimeError):
    """Says that the SoC refused a bus access (AXI error response, address outside DRAM); names address and access."""


class BusTimeout(RuntimeError):
    """Says that the SoC did not answer a register access within a generous number of cycles."""


@runtime_checkable
class Bus(Protocol):
    """A bus is the host's view of one SoC."""

    params: SocParams
    costs: HostCosts

    @property
    def cycle(self) -> int:
        """Return the cycles simulated since power-on."""

    def read_reg(self, address: int) -> int:
        """Read a 32-bit register; charges ``costs.register_access``."""

    def write_reg(self, address: int, value: int) -> None:
        """Write a 32-bit register; charges ``costs.register_access``."""

    def read_mem(self, address: int, size: int, *, charge: bool = True) -> bytes:
        """Read DRAM; charges ``costs.memory_line`` per line. ``charge=False`` is the simulation's back door for
        loading models and reading results, which is not what a latency figure is about."""

    def write_mem(self, address: int, data: bytes, *, charge: bool = True) -> None:
        """Write DRAM; charging as for :meth:`read_mem`."""

    def wait_irq(self, limit: int) -> bool:
        """Run until the interrupt line is high (True; charges ``costs.interrupt``) or ``limit`` cycles have
        passed (False). Returns at once, charging, if the line is high already."""

    def advance(self, cycles: int) -> None:
        """Let the accelerator run while the host does something else."""

    def close(self) -> None:
        """Release the simulator; further calls raise RuntimeError."""


Progress = Callable[[int], None]  #: called now and then with the current cycle while a backend runs
