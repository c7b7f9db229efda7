"""Defines a banked scratchpad: LV1 of an engine, and the LV2 that all engines share."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.memory import Memory, MemoryData
from amaranth.lib.wiring import In, Out

from hw.block_ram import NO_COLLISION
from hw.interfaces import ReadPort, WritePort


def word_bits(size_bytes: int, word_bytes: int) -> int:
    """Return the bits of a word address of a memory of ``size_bytes`` bytes."""
    return (size_bytes // word_bytes - 1).bit_length()


class Scratchpad(wiring.Component):
    """Serves several read and write ports from word-interleaved banks (bank = word address modulo ``banks``).

    Each bank serves one read and one write per cycle, independently of each other. A bank takes the first client from
    a position, common to all banks, that moves on in every cycle in which some client must wait; so a client waits
    for fewer cycles than there are clients, where no words collide.

    A write waits while a reader asks for its word, so that no row is read while it is written; readers get the old
    bytes. The position of writers stays for that time. After two such cycles no bank reads for one, and the position of
    readers stays: however often readers ask for its word, a writer waits for fewer cycles than three times the writers,
    and a reader for fewer than twice the readers.

    Members: ``read``: array of ``readers`` :class:`ReadPort`; ``write``: array of ``writers`` :class:`WritePort`.
    ``data`` holds one ``MemoryData`` per bank, the simulation's back door.
    """

    def __init__(self, size_bytes: int, word_bytes: int, banks: int, readers: int, writers: int) -> None:
        if size_bytes % (word_bytes * banks) or banks & (banks - 1):
            raise ValueError(
                "size must be a multiple of word * banks, and banks a power of two, not "
                f"{size_bytes}, {word_bytes}, {banks}"
            )
        self.word_bytes = word_bytes
        self.addr_width = word_bits(size_bytes, word_bytes)
        self.bank_bits = (banks - 1).bit_length()
        rows = size_bytes // word_bytes // banks
        self._pause = Signal()  # reads wait for a write that has waited for them
        self.data = [MemoryData(shape=8 * word_bytes, depth=rows, init=[]) for _ in range(banks)]
        super().__init__(
            {
                "read": In(ReadPort(self.addr_width, word_bytes)).array(readers),
                "write": In(WritePort(self.addr_width, word_bytes)).array(writers),
            }
        )

    def elaborate(self, platform):
        m = Module()
        reads = [port.req for port in self.read]
        writes = [port.req for port in self.write]
        pause = self._pause
        collides = self._collisions(reads, writes)
        held_back, again = Signal(), Signal()
        m.d.comb += held_back.eq(Cat(req.valid for req in writes) & collides != 0)
        m.d.sync += [again.eq(held_back), pause.eq(held_back & again)]
        read_turn = _turn(m, reads, pause, "read_turn")
        write_turn = _turn(m, writes, held_back, "write_turn")
        read_hits = [
            _bank_hits(m, req.valid & ~pause, req.payload, self.bank_bits, f"read{c}") for c, req in enumerate(reads)
        ]
        write_hits = [
            _bank_hits(m, req.valid, req.payload.addr, self.bank_bits, f"write{c}") for c, req in enumerate(writes)
        ]
        read_grants, write_grants, outputs = [], [], []

        for b, contents in enumerate(self.data):
            m.submodules[f"bank{b}"] = memory = Memory(contents, attrs=NO_COLLISION)
            write_port = memory.write_port(granularity=8)
            read_port = memory.read_port()

            grant = _arbitrate(m, [hits[b] for hits in read_hits], read_turn, f"read_grant{b}")
            read_grants.append(grant)
            m.d.comb += read_port.en.eq(grant.any())
            for c, req in enumerate(reads):
                with m.If(grant[c]):
                    m.d.comb += read_port.addr.eq(req.payload[self.bank_bits :])
            outputs.append(read_port.data)

            grant = _arbitrate(m, [hits[b] for hits in write_hits], write_turn, f"write_grant{b}")
            write_grants.append(grant)
            for c, req in enumerate(writes):
                with m.If(grant[c]):
                    m.d.comb += [
                        write_port.addr.eq(req.payload.addr[self.bank_bits :]),
                        write_port.data.eq(req.payload.data),
                        write_port.en.eq(Mux(collides[c], 0, req.payload.en)),
                    ]

        for c, port in enumerate(self.read):
            answering = Signal(len(self.data), name=f"answering{c}")  # one-hot: the bank that answers this client
            m.d.sync += answering.eq(Cat(grant[c] for grant in read_grants))
            m.d.comb += [port.req.ready.eq(Cat(g[c] for g in read_grants).any()), port.rsp_valid.eq(answering.any())]
            for b, output in enumerate(outputs):
                with m.If(answering[b]):
                    m.d.comb += port.rsp_data.eq(output)
        for c, req in enumerate(writes):
            m.d.comb += req.ready.eq(Cat(g[c] for g in write_grants).any() & ~collides[c])
        return m

    def _collisions(self, reads: list, writes: list) -> Value:
        """Return by writer whether a reader asks for its word. Its grant is known too late for that."""
        return Cat(
            Cat(read.valid & (read.payload == write.payload.addr) for read in reads).any() & ~self._pause
            for write in writes
        )


def _turn(m: Module, clients: list, stays: Signal, name: str) -> Signal:
    """Return a mask of the clients from the one whose turn it is upwards; the turn moves on while some client waits,
    but for cycles in which it ``stays``."""
    mask = Signal(len(clients), name=name, init=(1 << len(clients)) - 1)
    with m.If(Cat(req.valid & ~req.ready for req in clients).any() & ~stays):
        m.d.sync += mask.eq(Mux(mask[:-1].any(), mask << 1, ~0))
    return mask


def _bank_hits(m: Module, valid, addr, bank_bits: int, name: str) -> Signal:
    """Return, one-hot, the bank that each client asks for."""
    hits = Signal(1 << bank_bits, name=f"{name}_hits")
    m.d.comb += hits.eq(valid << addr[:bank_bits])
    return hits


def _arbitrate(m: Module, requests: list, turn: Signal, name: str) -> Signal:
    """Return the grant, one-hot: the first requesting client of those in ``turn``, or else the first of all."""
    grant = Signal(len(requests), name=name)
    asked = Cat(requests)
    ahead = asked & turn
    chosen = Mux(ahead.any(), ahead, asked)
    m.d.comb += grant.eq(chosen & (~chosen + 1))
    return grant


class NarrowWrite(wiring.Component):
    """Puts a write port of ``narrow_bytes`` onto one of ``wide_bytes``: data is replicated, byte enables stand in their
    lane.

    Members: ``narrow``: In(WritePort), ``wide``: Out(WritePort); word addresses each in words of its own width.
    """

    def __init__(self, addr_width: int, wide_bytes: int, narrow_bytes: int) -> None:
        self._lane_bits = (wide_bytes // narrow_bytes - 1).bit_length()
        super().__init__(
            {
                "narrow": In(WritePort(addr_width + self._lane_bits, narrow_bytes)),
                "wide": Out(WritePort(addr_width, wide_bytes)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        narrow, wide = self.narrow.req, self.wide.req
        lanes = 1 << self._lane_bits
        m.d.comb += [
            wide.valid.eq(narrow.valid),
            narrow.ready.eq(wide.ready),
            wide.payload.addr.eq(narrow.payload.addr[self._lane_bits :]),
            wide.payload.data.eq(narrow.payload.data.replicate(lanes)),
        ]
        lane = narrow.payload.addr[: self._lane_bits]
        for i in range(lanes):
            with m.If(lane == i):
                m.d.comb += wide.payload.en.word_select(i, len(narrow.payload.en)).eq(narrow.payload.en)
        return m


class NarrowRead(wiring.Component):
    """Puts a read port of ``narrow_bytes`` onto one of ``wide_bytes``: the lane is picked when the response comes.

    Members: ``narrow``: In(ReadPort), ``wide``: Out(ReadPort); word addresses each in words of its own width.
    """

    def __init__(self, addr_width: int, wide_bytes: int, narrow_bytes: int) -> None:
        self._lane_bits = (wide_bytes // narrow_bytes - 1).bit_length()
        super().__init__(
            {
                "narrow": In(ReadPort(addr_width + self._lane_bits, narrow_bytes)),
                "wide": Out(ReadPort(addr_width, wide_bytes)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        narrow, wide = self.narrow, self.wide
        lane = Signal(self._lane_bits)
        m.d.comb += [
            wide.req.valid.eq(narrow.req.valid),
            narrow.req.ready.eq(wide.req.ready),
            wide.req.payload.eq(narrow.req.payload[self._lane_bits :]),
            narrow.rsp_valid.eq(wide.rsp_valid),
        ]
        m.d.sync += lane.eq(narrow.req.payload[: self._lane_bits])
        for i in range(1 << self._lane_bits):
            with m.If(lane == i):
                m.d.comb += narrow.rsp_data.eq(wide.rsp_data.word_select(i, len(narrow.rsp_data)))
        return m
