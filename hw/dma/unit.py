"""Defines the N-D strided copy engine behind every load and store unit: planner, source, realigner and sink in a
row."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from hw.contract.job import Fault
from hw.dma.fifo import StreamFifo
from hw.dma.layouts import run_layout
from hw.dma.planner import Forbidden, MemorySize, Planner
from hw.dma.realign import Realign
from hw.interfaces import UnitPort


class CopyUnit(wiring.Component):
    """Runs copy instructions in order; see ``COPY_FORMAT`` in ``hw.contract.isa`` for what they mean.

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
        fetching = Signal(runs.i.payload.shape())
        fetching_valid = Signal()
        fetch_free = Signal()
        reads = planner.run.payload.reads
        m.d.comb += [
            fetch_free.eq(~fetching_valid | source.run.ready),
            runs.i.payload.eq(planner.run.payload),
            runs.i.valid.eq(planner.run.valid & (fetch_free | ~reads)),
            planner.run.ready.eq(runs.i.ready & (fetch_free | ~reads)),
            source.run.valid.eq(fetching_valid),
            source.run.payload.eq(fetching),
        ]
        with m.If(source.run.ready):
            m.d.sync += fetching_valid.eq(0)
        with m.If(planner.run.valid & planner.run.ready & reads):
            m.d.sync += [fetching.eq(planner.run.payload), fetching_valid.eq(1)]

        # An abort or a bus error discards what is under way; a fault of the planner lets earlier runs finish.
        dead, faulted = Signal(), Signal()
        stop, bus_error = Signal(), Signal()
        m.d.comb += stop.eq(unit.abort | dead)
        with m.If(unit.abort | bus_error):
            m.d.sync += dead.eq(1)
        m.d.comb += [planner.stop.eq(stop | bus_error), source.stop.eq(stop), realign.discard.eq(stop)]
        if "discard" in sink.signature.members:
            m.d.comb += sink.discard.eq(stop)

        m.d.sync += unit.fault.eq(0)
        with m.If((planner.fault | bus_error) & ~faulted & ~stop):
            m.d.sync += [faulted.eq(1), unit.fault.eq(1), unit.fault_info.eq(planner.fault_info)]
        if self._bus_side is not None:
            watcher = {"src": realign, "dst": sink}[self._bus_side]
            m.d.comb += bus_error.eq(watcher.error)
            with m.If(bus_error & ~faulted & ~stop):
                m.d.sync += [
                    unit.fault_info.code.eq(Fault.BUS),
                    unit.fault_info.pc.eq(watcher.error_tag.pc),
                    unit.fault_info.addr.eq(watcher.error_tag[self._bus_side]),
                ]

        m.d.sync += [
            unit.done.eq(sink.done & ~stop),
            unit.mon_bytes.eq(realign.read_bytes),
            unit.mon_stalled.eq(source.stalled | sink.stalled),
            unit.mon_extent.eq(planner.extent),
            unit.mon_extent_valid.eq(planner.extent_valid),
        ]
        m.d.comb += unit.busy.eq(
            planner.busy | fetching_valid | runs.busy | source.busy | realign.busy | sink.busy | unit.done | unit.fault
        )
        return m
