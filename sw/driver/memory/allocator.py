"""Allocates aligned pieces of an address range, first fit, for DRAM and LV2."""

from sw.driver.errors import DriverError, OutOfMemory


class Allocator:
    """Hands out aligned pieces of ``[base, base + size)``, lowest address first.

    ``what`` names the memory in errors. Free blocks are kept sorted by address and merged with neighbours.
    """

    def __init__(self, what: str, base: int, size: int) -> None:
        self.what = what
        self._free: list[tuple[int, int]] = [(base, base + size)] if size else []
        self._used: dict[int, int] = {}
        self._shared: dict[int, int] = {}  #: users beside the first

    @property
    def free_bytes(self) -> int:
        """Return how many bytes are not allocated, in however many blocks."""
        return sum(end - start for start, end in self._free)

    @property
    def largest_block(self) -> int:
        """Return the bytes of the largest free block, before alignment."""
        return max((end - start for start, end in self._free), default=0)

    def allocate(self, size: int, align: int = 1, purpose: str = "data") -> int:
        """Allocate ``size`` > 0 bytes and return their address, a multiple of ``align``; raises :class:`OutOfMemory` if
        none are left."""
        if size < 1 or align < 1:
            raise DriverError(f"{self.what}: cannot allocate {size} bytes aligned to {align} for {purpose}")
        for i, (start, end) in enumerate(self._free):
            address = -(-start // align) * align
            if address + size <= end:
                rest = [(start, address), (address + size, end)]
                self._free[i : i + 1] = [(a, b) for a, b in rest if a < b]
                self._used[address] = size
                return address
        raise OutOfMemory(
            f"{self.what}: no room for {size} bytes of {purpose}: {self.free_bytes} bytes left, "
            f"largest block {self.largest_block}; unload a model or choose a preset with more memory"
        )

    def holds(self, address: int) -> bool:
        """Return whether an allocation starts at ``address``."""
        return address in self._used

    def of_one_user(self, address: int) -> int:
        """Return the size of the allocation at ``address`` if nobody else uses it, otherwise 0."""
        return 0 if self._shared.get(address) else self._used.get(address, 0)

    def share(self, address: int) -> int:
        """Add a user to the allocation at ``address``, which is free once all users have given it back."""
        if not self.holds(address):
            raise DriverError(f"{self.what}: nothing is allocated at 0x{address:x}")
        self._shared[address] = self._shared.get(address, 0) + 1
        return address

    def free(self, address: int) -> None:
        """Give back what :meth:`allocate` or :meth:`share` returned; raises :class:`DriverError` for anything else."""
        if self._shared.get(address):
            self._shared[address] -= 1
            return
        size = self._used.pop(address, 0)
        if not size:
            raise DriverError(f"{self.what}: nothing is allocated at 0x{address:x}")
        blocks = sorted([*self._free, (address, address + size)])
        merged = [blocks[0]]
        for start, end in blocks[1:]:
            if start == merged[-1][1]:
                merged[-1] = (merged[-1][0], end)
            else:
                merged.append((start, end))
        self._free = merged
