"""Defines the signatures that the parts of the SoC meet at. Every part is a component on one side of these.

Streams follow ``amaranth.lib.stream``: ``valid`` and payload hold until ``ready``, ``valid`` never depends on
``ready``.
"""

from amaranth.hdl import signed, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.contract.formats import format_bits
from hw.contract.isa import FORMATS, INSN_BITS, Op
from hw.contract.params import SocParams

ADDR = 32  #: bits of every byte address (DRAM, LV2 and offsets alike)
PC = 24  #: bits of an instruction index within the code segment

#: What a unit receives: the instruction with its segments resolved. Units that ignore a segment
#: (LV1 and LV0 sides) ignore its base and limit too and check against the memory size instead.
COMMAND = data.StructLayout(
    {
        "insn": INSN_BITS, "pc": PC,
        "src_base": ADDR, "src_limit": ADDR, "dst_base": ADDR, "dst_limit": ADDR,
    }
)  # fmt: skip

#: What a unit reports when it cannot go on: ``hw.contract.job.Fault``, the PC of the command, the offending offset.
FAULT = data.StructLayout({"code": 8, "pc": PC, "addr": ADDR})


def struct_layout(op: Op):
    """Return the format of ``op`` as an Amaranth ``StructLayout`` of 512 bits, for RTL (padding field ``reserved``)."""
    fields = FORMATS[op]
    members = {f.name: signed(f.width) if f.signed else unsigned(f.width) for f in fields}
    members["reserved"] = unsigned(INSN_BITS - format_bits(fields))
    return data.StructLayout(members)


class UnitPort(wiring.Signature):
    """Controls one unit, seen from the unit.

    * ``cmd``: commands in program order; accepted when the unit can start (it may overlap the tail of the
      previous one).
    * ``done``: one-cycle pulse per command, in order, when its last write has landed.
    * ``fault``/``fault_info``: one-cycle pulse at the first fault; the unit then issues nothing more, finishes or
      discards what is in flight, and never pulses ``done`` for the faulting command.
    * ``abort``: level; the unit stops issuing new memory requests, lets outstanding ones return, discards them,
      and drops ``busy``. Only an engine reset leaves this state.
    * ``busy``: a command is in progress or memory requests are outstanding.
    * ``mon_*``: what happens this cycle, for the per-job counters (see ``job.COUNTERS``): ``mon_bytes`` is the
      number of source bytes read (DMA), ``mon_active`` an accepted operand (MAC, VEC), ``mon_stalled`` a cycle
      lost to the other side of a port, ``mon_extent`` with ``mon_extent_valid`` the end offset of a write.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "cmd": In(stream.Signature(COMMAND)),
                "done": Out(1),
                "fault": Out(1),
                "fault_info": Out(FAULT),
                "abort": In(1),
                "busy": Out(1),
                "mon_bytes": Out(8),
                "mon_active": Out(1),
                "mon_stalled": Out(1),
                "mon_extent": Out(ADDR),
                "mon_extent_valid": Out(1),
            }
        )


class ReadPort(wiring.Signature):
    """Carries scratchpad reads, seen from the client: word address out, ``width`` bytes back, in order.

    ``rsp_valid`` comes exactly one cycle after ``req`` was accepted; the client must take it.
    """

    def __init__(self, addr_width: int, width: int) -> None:
        super().__init__({"req": Out(stream.Signature(addr_width)), "rsp_valid": In(1), "rsp_data": In(8 * width)})


class WritePort(wiring.Signature):
    """Carries scratchpad writes, seen from the client: word address, ``width`` bytes, byte enables. A write has landed
    when it is accepted."""

    def __init__(self, addr_width: int, width: int) -> None:
        layout = data.StructLayout({"addr": addr_width, "data": 8 * width, "en": width})
        super().__init__({"req": Out(stream.Signature(layout))})


class BusReadPort(wiring.Signature):
    """Carries DRAM reads, seen from the client: bursts of whole bus words that do not cross 4 KiB, data in request
    order.

    ``addr`` is a byte address aligned to the bus word. ``data.error`` marks a beat with an AXI error response.
    """

    def __init__(self, params: SocParams) -> None:
        super().__init__(
            {
                "req": Out(stream.Signature(data.StructLayout({"addr": ADDR, "beats": 9}))),
                "data": In(stream.Signature(data.StructLayout({"data": 8 * params.dram_word, "last": 1, "error": 1}))),
            }
        )


class BusWritePort(wiring.Signature):
    """Carries DRAM writes, seen from the client: a burst request, then its beats, then one response per burst in
    order."""

    def __init__(self, params: SocParams) -> None:
        beat = data.StructLayout({"data": 8 * params.dram_word, "strb": params.dram_word, "last": 1})
        super().__init__(
            {
                "req": Out(stream.Signature(data.StructLayout({"addr": ADDR, "beats": 9}))),
                "data": Out(stream.Signature(beat)),
                "rsp": In(stream.Signature(data.StructLayout({"error": 1}))),
            }
        )


class Axi4(wiring.Signature):
    """Carries AXI4, seen from the master. There are INCR bursts of full-width beats only, so size and burst type are
    constants."""

    def __init__(self, *, data_bytes: int, id_width: int) -> None:
        super().__init__(
            {
                "awvalid": Out(1), "awready": In(1), "awid": Out(id_width), "awaddr": Out(ADDR), "awlen": Out(8),
                "awsize": Out(3), "awburst": Out(2), "awlock": Out(1), "awcache": Out(4), "awprot": Out(3),
                "wvalid": Out(1), "wready": In(1), "wdata": Out(8 * data_bytes), "wstrb": Out(data_bytes),
                "wlast": Out(1),
                "bvalid": In(1), "bready": Out(1), "bid": In(id_width), "bresp": In(2),
                "arvalid": Out(1), "arready": In(1), "arid": Out(id_width), "araddr": Out(ADDR), "arlen": Out(8),
                "arsize": Out(3), "arburst": Out(2), "arlock": Out(1), "arcache": Out(4), "arprot": Out(3),
                "rvalid": In(1), "rready": Out(1), "rid": In(id_width), "rdata": In(8 * data_bytes), "rresp": In(2),
                "rlast": In(1),
            }
        )  # fmt: skip


class Axi4Lite(wiring.Signature):
    """Carries AXI4-Lite with 32-bit data, seen from the master."""

    def __init__(self, addr_width: int = 16) -> None:
        super().__init__(
            {
                "awvalid": Out(1), "awready": In(1), "awaddr": Out(addr_width), "awprot": Out(3),
                "wvalid": Out(1), "wready": In(1), "wdata": Out(32), "wstrb": Out(4),
                "bvalid": In(1), "bready": Out(1), "bresp": In(2),
                "arvalid": Out(1), "arready": In(1), "araddr": Out(addr_width), "arprot": Out(3),
                "rvalid": In(1), "rready": Out(1), "rdata": In(32), "rresp": In(2),
            }
        )  # fmt: skip


AXI_ID_WIDTH = 6  #: one ID per client: engine (3 bits) and client within the engine (3 bits)


class Lv0WritePort(wiring.Signature):
    """Carries writes into the LV0 memories of all PEs, seen from LD0. LV0 always accepts: there is no ``ready``.

    ``addr`` counts LV1 words (W = ``lv1_word`` bytes). ``view`` MULTICAST: bank b of every PE in ``pe_mask`` takes
    bytes [b*R, (b+1)*R) at bank index ``addr``. INTERLEAVED: PE p takes bytes [p*R, (p+1)*R) into bank
    ``addr % lv0_banks`` at index ``addr // lv0_banks``. Byte enables apply to the LV1 word as it is. Space ACC: word
    ``addr % 4`` of accumulator row ``addr // 4``, whole words only; MAC's own results go first and must not come now.
    Space INT4: words ``2 * addr`` and ``2 * addr + 1`` of WGT, INTERLEAVED, take the low and the high halves of bytes,
    sign-extended.
    """

    def __init__(self, params: SocParams) -> None:
        word = params.lv1_word
        super().__init__(
            {
                "valid": Out(1), "space": Out(2), "view": Out(1), "pe_mask": Out(params.pes), "addr": Out(16),
                "data": Out(8 * word), "en": Out(word),
            }
        )  # fmt: skip
