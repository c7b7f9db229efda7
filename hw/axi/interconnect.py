"""Defines the AXI4 master of the SoC, which joins many DRAM clients to one port."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.axi.arbiter import RoundRobinArbiter
from hw.contract.params import SocParams
from hw.contract.regs import GLOBAL_REGS
from hw.interfaces import AXI_ID_WIDTH, Axi4, BusReadPort, BusWritePort
from hw.registers import word_layout

BURST_INCR = 1
#: AxCACHE and AxPROT of reads and of writes, as the register AXI_ATTRIBUTES has them.
ATTRIBUTES: data.Layout = word_layout(next(reg for reg in GLOBAL_REGS if reg.name == "AXI_ATTRIBUTES"))


class AxiInterconnect(wiring.Component):
    """Joins ``readers`` read clients and ``writers`` write clients to one AXI4 master port.

    Client i uses AXI ID i, so the slave may reorder and interleave between clients, but every client sees its
    data and its responses in request order. Requests are granted round robin, one burst at a time. Write data
    follows the order of the granted requests.

    Every channel has one register stage, so no AXI output depends combinationally on an AXI input. A reader that
    does not take its data holds up the data of all others, and so does a writer that was granted a burst and has
    no data for it: clients reserve room, or have their data at hand, before they ask.

    Members
    -------
    read : In(BusReadPort(params)).array(readers)
    write : In(BusWritePort(params)).array(writers)
    attributes : In(ATTRIBUTES)
        Of bursts that are accepted from now on; a burst keeps its own.
    axi : Out(Axi4)
        ``params.dram_word`` data bytes, ``AXI_ID_WIDTH`` ID bits.
    """

    def __init__(self, params: SocParams, *, readers: int, writers: int) -> None:
        for name, count in (("readers", readers), ("writers", writers)):
            if not 1 <= count <= 1 << AXI_ID_WIDTH:
                raise ValueError(f"{name} must be 1 to {1 << AXI_ID_WIDTH} (one AXI ID each), not {count!r}")
        self.params = params
        self.readers = readers
        self.writers = writers
        super().__init__(
            {
                "read": In(BusReadPort(params)).array(readers),
                "write": In(BusWritePort(params)).array(writers),
                "attributes": In(ATTRIBUTES),
                "axi": Out(Axi4(data_bytes=params.dram_word, id_width=AXI_ID_WIDTH)),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        read = [self.read[i] for i in range(self.readers)]
        write = [self.write[i] for i in range(self.writers)]
        self._constants(m)
        self._read_address(m, [port.req for port in read])
        self._read_data(m, [port.data for port in read])
        owner, owner_taken = self._write_address(m, [port.req for port in write])
        self._write_data(m, [port.data for port in write], owner, owner_taken)
        self._write_response(m, [port.rsp for port in write])
        return m

    def _constants(self, m: Module) -> None:
        size = (self.params.dram_word - 1).bit_length()
        for channel in ("ar", "aw"):
            m.d.comb += [
                getattr(self.axi, f"{channel}size").eq(size),
                getattr(self.axi, f"{channel}burst").eq(BURST_INCR),
            ]

    def _request(self, m: Module, channel: str, requests: list, room: Value) -> tuple[Signal, Signal]:
        """Arbitrate ``requests`` into the registers of an address channel; return (grant, accepted)."""
        axi = self.axi
        valid, ready = getattr(axi, f"{channel}valid"), getattr(axi, f"{channel}ready")
        m.submodules[f"{channel}_arbiter"] = arbiter = RoundRobinArbiter(len(requests))
        free, accepted = Signal(), Signal()
        m.d.comb += [
            arbiter.requests.eq(Cat(req.valid for req in requests)),
            free.eq((~valid | ready) & room),
            accepted.eq(free & arbiter.grant.any()),
            arbiter.taken.eq(accepted),
            *(req.ready.eq(free & arbiter.grant[i]) for i, req in enumerate(requests)),
        ]
        chosen = one_hot_mux(arbiter.grant, [Cat(req.p.addr, req.p.beats) for req in requests])
        addr_bits = len(requests[0].p.addr)
        with m.If(ready):
            m.d.sync += valid.eq(0)
        with m.If(accepted):
            m.d.sync += [
                valid.eq(1),
                getattr(axi, f"{channel}id").eq(one_hot_index(arbiter.grant)),
                getattr(axi, f"{channel}addr").eq(chosen[:addr_bits]),
                getattr(axi, f"{channel}len").eq(chosen[addr_bits:] - 1),
                *(
                    getattr(axi, f"{channel}{what}").eq(getattr(self.attributes, f"{channel}{what}"))
                    for what in ("cache", "prot")
                ),
            ]
        return arbiter.grant, accepted

    def _read_address(self, m: Module, requests: list) -> None:
        self._request(m, "ar", requests, Const(1))

    def _read_data(self, m: Module, clients: list[stream.Interface]) -> None:
        axi = self.axi
        select = Signal(self.readers)
        beat = Signal.like(clients[0].p)
        taken = self._route(m, clients, select, beat)
        m.d.comb += axi.rready.eq(taken)
        with m.If(axi.rready):
            m.d.sync += [
                select.eq(decode(axi.rid, self.readers) & axi.rvalid.replicate(self.readers)),
                beat.data.eq(axi.rdata),
                beat.last.eq(axi.rlast),
                beat.error.eq(axi.rresp[1]),
            ]

    def _write_address(self, m: Module, requests: list) -> tuple[Signal, Signal]:
        """Return the one-hot owner of the W channel, zero for none, and the signal that retires it."""
        owner, following = Signal(self.writers), Signal(self.writers)
        owner_taken = Signal()
        grant, accepted = self._request(m, "aw", requests, ~following.any())
        with m.If(owner_taken | ~owner.any()):
            m.d.sync += [
                owner.eq(Mux(following.any(), following, grant & accepted.replicate(self.writers))),
                following.eq(0),
            ]
        with m.Elif(accepted):
            m.d.sync += following.eq(grant)
        return owner, owner_taken

    def _write_data(self, m: Module, clients: list, owner: Signal, owner_taken: Signal) -> None:
        axi = self.axi
        free, offered = Signal(), Signal()
        chosen = Signal.like(clients[0].p)
        m.d.comb += [
            free.eq(~axi.wvalid | axi.wready),
            offered.eq((owner & Cat(client.valid for client in clients)).any()),
            chosen.as_value().eq(one_hot_mux(owner, [client.p.as_value() for client in clients])),
            owner_taken.eq(free & offered & chosen.last),
            *(client.ready.eq(free & owner[i]) for i, client in enumerate(clients)),
        ]
        with m.If(free):
            m.d.sync += [
                axi.wvalid.eq(offered),
                axi.wdata.eq(chosen.data),
                axi.wstrb.eq(chosen.strb),
                axi.wlast.eq(chosen.last),
            ]

    def _write_response(self, m: Module, clients: list) -> None:
        axi = self.axi
        select = Signal(self.writers)
        response = Signal.like(clients[0].p)
        taken = self._route(m, clients, select, response)
        m.d.comb += axi.bready.eq(taken)
        with m.If(axi.bready):
            m.d.sync += [
                select.eq(decode(axi.bid, self.writers) & axi.bvalid.replicate(self.writers)),
                response.error.eq(axi.bresp[1]),
            ]

    @staticmethod
    def _route(m: Module, clients: list, select: Signal, payload) -> Signal:
        """Offer ``payload`` to the client in one-hot ``select``; return whether the register may be loaded."""
        taken = Signal()
        m.d.comb += taken.eq((select & ~Cat(client.ready for client in clients)) == 0)
        for i, client in enumerate(clients):
            m.d.comb += [client.valid.eq(select[i]), client.p.eq(payload)]
        return taken


def one_hot_mux(select: Value, values: list[Value]) -> Value:
    """Return the value whose bit of ``select`` is set, zero for none."""
    result = values[0] & select[0].replicate(len(values[0]))
    for i, value in enumerate(values[1:], 1):
        result |= value & select[i].replicate(len(value))
    return result


def one_hot_index(select: Value) -> Value:
    """Return the position of the bit that is set, zero for none."""
    width = max(1, (len(select) - 1).bit_length())
    return Cat(Cat(select[i] for i in range(len(select)) if i >> bit & 1).any() for bit in range(width))


def decode(index: Value, count: int) -> Value:
    """Return ``index`` as a one-hot number of ``count`` bits; it is zero if ``index`` is ``count`` or more."""
    return Cat(index == i for i in range(count))
