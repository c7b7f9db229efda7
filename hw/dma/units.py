"""Defines the five load and store units of an engine, each a copy engine between two different memories.

Every unit has the members ``unit``: Out(UnitPort), ``src`` and ``dst``: Out(port), named in its docstring.
"""

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from hw.contract.isa import Lv0Space, Lv0View
from hw.contract.job import Fault
from hw.contract.params import SocParams
from hw.contract.timing import RUNS_AHEAD
from hw.data_register import data_register
from hw.dma.layouts import StreamFifo, run_layout
from hw.dma.planner import Forbidden, MemorySize, Planner
from hw.dma.realign import Realign
from hw.dma.sink import BUS_SINK_TAG, LV0_TAG, BusSink, Lv0Sink, ScratchpadSink
from hw.dma.source import BUS_SOURCE_TAG, BusSource, ScratchpadSource
from hw.interfaces import FAULT, UnitPort
from hw.scratchpad import word_bits
from hw.spill_register import SpillRegister


class CopyUnit(wiring.Component):
    """Runs copy instructions in order; see ``COPY_FORMAT`` in ``hw.contract.formats`` for what they mean.

    A source fetches ahead while the realigner works on earlier runs; up to ``runs_ahead`` runs lie between them. The
    next command is taken when the planner has emitted the last run of this one. ``mon_extent`` reports a run when it
    is planned, ``mon_bytes`` when it is copied. ``bus_side`` says which side is the bus, if any ("src", "dst"): its
    errors become BUS faults that name the offset of byte 0 of the run, from the fields ``pc`` and ``bus_side`` of the
    tag.

    Members: ``unit``: Out(UnitPort), ``src`` and ``dst``: Out(the ports of source and sink).
    """

    def __init__(
        self, *, word_bytes: int, tag: dict, source, sink, runs_ahead: int,
        src_size: MemorySize | None = None, dst_size: MemorySize | None = None, bus_side: str | None = None,
        forbidden: Forbidden | None = None,
    ) -> None:  # fmt: skip
        self._word_bytes = word_bytes
        self._tag = tag
        self._source = source
        self._sink = sink
        self._runs_ahead = runs_ahead
        self._planning = {"src_size": src_size, "dst_size": dst_size, "forbidden": forbidden}
        self._bus_side = bus_side
        super().__init__(
            {
                "unit": Out(UnitPort()),
                "src": Out(source.signature.members["port"].signature),
                "dst": Out(sink.signature.members["port"].signature),
            }
        )

    def elaborate(self, platform):
        m = Module()
        unit = self.unit
        m.submodules.planner = planner = Planner(self._word_bytes, self._tag, **self._planning)
        m.submodules.runs = runs = StreamFifo(run_layout(self._word_bytes, self._tag), self._runs_ahead)
        m.submodules.source = source = self._source
        m.submodules.realign = realign = Realign(self._word_bytes, self._tag)
        m.submodules.sink = sink = self._sink
        wiring.connect(m, wiring.flipped(self.src), source.port)
        wiring.connect(m, wiring.flipped(self.dst), sink.port)
        wiring.connect(m, wiring.flipped(unit.cmd), planner.cmd)
        wiring.connect(m, runs.o, realign.run)
        wiring.connect(m, source.word, realign.word)
        wiring.connect(m, realign.beat, sink.beat)

        # A run goes to the realigner's queue, and, if it reads, to the register the source works from.
        m.submodules.spill = spill = SpillRegister(runs.i.payload.shape())
        wiring.connect(m, planner.run, spill.i)
        fetching = data_register(runs.i.payload.shape())
        fetching_valid = Signal()
        fetch_free = Signal()
        run = spill.o.payload
        m.d.comb += [
            fetch_free.eq(~fetching_valid | source.run.ready),
            runs.i.payload.eq(run),
            runs.i.valid.eq(spill.o.valid & (fetch_free | ~run.reads)),
            spill.o.ready.eq(runs.i.ready & (fetch_free | ~run.reads)),
            source.run.valid.eq(fetching_valid),
            source.run.payload.eq(fetching),
        ]
        with m.If(source.run.ready):
            m.d.sync += fetching_valid.eq(0)
        with m.If(spill.o.valid & spill.o.ready & run.reads):
            m.d.sync += [fetching.eq(run), fetching_valid.eq(1)]

        # An abort or a bus error discards what is under way; a fault of the planner lets earlier runs finish.
        dead, faulted = Signal(), Signal()
        stop, bus_error = Signal(), Signal()
        m.d.comb += stop.eq(unit.abort | dead)
        with m.If(unit.abort | bus_error):
            m.d.sync += dead.eq(1)
        m.d.comb += [planner.stop.eq(stop), source.stop.eq(stop), realign.discard.eq(stop)]
        if "discard" in sink.signature.members:
            m.d.comb += sink.discard.eq(stop)

        # What may be to blame is kept every cycle; whether it is, is known a cycle later.
        failed, info = Signal(), data_register(FAULT)
        m.d.sync += [failed.eq(0), info.eq(planner.fault_info), unit.fault.eq(failed), unit.fault_info.eq(info)]
        with m.If((planner.fault | bus_error) & ~faulted & ~stop):
            m.d.sync += [faulted.eq(1), failed.eq(1)]
        if self._bus_side is not None:
            watcher = {"src": realign, "dst": sink}[self._bus_side]
            by_bus, tag = Signal(), data_register(watcher.error_tag.shape())
            m.d.comb += bus_error.eq(watcher.error)
            m.d.sync += [by_bus.eq(bus_error), tag.eq(watcher.error_tag)]
            with m.If(by_bus):
                m.d.sync += [
                    unit.fault_info.code.eq(Fault.BUS),
                    unit.fault_info.pc.eq(tag.pc),
                    unit.fault_info.addr.eq(tag[self._bus_side]),
                ]

        m.d.sync += [
            unit.done.eq(sink.done & ~stop),
            unit.mon_bytes.eq(realign.read_bytes),
            unit.mon_stalled.eq(source.stalled | sink.stalled),
            unit.mon_extent.eq(planner.extent),
            unit.mon_extent_valid.eq(planner.extent_valid),
        ]
        at_work = (planner.busy, spill.kept, fetching_valid, runs.busy, source.busy, realign.busy, sink.busy)
        m.d.comb += unit.busy.eq(Cat(*at_work, unit.done, failed, unit.fault).any())
        return m


#: Fields that must be multiples of the LV1 word where the accumulators are the destination.
_WHOLE_WORDS = ("src", "dst", "len", "src_s2", "src_s1", "src_s0", "dst_s2", "dst_s1", "dst_s0")


class Ld1Unit(CopyUnit):
    """Copies LV2 (``src``: ReadPort of LV1 words) → LV1 (``dst``: WritePort): the unit LD1."""

    def __init__(self, params: SocParams) -> None:
        word = params.lv1_word
        super().__init__(
            word_bytes=word,
            tag={},
            source=ScratchpadSource(word, {}, word_bits(params.lv2_bytes, word)),
            sink=ScratchpadSink(word, {}, word_bits(params.lv1_bytes, word)),
            runs_ahead=RUNS_AHEAD,
            dst_size=lambda insn: params.lv1_bytes,
        )


class St1Unit(CopyUnit):
    """Copies LV1 (``src``: ReadPort) → LV2 (``dst``: WritePort of LV1 words): the unit ST1."""

    def __init__(self, params: SocParams) -> None:
        word = params.lv1_word
        super().__init__(
            word_bytes=word,
            tag={},
            source=ScratchpadSource(word, {}, word_bits(params.lv1_bytes, word)),
            sink=ScratchpadSink(word, {}, word_bits(params.lv2_bytes, word)),
            runs_ahead=RUNS_AHEAD,
            src_size=lambda insn: params.lv1_bytes,
        )


class Ld0Unit(CopyUnit):
    """Copies LV1 (``src``: ReadPort) → LV0 of the PEs, or their accumulators (``dst``: Lv0WritePort): the unit LD0."""

    def __init__(self, params: SocParams) -> None:
        word = params.lv1_word

        def lv0_size(insn):
            """Return the bytes of the destination as the view shows it: one PE's memory, or all of them interleaved;
            packed bytes of int4."""
            act, wgt = params.lv0_act_bytes, params.lv0_wgt_bytes
            interleaved = insn.view == Lv0View.INTERLEAVED
            sizes = {
                Lv0Space.ACT: Mux(interleaved, params.pes * act, act),
                Lv0Space.WGT: Mux(interleaved, params.pes * wgt, wgt),
                Lv0Space.ACC: 4 * params.out_channels * params.lv0_acc_rows,
                Lv0Space.INT4: params.pes * wgt // 2,
            }
            return Array([sizes[space] for space in Lv0Space])[insn.space]

        def forbidden(insn) -> Value:
            """Return whether there is no such PE, the accumulators would not take whole words, or int4 has one bank."""
            low = word.bit_length() - 1
            parts = [insn[name][:low] for name in _WHOLE_WORDS]
            parts += [Mux(insn[name] < insn.len, insn[name], insn.len)[:low] for name in ("lo", "hi")]
            nobody = insn.pe_mask[params.pes :].any()
            alone = (insn.space == Lv0Space.INT4) & (params.lv0_banks == 1)
            return nobody | alone | (insn.space == Lv0Space.ACC) & Cat(parts).any()

        super().__init__(
            word_bytes=word,
            tag=LV0_TAG,
            source=ScratchpadSource(word, LV0_TAG, word_bits(params.lv1_bytes, word)),
            sink=Lv0Sink(params),
            runs_ahead=RUNS_AHEAD,
            src_size=lambda insn: params.lv1_bytes,
            dst_size=lv0_size,
            forbidden=forbidden,
        )


class Ld2Unit(CopyUnit):
    """Copies DRAM (``src``: BusReadPort) → LV2 (``dst``: WritePort of DRAM words, see ``hw.scratchpad.NarrowWrite``):
    the unit LD2."""

    def __init__(self, params: SocParams) -> None:
        word = params.dram_word
        super().__init__(
            word_bytes=word,
            tag=BUS_SOURCE_TAG,
            source=BusSource(params, BUS_SOURCE_TAG),
            sink=ScratchpadSink(word, BUS_SOURCE_TAG, word_bits(params.lv2_bytes, word)),
            runs_ahead=2 * params.axi_outstanding,  # every run that reads takes at least one burst
            bus_side="src",
        )


class St2Unit(CopyUnit):
    """Copies LV2 (``src``: ReadPort of DRAM words, see ``hw.scratchpad.NarrowRead``) → DRAM (``dst``: BusWritePort):
    the unit ST2."""

    def __init__(self, params: SocParams) -> None:
        word = params.dram_word
        super().__init__(
            word_bytes=word,
            tag=BUS_SINK_TAG,
            source=ScratchpadSource(word, BUS_SINK_TAG, word_bits(params.lv2_bytes, word)),
            sink=BusSink(params),
            runs_ahead=RUNS_AHEAD,
            bus_side="dst",
        )
