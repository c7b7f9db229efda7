"""The AXI master port, for all clients that keep to their contracts and all slaves."""

import pytest
from amaranth.hdl import Assert, Assume, Cat, Module, Mux, Signal

from hw.axi.interconnect import AxiInterconnect
from hw.contract.params import preset
from tests.formal.harness import prove_for_ever, specification

PARAMS = preset("tiny").replace(axi_burst_beats=4)
CLIENTS = 2
_PAGE = 4096
_AHEAD = 2  #: bursts that a writer has announced and not sent


def offer(m: Module, stream, inputs: list[Signal]) -> None:
    """``stream`` offers anything at any time, and holds what it offers until that is taken."""
    come, what = Signal(), Signal.like(stream.payload.as_value())
    with m.If(~stream.valid | stream.ready):
        m.d.sync += [stream.valid.eq(come), stream.payload.as_value().eq(what)]
    inputs += [come, what]


def legal_burst(request, most: int):
    """Whether a request of a client is one that its contract allows."""
    within = request.addr[: (_PAGE - 1).bit_length()]
    whole = request.addr[: (PARAMS.dram_word - 1).bit_length()] == 0
    return whole & (request.beats != 0) & (request.beats <= most) & (within + request.beats * PARAMS.dram_word <= _PAGE)


class Writer:
    """A write client: bursts of any length, each with as many words, the last of them marked."""

    def __init__(self, m: Module, port, inputs: list[Signal]) -> None:
        offer(m, port.req, inputs)
        m.d.comb += Assume(~port.req.valid | legal_burst(port.req.p, PARAMS.axi_burst_beats))
        come, go, data = Signal(), Signal(), Signal.like(port.data.p.data)
        waiting = [Signal(range(PARAMS.axi_burst_beats + 1), name=f"waiting{i}") for i in range(_AHEAD)]
        announced, sent = Signal(), Signal()
        m.d.comb += [
            announced.eq(port.req.valid & port.req.ready),
            Assume(~(announced & (waiting[-1] != 0))),
            port.data.valid.eq(go & (waiting[0] != 0)),
            port.data.p.last.eq(waiting[0] == 1),
            port.data.p.data.eq(data),
            sent.eq(port.data.valid & port.data.ready),
        ]
        held = Signal()
        m.d.sync += held.eq(port.data.valid & ~port.data.ready)
        m.d.comb += Assume(~held | go)
        after = [Signal.like(waiting[0], name=f"after{i}") for i in range(_AHEAD)]
        m.d.comb += [after[i].eq(waiting[i]) for i in range(_AHEAD)]
        with m.If(sent):
            m.d.comb += after[0].eq(waiting[0] - 1)
            with m.If(waiting[0] == 1):
                m.d.comb += [after[i].eq(waiting[i + 1] if i + 1 < _AHEAD else 0) for i in range(_AHEAD)]
        m.d.sync += [waiting[i].eq(after[i]) for i in range(_AHEAD)]
        with m.If(announced):
            first_free = after[0] == 0
            with m.If(first_free):
                m.d.sync += waiting[0].eq(port.req.p.beats)
            with m.Else():
                m.d.sync += waiting[1].eq(port.req.p.beats)
        inputs += [come, go, data]


def held_stable(m: Module, axi, channel: str, fields: tuple[str, ...]) -> None:
    """What is valid and not taken is valid in the next cycle, and the same."""
    valid, ready = getattr(axi, f"{channel}valid"), getattr(axi, f"{channel}ready")
    payload = Cat(getattr(axi, f"{channel}{name}") for name in fields)
    waits, before = Signal(name=f"{channel}_waits"), Signal.like(payload, name=f"{channel}_before")
    m.d.sync += [waits.eq(valid & ~ready), before.eq(payload)]
    m.d.comb += Assert(~waits | (valid & (payload == before)))


def port_claims(dut: AxiInterconnect) -> tuple[Module, list[Signal]]:
    """What the port keeps to."""
    m = specification()
    m.submodules.dut = dut
    inputs: list[Signal] = []
    axi = dut.axi
    slave = (axi.arready, axi.awready, axi.wready, axi.rvalid, axi.rid, axi.rresp, axi.rlast, axi.bvalid, axi.bid)
    for wire in (*slave, axi.bresp, dut.attributes.as_value()):
        free = Signal.like(wire, name=f"any_{wire.name if hasattr(wire, 'name') else 'attributes'}")
        m.d.comb += wire.eq(free)
        inputs.append(free)
    takes = Signal(2 * CLIENTS)
    inputs.append(takes)
    for i in range(CLIENTS):
        offer(m, dut.read[i].req, inputs)
        m.d.comb += [
            Assume(~dut.read[i].req.valid | legal_burst(dut.read[i].req.p, PARAMS.axi_burst_beats)),
            dut.read[i].data.ready.eq(takes[i]),
            dut.write[i].rsp.ready.eq(takes[CLIENTS + i]),
        ]
        Writer(m, dut.write[i], inputs)

    held_stable(m, axi, "ar", ("id", "addr", "len", "size", "burst", "lock", "cache", "prot"))
    held_stable(m, axi, "aw", ("id", "addr", "len", "size", "burst", "lock", "cache", "prot"))
    held_stable(m, axi, "w", ("data", "strb", "last"))

    for channel in ("ar", "aw"):  # bursts: known client, no more than the longest, within a page, whole words
        valid, length = getattr(axi, f"{channel}valid"), getattr(axi, f"{channel}len")
        addr, ident = getattr(axi, f"{channel}addr"), getattr(axi, f"{channel}id")
        end = addr[:12] + (length + 1) * PARAMS.dram_word
        m.d.comb += [
            Assert(~valid | (length < PARAMS.axi_burst_beats)),
            Assert(~valid | (end <= _PAGE)),
            Assert(~valid | (addr[:3] == 0)),
            Assert(~valid | (ident < CLIENTS)),
            Assert(getattr(axi, f"{channel}burst") == 1),
        ]

    # Every word belongs to an address that was chosen before it, and WLAST is on the last of its burst and no other.
    bursts = [Signal(range(PARAMS.axi_burst_beats + 1), name=f"open{i}") for i in range(3)]  # words that are left
    chosen, length = Signal(), Signal.like(bursts[0])
    grants = Cat(dut.write[i].req.valid & dut.write[i].req.ready for i in range(CLIENTS))
    m.d.comb += [chosen.eq(grants.any()), length.eq(Mux(grants[0], dut.write[0].req.p.beats, dut.write[1].req.p.beats))]
    sent = axi.wvalid & axi.wready
    m.d.comb += [
        Assert((grants & (grants - 1)) == 0),
        Assert(~axi.wvalid | (bursts[0] != 0)),
        Assert(~axi.wvalid | (axi.wlast == (bursts[0] == 1))),
        Assert(~chosen | (bursts[2] == 0)),
    ]
    after = [Signal.like(bursts[0], name=f"left{i}") for i in range(3)]
    m.d.comb += [after[i].eq(bursts[i]) for i in range(3)]
    with m.If(sent):
        m.d.comb += after[0].eq(bursts[0] - 1)
        with m.If(bursts[0] == 1):
            m.d.comb += [after[i].eq(bursts[i + 1] if i < 2 else 0) for i in range(3)]
    m.d.sync += [bursts[i].eq(after[i]) for i in range(3)]
    with m.If(chosen):
        with m.If(after[0] == 0):
            m.d.sync += bursts[0].eq(length)
        with m.Elif(after[1] == 0):
            m.d.sync += bursts[1].eq(length)
        with m.Else():
            m.d.sync += bursts[2].eq(length)

    # Answers reach the client that they name, and no other; none is held up but by a client that does not take its own.
    for channel, clients in (("r", [p.data for p in dut.read]), ("b", [p.rsp for p in dut.write])):
        valid, ready, ident = (getattr(axi, f"{channel}{name}") for name in ("valid", "ready", "id"))
        due = Signal(CLIENTS, name=f"{channel}_due")
        offered = Cat(client.valid for client in clients)
        refused = Cat(client.valid & ~client.ready for client in clients)
        with m.If(ready):
            m.d.sync += due.eq(Cat(valid & (ident == i) for i in range(CLIENTS)))
        m.d.comb += [Assert(offered == due), Assert(ready == ~refused.any())]
    return m, inputs


@pytest.mark.formal
@pytest.mark.parametrize("verilog", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_the_memory_port_keeps_to_axi_for_ever(tmp_path, verilog):
    dut = AxiInterconnect(PARAMS, readers=CLIENTS, writers=CLIENTS)
    m, inputs = port_claims(dut)
    prove_for_ever(m, inputs, tmp_path, verilog=verilog)


class Mutant(AxiInterconnect):
    """One line of the port is wrong."""

    def __init__(self, wrong: str) -> None:
        super().__init__(PARAMS, readers=CLIENTS, writers=CLIENTS)
        self.wrong = wrong

    def elaborate(self, platform) -> Module:
        m = super().elaborate(platform)
        axi = self.axi
        changes = {
            "an address changes while it waits": axi.araddr.eq(axi.araddr ^ _PAGE),
            "an address is withdrawn": axi.awvalid.eq(0),
            "the last word is not marked": axi.wlast.eq(0),
            "attributes change while an address waits": axi.arcache.eq(self.attributes.arcache),
        }
        with m.If(axi.awvalid | axi.arvalid | axi.wvalid):
            m.d.sync += changes[self.wrong]
        return m


@pytest.mark.formal
@pytest.mark.parametrize(
    "wrong",
    [
        "an address changes while it waits",
        "an address is withdrawn",
        "the last word is not marked",
        "attributes change while an address waits",
    ],
)
def test_a_wrong_memory_port_is_caught(tmp_path, wrong):
    m, inputs = port_claims(Mutant(wrong))
    with pytest.raises(AssertionError, match="Assert failed"):
        prove_for_ever(m, inputs, tmp_path)
