"""A memory that gives nonsense for what is read while the same row is written, as block RAM may."""

from types import SimpleNamespace

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib.memory import Memory


class UncheckedMemory(Memory):
    """Is a memory whose readers see each bit inverted of a row that was written in the cycle of their read."""

    def __init__(self, *arguments, **how) -> None:
        super().__init__(*arguments, **how)
        self._readers = []

    def read_port(self, **how):
        port = super().read_port(**how)
        seen = Signal(port.data.shape(), name="seen")
        self._readers.append((port, seen))
        return SimpleNamespace(addr=port.addr, en=port.en, data=seen)

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.memory = super().elaborate(platform)
        for port, seen in self._readers:
            meets = Signal()
            with m.If(port.en):
                m.d.sync += meets.eq(0)
                for write in self.write_ports:
                    with m.If(write.en.any() & (write.addr == port.addr)):
                        m.d.sync += meets.eq(1)
            data = Value.cast(port.data)
            m.d.comb += Value.cast(seen).eq(Mux(meets, ~data, data))
        return m


def unchecked_where_it_says_so(*arguments, **how) -> Memory:
    """Return an ``UncheckedMemory`` for one that claims that nobody looks at such words, another as it is."""
    made = UncheckedMemory if how.get("attrs", {}).get("no_rw_check") else Memory
    return made(*arguments, **how)
