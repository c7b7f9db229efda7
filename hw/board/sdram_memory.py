"""Defines the memory of a machine whose chip stands outside: SDRAM behind an AXI4 slave port, shared with the host."""

import enum

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.board.memory import RESP_DECERR, MemoryPort
from hw.board.sdram import WORD_BYTES, SdramController, SdramPins
from hw.contract.params import SocParams
from hw.contract.sdram import SdramTiming
from hw.interfaces import AXI_ID_WIDTH, Axi4

_AHEAD = 16  #: words that may have been read before the master takes them
_LOW = (WORD_BYTES - 1).bit_length()  #: bits of an address below a word's


class _Turn(enum.IntEnum):
    READ = 0
    WRITE = 1
    HOST = 2


class SdramMemory(wiring.Component):
    """Holds ``params.dram_bytes`` bytes, of at most :data:`hw.contract.sdram.SIZE`, as
    :class:`hw.board.memory.BlockMemory` does, four cycles to a word. A burst of reads, one of writes and the host take
    turns, whole bursts as long as they do not wait for their master.

    Members
    -------
    axi : In(Axi4)
        Incrementing bursts of whole words within a page of 4 KiB.
    host : In(MemoryPort)
        ``ready`` comes when the access is done.
    pins : Out(SdramPins)
    """

    def __init__(self, params: SocParams, timing: SdramTiming) -> None:
        self._high, self._timing = (params.dram_bytes - 1).bit_length(), timing
        super().__init__(
            {
                "axi": In(Axi4(data_bytes=WORD_BYTES, id_width=AXI_ID_WIDTH)),
                "host": In(MemoryPort(WORD_BYTES)),
                "pins": Out(SdramPins()),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.controller = chip = SdramController(self._timing)
        connect(m, flipped(self.pins), chip.pins)
        ask = chip.request.payload
        turn, wants = Signal(_Turn), Signal(len(_Turn))
        taken = [chip.request.ready & (turn == one) for one in _Turn]
        words = (
            self._read(m, chip, wants[_Turn.READ], taken[_Turn.READ]),
            self._write(m, wants[_Turn.WRITE], taken[_Turn.WRITE]),
            self._serve_host(m, chip, wants[_Turn.HOST], taken[_Turn.HOST]),
        )
        m.d.comb += [ask.write.eq(turn == _Turn.WRITE), ask.data.eq(self.axi.wdata), ask.en.eq(self.axi.wstrb)]
        with m.Switch(turn):
            for one in _Turn:
                after, last = _Turn((one + 1) % len(_Turn)), _Turn((one + 2) % len(_Turn))
                with m.Case(one):
                    m.d.comb += [chip.request.valid.eq(wants[one]), ask.addr.eq(words[one])]
                    with m.If(~wants[one]):
                        m.d.sync += turn.eq(Mux(wants[after], after, Mux(wants[last], last, one)))
        with m.If(turn == _Turn.HOST):
            host = self.host.req.payload
            m.d.comb += [ask.write.eq(host.write), ask.data.eq(host.data), ask.en.eq(host.en), ask.tag.eq(1)]
        return m

    def _word(self, address) -> tuple:
        """Return the number of the word at a byte address, and whether the memory ends before it."""
        return address[_LOW : self._high], address[self._high :].any()

    def _read(self, m: Module, chip: SdramController, wants, taken) -> Signal:
        """Read bursts of the machine; returns the word to be read next. Words are asked for as there is room."""
        axi = self.axi
        m.submodules.came = came = SyncFIFOBuffered(width=8 * WORD_BYTES, depth=_AHEAD)
        word, beyond = self._word(axi.araddr)
        next_word, to_ask, to_give, failed = Signal.like(word), Signal(9), Signal(9), Signal()
        room, gives = Signal(range(_AHEAD + 1), init=_AHEAD), Signal()
        m.d.comb += [
            wants.eq((to_ask != 0) & (room != 0)),
            came.w_en.eq(chip.read_valid & ~chip.read_tag),
            came.w_data.eq(chip.read_data),
            axi.arready.eq(to_give == 0),
            axi.rvalid.eq((to_give != 0) & (failed | came.r_rdy)),
            axi.rdata.eq(Mux(failed, 0, came.r_data)),
            axi.rresp.eq(Mux(failed, RESP_DECERR, 0)),
            axi.rlast.eq(to_give == 1),
            gives.eq(axi.rvalid & axi.rready),
            came.r_en.eq(gives & ~failed),
        ]
        with m.If(axi.arvalid & axi.arready):
            m.d.sync += [
                to_give.eq(axi.arlen + 1), to_ask.eq(Mux(beyond, 0, axi.arlen + 1)), next_word.eq(word),
                failed.eq(beyond), axi.rid.eq(axi.arid),
            ]  # fmt: skip
        with m.If(taken):
            m.d.sync += [to_ask.eq(to_ask - 1), next_word.eq(next_word + 1)]
        with m.If(gives):
            m.d.sync += to_give.eq(to_give - 1)
        m.d.sync += room.eq(room - taken + came.r_en)
        return next_word

    def _write(self, m: Module, wants, taken) -> Signal:
        """Write bursts of the machine; returns the word to be written next."""
        axi = self.axi
        word, beyond = self._word(axi.awaddr)
        next_word, busy, failed = Signal.like(word), Signal(), Signal()
        m.d.comb += [
            wants.eq(busy & axi.wvalid & ~failed),
            axi.awready.eq(~busy & ~axi.bvalid),
            axi.wready.eq(busy & failed | taken),
        ]
        with m.If(axi.awvalid & axi.awready):
            m.d.sync += [busy.eq(1), next_word.eq(word), failed.eq(beyond), axi.bid.eq(axi.awid)]
        with m.If(axi.wvalid & axi.wready):
            m.d.sync += next_word.eq(next_word + 1)
            with m.If(axi.wlast):
                m.d.sync += [busy.eq(0), axi.bvalid.eq(1), axi.bresp.eq(Mux(failed, RESP_DECERR, 0))]
        with m.If(axi.bvalid & axi.bready):
            m.d.sync += axi.bvalid.eq(0)
        return next_word

    def _serve_host(self, m: Module, chip: SdramController, wants, taken) -> Value:
        """Do what the host asks for; returns its word."""
        host = self.host
        asked, found = Signal(), Signal()
        m.d.comb += [
            wants.eq(host.req.valid & ~asked),
            host.req.ready.eq(Mux(host.req.payload.write, taken, found)),
            found.eq(chip.read_valid & chip.read_tag),
        ]
        m.d.sync += [host.rsp_valid.eq(found), host.rsp_data.eq(chip.read_data)]
        with m.If(found):
            m.d.sync += asked.eq(0)
        with m.Elif(taken & ~host.req.payload.write):
            m.d.sync += asked.eq(1)
        return host.req.payload.addr[: self._high - _LOW]
