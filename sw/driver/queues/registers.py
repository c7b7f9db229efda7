"""Accesses registers by name, from the tables of ``hw.contract.regs``."""

from hw.contract.bus import Bus
from hw.contract.params import SocParams
from hw.contract.regs import ID_VALUE, VERSION_VALUE, field_value, register_map, register_of
from sw.driver.errors import DeviceMismatch


class RegisterAccess:
    """Accesses the registers of one SoC by name: ``read("ID")``, ``write("E0.RING_TAIL", 3)``, ``read("E1.SEM[5]")``.

    Every call is one bus access and is charged as one. Unknown names raise KeyError.
    """

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._address = register_map(bus.params.engines)

    def read(self, name: str) -> int:
        """Return the 32-bit value of register ``name``."""
        return self._bus.read_reg(self._address[name])

    def write(self, name: str, value: int) -> None:
        """Set register ``name`` to the 32-bit ``value``."""
        self._bus.write_reg(self._address[name], value)

    def read_fields(self, name: str) -> dict[str, int]:
        """Return the bit fields of register ``name`` by name, from one read."""
        value = self.read(name)
        return {b.name: value >> b.low & ((1 << b.width) - 1) for b in register_of(name).bits}

    def write_fields(self, name: str, **fields: int) -> None:
        """Set register ``name`` from bit fields; those not given are zero. KeyError names an unknown field."""
        self.write(name, field_value(name, **fields))


def identify(regs: RegisterAccess, params: SocParams) -> None:
    """Raise :class:`DeviceMismatch` unless the hardware is what ``params`` describe."""
    digest = int(params.digest()[:8], 16)
    for name, expected in (("ID", ID_VALUE), ("VERSION", VERSION_VALUE), ("PARAMS", digest)):
        value = regs.read(name)
        if value != expected:
            raise DeviceMismatch(
                f"register {name} reads 0x{value:08x}, expected 0x{expected:08x} for preset "
                f"{params.name!r}: open the device with the parameters the hardware was built for"
            )
    engines = regs.read("ENGINES")
    if engines != params.engines:
        raise DeviceMismatch(f"register ENGINES reads {engines}, parameters say {params.engines}")
