"""Defines a bus whose host side goes wrong on request: interrupts come late or never, memory reads wrong bytes."""

from hw.contract.bus import Bus


class FaultyBus:
    """Passes calls to another :class:`hw.contract.bus.Bus` and makes some go wrong, for tests and for whoever wants to
    see how software takes it.

    Faults of the memory as the device sees it are those of ``RtlBus.set_dram_fault``, which all simulators and the fast
    model have, and which this passes on.
    """

    def __init__(self, bus: Bus) -> None:
        self.bus = bus
        self.params = bus.params
        self.costs = bus.costs
        self._deaf_until = 0
        self._lost = 0
        self._damage: list[tuple[int, int]] = []

    # -- faults ----------------------------------------------------------------------------------------------
    def lose_interrupts(self, count: int) -> None:
        """Lose the next ``count`` interrupts that would wake the host."""
        self._lost = count

    def delay_interrupts(self, cycles: int) -> None:
        """Let no interrupt wake the host within so many cycles from now."""
        self._deaf_until = self.cycle + cycles

    def damage_next_read(self, address: int, mask: int) -> None:
        """Turn the bits of ``mask`` over in the byte at ``address``, once, when it is read next."""
        self._damage.append((address, mask))

    def heal(self) -> None:
        """Let everything work again."""
        self._deaf_until, self._lost, self._damage = 0, 0, []
        self.set_dram_fault(0)

    def set_dram_fault(self, kind: int, base: int = 0, size: int = 1 << 32, *, after: int = 0, cycles: int = 1) -> None:
        """Pass on what :meth:`sim.rtl.base.RtlBus.set_dram_fault` takes; raises TypeError if the bus behind has no such
        method."""
        set_fault = getattr(self.bus, "set_dram_fault", None)
        if set_fault is None:
            if kind:
                raise TypeError(f"{type(self.bus).__name__} has no faults of the memory: use a simulator")
            return
        set_fault(kind, base, size, after=after, cycles=cycles)

    # -- Bus -------------------------------------------------------------------------------------------------
    @property
    def cycle(self) -> int:
        """Return the cycles simulated since power-on."""
        return self.bus.cycle

    def read_reg(self, address: int) -> int:
        """Read the register from the bus behind."""
        return self.bus.read_reg(address)

    def write_reg(self, address: int, value: int) -> None:
        """Write the register of the bus behind."""
        self.bus.write_reg(address, value)

    def read_mem(self, address: int, size: int, *, charge: bool = True) -> bytes:
        """Read DRAM from the bus behind, and change the bytes that are to be damaged."""
        data = bytearray(self.bus.read_mem(address, size, charge=charge))
        for at, mask in [hit for hit in self._damage if address <= hit[0] < address + size]:
            data[at - address] ^= mask
            self._damage.remove((at, mask))
        return bytes(data)

    def write_mem(self, address: int, data: bytes, *, charge: bool = True) -> None:
        """Write DRAM of the bus behind."""
        self.bus.write_mem(address, data, charge=charge)

    def wait_irq(self, limit: int) -> bool:
        """Wait for an interrupt of the bus behind, which comes late or is lost where that was asked for."""
        deaf = min(limit, max(0, self._deaf_until - self.cycle))
        self.bus.advance(deaf)
        begin = self.cycle
        if deaf == limit or not self.bus.wait_irq(limit - deaf):
            return False
        if not self._lost:
            return True
        self._lost -= 1
        self.bus.advance(max(0, limit - deaf - (self.cycle - begin)))
        return False

    def advance(self, cycles: int) -> None:
        """Let time pass on the bus behind."""
        self.bus.advance(cycles)

    def close(self) -> None:
        """Close the bus behind."""
        self.bus.close()
