"""Wraps the Verilog of the accelerator as a core of LiteX: registers as a slave, memory as a master, an interrupt.

Needs LiteX (``pip install litex``), and the files that ``caesura verilog`` wrote.
"""

from collections.abc import Sequence
from pathlib import Path

from migen import ClockSignal, Instance, ResetSignal
from migen.genlib.fifo import SyncFIFO

from litex.gen import LiteXModule
from litex.soc.interconnect import axi
from litex.soc.interconnect.csr_eventmanager import EventManager, EventSourceLevel

TOP = "caesura_soc"
REGISTERS = 0x1_0000  #: bytes of the window of registers
_ID_BITS = 6
#: Signals by channel. What they share is its valid and its ready.
_LITE = {
    "aw": ("addr", "prot"), "w": ("data", "strb"), "b": ("resp",), "ar": ("addr", "prot"), "r": ("data", "resp"),
}  # fmt: skip
_ADDRESS = ("addr", "burst", "cache", "id", "len", "lock", "prot", "size")
_FULL = {
    "aw": _ADDRESS, "w": ("data", "strb", "last"), "b": ("id", "resp"), "ar": _ADDRESS,
    "r": ("data", "id", "last", "resp"),
}  # fmt: skip


class InOrder(LiteXModule):
    """Gives all requests of ``slave`` one ID, so that ``master`` gets its responses in the order of requests, and puts
    their own IDs back: adapters of LiteX keep one bit of an ID."""

    def __init__(self, data_width: int, most: int = 16) -> None:
        self.slave = slave = axi.AXIInterface(data_width=data_width, address_width=32, id_width=_ID_BITS)
        self.master = master = axi.AXIInterface(data_width=data_width, address_width=32)
        self.comb += [slave.w.connect(master.w, omit={"id", "dest", "user"})]
        for asked, answered, ends in (("aw", "b", 1), ("ar", "r", master.r.last)):
            request, sent = getattr(slave, asked), getattr(master, asked)
            response, came = getattr(slave, answered), getattr(master, answered)
            ids = SyncFIFO(_ID_BITS, most)
            setattr(self, f"{asked}_ids", ids)
            self.comb += [
                request.connect(sent, omit={"valid", "ready", "id", "dest", "user"}),
                sent.valid.eq(request.valid & ids.writable),
                request.ready.eq(sent.ready & ids.writable),
                ids.din.eq(request.id),
                ids.we.eq(request.valid & request.ready),
                came.connect(response, omit={"id", "dest", "user"}),
                response.id.eq(ids.dout),
                ids.re.eq(came.valid & came.ready & ends),
            ]


class Caesura(LiteXModule):
    """Is an accelerator.

    Members: ``registers``, an AXI4-Lite slave; ``memory``, an AXI4 master of ``data_width`` bits (``8 * dram_word`` of
    the machine) and one ID, which a litedram port of 64 bits takes as it is; ``ev``, an event manager whose event
    ``device`` is the interrupt.

    Parameters
    ----------
    platform : of LiteX; it gets the ``files``
    files : as ``caesura verilog`` wrote them
    data_width : bits of a word of memory
    """

    def __init__(self, platform, files: Sequence[Path], data_width: int = 64) -> None:
        self.registers = axi.AXILiteInterface(data_width=32, address_width=16)
        self.in_order = in_order = InOrder(data_width)
        self.memory = in_order.master
        self.ev = EventManager()
        self.ev.device = EventSourceLevel(description="Some engine has an interrupt pending that is enabled.")
        self.ev.finalize()
        for path in files:
            platform.add_source(str(path))
        self.specials += Instance(
            TOP,
            i_clk=ClockSignal("sys"),
            i_rst=ResetSignal("sys"),
            o_irq=self.ev.device.trigger,
            **_ports("axil", self.registers, _LITE, slave=True),
            **_ports("axi", in_order.slave, _FULL, slave=False),
        )


def _ports(prefix: str, bus, channels: dict[str, tuple[str, ...]], *, slave: bool) -> dict[str, object]:
    """Return the connections of a bus: channels of requests come to a slave, and go from a master."""
    found = {}
    for channel, payload in channels.items():
        end = getattr(bus, channel)
        comes = (channel in ("aw", "w", "ar")) == slave
        for name in payload:
            found[f"{'i' if comes else 'o'}_{prefix}_{channel}{name}"] = getattr(end, name)
        found[f"{'i' if comes else 'o'}_{prefix}_{channel}valid"] = end.valid
        found[f"{'o' if comes else 'i'}_{prefix}_{channel}ready"] = end.ready
    return found
