"""Defines the destinations of a copy unit, which put finished words into a scratchpad, LV0 or DRAM, and say when a
command is done."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.contract.params import SocParams
from hw.contract.timing import WORDS_BEHIND
from hw.dma.layouts import StreamFifo, beat_layout, log2
from hw.interfaces import ADDR, PC, BusWritePort, Lv0WritePort, WritePort

LV0_TAG = {"pe_mask": 16, "space": 2, "view": 1}  #: what a beat for LV0 carries
BUS_SINK_TAG = {"pc": PC, "dst": ADDR}  #: what a beat for DRAM carries, to name a run that failed


class ScratchpadSink(wiring.Component):
    """Writes to a scratchpad; a word has landed when the port takes it.

    Members: ``beat``: In(stream), ``port``: Out(WritePort), ``done``: Out, the last word of a command has landed;
    ``stalled``: Out, a write is refused this cycle; ``busy``: Out, something is pending here.
    """

    def __init__(self, word_bytes: int, tag: dict, addr_width: int) -> None:
        super().__init__(
            {
                "beat": In(stream.Signature(beat_layout(word_bytes, tag))),
                "port": Out(WritePort(addr_width, word_bytes)),
                "done": Out(1),
                "stalled": Out(1),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        beat, req = self.beat.payload, self.port.req
        m.d.comb += [
            req.valid.eq(self.beat.valid),
            req.payload.addr.eq(beat.addr),
            req.payload.data.eq(beat.data),
            req.payload.en.eq(beat.en),
            self.beat.ready.eq(req.ready),
            self.done.eq(req.valid & req.ready & beat.final & (beat.remaining == 0)),
            self.stalled.eq(req.valid & ~req.ready),
        ]
        return m


class Lv0Sink(wiring.Component):
    """Writes to LV0, which never refuses. Members: as :class:`ScratchpadSink`, with ``port``: Out(Lv0WritePort)."""

    def __init__(self, params: SocParams) -> None:
        super().__init__(
            {
                "beat": In(stream.Signature(beat_layout(params.lv1_word, LV0_TAG))),
                "port": Out(Lv0WritePort(params)),
                "done": Out(1),
                "stalled": Out(1),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        beat, port = self.beat.payload, self.port
        m.d.comb += [
            port.valid.eq(self.beat.valid),
            port.addr.eq(beat.addr),
            port.data.eq(beat.data),
            port.en.eq(beat.en),
            port.space.eq(beat.tag.space),
            port.view.eq(beat.tag.view),
            port.pe_mask.eq(beat.tag.pe_mask),
            self.beat.ready.eq(1),
            self.done.eq(self.beat.valid & beat.final & (beat.remaining == 0)),
        ]
        return m


class BusSink(wiring.Component):
    """Writes to DRAM in bursts that end at multiples of ``axi_burst_beats`` words; byte enables become strobes.

    A burst that has been announced is always completed: with ``discard`` its missing words are sent without strobes.

    Members: as :class:`ScratchpadSink`, with ``port``: Out(BusWritePort); ``done``: all writes of a command have been
    answered; ``discard``: In; ``error``: Out, a write was answered with an error, ``error_tag`` is its run's
    tag.
    """

    def __init__(self, params: SocParams) -> None:
        self._params = params
        super().__init__(
            {
                "beat": In(stream.Signature(beat_layout(params.dram_word, BUS_SINK_TAG))),
                "port": Out(BusWritePort(params)),
                "discard": In(1),
                "done": Out(1),
                "error": Out(1),
                "error_tag": Out(data.StructLayout(BUS_SINK_TAG)),
                "stalled": Out(1),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        params = self._params
        beat, req, rsp = self.beat.payload, self.port.req, self.port.rsp
        tag = data.StructLayout(BUS_SINK_TAG)
        m.submodules.words = words = StreamFifo(self.port.data.payload.shape(), WORDS_BEHIND)
        m.submodules.unanswered = unanswered = StreamFifo(
            data.StructLayout({"final": 1, "tag": tag}), params.axi_outstanding
        )
        wiring.connect(m, words.o, wiring.flipped(self.port.data))

        # A word goes into the queue; the first of a burst announces it at the same time, well ahead of its data.
        left = Signal(range(params.axi_burst_beats))  # words the open burst still lacks
        to_boundary, more = Signal.like(left), Signal.like(left)
        ends_run = Signal()
        opens, announce, load, padding = Signal(), Signal(), Signal(), Signal()
        can_announce = (~req.valid | req.ready) & unanswered.i.ready & ~self.discard
        m.d.comb += [
            opens.eq(left == 0),
            to_boundary.eq(~beat.addr),
            ends_run.eq(beat.remaining <= to_boundary),
            more.eq(Mux(ends_run, beat.remaining, to_boundary)),
            padding.eq(self.discard & ~opens),
            words.i.valid.eq(Mux(opens, self.beat.valid & can_announce, self.beat.valid | padding)),
            words.i.payload.data.eq(beat.data),
            words.i.payload.strb.eq(Mux(padding, 0, beat.en)),
            words.i.payload.last.eq(Mux(opens, more == 0, left == 1)),
            load.eq(words.i.valid & words.i.ready),
            announce.eq(load & opens),
            self.beat.ready.eq(load | self.discard),
            unanswered.i.valid.eq(announce),
            unanswered.i.payload.final.eq(ends_run & beat.final),
            unanswered.i.payload.tag.eq(beat.tag),
        ]
        with m.If(req.ready):
            m.d.sync += req.valid.eq(0)
        with m.If(announce):
            m.d.sync += [
                req.valid.eq(1),
                req.payload.addr.eq(beat.addr << log2(params.dram_word)),
                req.payload.beats.eq(more + 1),
            ]
        with m.If(load):
            m.d.sync += left.eq(Mux(opens, more, left - 1))

        # Answers come in the order of the bursts.
        answered = Signal()
        m.d.comb += [
            rsp.ready.eq(unanswered.o.valid),
            unanswered.o.ready.eq(rsp.valid),
            answered.eq(rsp.valid & rsp.ready),
            self.error.eq(answered & rsp.payload.error),
            self.error_tag.eq(unanswered.o.payload.tag),
            self.done.eq(answered & ~rsp.payload.error & unanswered.o.payload.final),
            self.stalled.eq((req.valid & ~req.ready) | (words.o.valid & ~words.o.ready)),
            self.busy.eq(unanswered.busy),
        ]
        return m
