"""Defines the five load and store units of an engine, each a copy engine between two different memories.

Every unit has the members ``unit``: Out(UnitPort), ``src`` and ``dst``: Out(port), named in its docstring.
"""

from amaranth.hdl import Cat, Mux, Value

from hw.contract.isa import Lv0Space, Lv0View
from hw.contract.params import SocParams
from hw.contract.timing import RUNS_AHEAD
from hw.dma.sink import BUS_SINK_TAG, LV0_TAG, BusSink, Lv0Sink, ScratchpadSink
from hw.dma.source import BUS_SOURCE_TAG, BusSource, ScratchpadSource
from hw.dma.unit import CopyUnit
from hw.scratchpad import word_bits

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
            """Return the bytes of the destination as the view shows it: one PE's memory, or all of them interleaved."""
            act, wgt = params.lv0_act_bytes, params.lv0_wgt_bytes
            interleaved = insn.view == Lv0View.INTERLEAVED
            lv0 = Mux(
                insn.space == Lv0Space.ACT,
                Mux(interleaved, params.pes * act, act),
                Mux(interleaved, params.pes * wgt, wgt),
            )
            return Mux(insn.space == Lv0Space.ACC, 4 * params.out_channels * params.lv0_acc_rows, lv0)

        def forbidden(insn) -> Value:
            """Return whether there is no such memory or PE, or the accumulators would not take whole words."""
            low = word.bit_length() - 1
            parts = [insn[name][:low] for name in _WHOLE_WORDS]
            parts += [Mux(insn[name] < insn.len, insn[name], insn.len)[:low] for name in ("lo", "hi")]
            nobody = insn.pe_mask[params.pes :].any()
            return (insn.space > max(Lv0Space)) | nobody | (insn.space == Lv0Space.ACC) & Cat(parts).any()

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
