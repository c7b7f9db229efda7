"""Checks accesses of the host in the same way on every backend: which are refused, and what those to DRAM cost."""

from hw.contract.bus import LINE_BYTES, BusError, HostCosts
from hw.contract.params import SocParams


def check_register(access: str, address: int) -> None:
    """Raise :class:`BusError` if ``address`` is no register's. ``access`` is for the message, such as ``read of``."""
    if address % 4 or not 0 <= address < 1 << 16:
        raise BusError(f"{access} register {address:#06x}: the address must be a multiple of 4 below 0x10000")


def check_value(address: int, value: int) -> None:
    """Raise :class:`BusError` for a value that no register can hold."""
    if not 0 <= value < 1 << 32:
        raise BusError(f"a register holds 0 to 0xffffffff, not {value:#x} (write to {address:#06x})")


def refused(access: str, address: int) -> BusError:
    """Return the error to raise when the SoC has answered with an error."""
    return BusError(
        f"{access} register {address:#06x}: the SoC answered with an error; is the address in the register map?"
    )


def check_memory(params: SocParams, access: str, address: int, size: int) -> None:
    """Raise :class:`BusError` for an access that leaves the DRAM."""
    if address < 0 or size < 0 or address + size > params.dram_bytes:
        raise BusError(f"{access} of {size} bytes at {address:#x} leaves the DRAM of {params.dram_bytes:#x} bytes")


def check_fault(kind: int, base: int, size: int, after: int, cycles: int) -> None:
    """Raise ValueError for what is no fault of the DRAM; ``RtlBus.set_dram_fault`` says which there are."""
    if kind not in range(4) or base < 0 or size < 1 or base + size > 1 << 32 or after < 0 or cycles < 1:
        raise ValueError(f"no fault of kind {kind} at {base:#x}, {size} bytes, {after} cycles from now for {cycles}")


def check_stalls(seed: int, per_256: int) -> None:
    """Raise ValueError for what is no stall of the DRAM; ``RtlBus.set_stalls`` says which there are."""
    if not 1 <= seed < 1 << 32 or not 0 <= per_256 <= 255:
        raise ValueError(f"seed must be 1 to {(1 << 32) - 1} and per_256 0 to 255, not {seed} and {per_256}")


def check_timing(present: SocParams, wanted: SocParams) -> None:
    """Raise ValueError unless ``wanted`` differs from the parameters at ``present`` in the timing of the DRAM alone."""
    if wanted.digest() != present.digest():
        raise ValueError(f"{wanted.name!r} differs from {present.name!r} in more than the timing of the DRAM")


def memory_cycles(costs: HostCosts, address: int, size: int) -> int:
    """Return the cycles of an access to DRAM: each line that it touches has a cost."""
    return ((address + size - 1) // LINE_BYTES - address // LINE_BYTES + 1) * costs.memory_line if size else 0
