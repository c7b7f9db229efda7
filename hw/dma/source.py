"""Defines the sources of a copy unit, which fetch the words that runs read, ahead of their use."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.contract.params import SocParams
from hw.contract.timing import WORDS_AHEAD
from hw.dma.layouts import StreamFifo, log2, run_layout, word_index, word_layout
from hw.interfaces import ADDR, PC, BusReadPort, ReadPort

BUS_SOURCE_TAG = {"pc": PC, "src": ADDR}  #: what a run from DRAM carries, to name the one that failed


class ScratchpadSource(wiring.Component):
    """Fetches from a scratchpad, one word per cycle. It has a credit per queue entry, since responses cannot wait.

    Members: ``run``: In(stream of runs that read), ``word``: Out(stream), ``port``: Out(ReadPort), ``stop``: In, ask
    for nothing more; ``stalled``: Out, a request is refused this cycle; ``busy``: Out, requests or words are pending.
    """

    def __init__(self, word_bytes: int, tag: dict, addr_width: int) -> None:
        self._word_bytes = word_bytes
        super().__init__(
            {
                "run": In(stream.Signature(run_layout(word_bytes, tag))),
                "word": Out(stream.Signature(word_layout(word_bytes))),
                "port": Out(ReadPort(addr_width, word_bytes)),
                "stop": In(1),
                "stalled": Out(1),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.words = words = StreamFifo(8 * self._word_bytes, WORDS_AHEAD)
        run, req = self.run.payload, self.port.req

        # Step through the words of the head run into the request register.
        here, following = (Signal(word_index(self._word_bytes), name=name) for name in ("here", "following"))
        begun, last = Signal(), Signal()
        credits = Signal(range(WORDS_AHEAD + 1), init=WORDS_AHEAD)
        load = Signal()
        m.d.comb += [
            here.eq(Mux(begun, following, run.src_first)),
            last.eq(Mux(begun, following == run.src_last, run.src_first == run.src_last)),
            load.eq(self.run.valid & (credits != 0) & (~req.valid | req.ready) & ~self.stop),
            self.run.ready.eq(load & last | self.stop),
        ]
        with m.If(req.ready):
            m.d.sync += req.valid.eq(0)
        with m.If(load):
            m.d.sync += [req.valid.eq(1), req.payload.eq(run.src + here), begun.eq(~last), following.eq(here + 1)]

        take = words.o.valid & words.o.ready
        with m.If(load & ~take):
            m.d.sync += credits.eq(credits - 1)
        with m.If(take & ~load):
            m.d.sync += credits.eq(credits + 1)

        m.d.comb += [
            words.i.valid.eq(self.port.rsp_valid),
            words.i.payload.eq(self.port.rsp_data),
            self.word.valid.eq(words.o.valid),
            self.word.payload.data.eq(words.o.payload),
            words.o.ready.eq(self.word.ready),
            self.stalled.eq(req.valid & ~req.ready),
            self.busy.eq(credits != WORDS_AHEAD),
        ]
        return m


class BusSource(wiring.Component):
    """Fetches from DRAM in bursts, up to ``axi_outstanding`` in flight, across runs.

    Bursts end at multiples of ``axi_burst_beats`` words, so they never cross 4 KiB.

    Members: as :class:`ScratchpadSource`, with ``port``: Out(BusReadPort).
    """

    def __init__(self, params: SocParams, tag: dict) -> None:
        self._params = params
        super().__init__(
            {
                "run": In(stream.Signature(run_layout(params.dram_word, tag))),
                "word": Out(stream.Signature(word_layout(params.dram_word))),
                "port": Out(BusReadPort(params)),
                "stop": In(1),
                "stalled": Out(1),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        params = self._params
        run, req, answer = self.run.payload, self.port.req, self.port.data

        # Cut the head run into bursts.
        index = Signal(word_index(params.dram_word))  # counts from the first word that is read
        here = Signal.like(index)
        left = Signal.like(index)  # words after this one
        addr = Signal.like(run.src)
        to_boundary = Signal(range(params.axi_burst_beats))  # words after this one up to the next boundary
        last = Signal()
        more = Signal.like(to_boundary)  # words of the burst after the first
        m.d.comb += [
            here.eq(run.src_first + index),
            left.eq(run.src_last - here),
            addr.eq(run.src + here),
            to_boundary.eq(~addr),
            last.eq(left <= to_boundary),
            more.eq(Mux(last, left, to_boundary)),
        ]

        in_flight = Signal(range(params.axi_outstanding + 1))
        load, returned = Signal(), Signal()
        m.d.comb += [
            load.eq(self.run.valid & (in_flight != params.axi_outstanding) & (~req.valid | req.ready) & ~self.stop),
            self.run.ready.eq(load & last | self.stop),
            returned.eq(answer.valid & answer.ready & answer.payload.last),
        ]
        with m.If(req.ready):
            m.d.sync += req.valid.eq(0)
        with m.If(load):
            m.d.sync += [
                req.valid.eq(1),
                req.payload.addr.eq(addr << log2(params.dram_word)),
                req.payload.beats.eq(more + 1),
                index.eq(Mux(last, 0, index + more + 1)),
            ]
        with m.If(load & ~returned):
            m.d.sync += in_flight.eq(in_flight + 1)
        with m.If(returned & ~load):
            m.d.sync += in_flight.eq(in_flight - 1)

        m.d.comb += [
            self.word.valid.eq(answer.valid),
            self.word.payload.data.eq(answer.payload.data),
            self.word.payload.error.eq(answer.payload.error),
            answer.ready.eq(self.word.ready),
            self.stalled.eq((req.valid & ~req.ready) | (in_flight != 0) & ~answer.valid),
            self.busy.eq(in_flight != 0),
        ]
        return m
