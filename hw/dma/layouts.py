"""Defines what the stages of a copy unit pass on, runs, source words and destination beats, and the queue between them.

W is the word of the unit's memories in bytes, L = log2(W). A run is described in its *frame*: byte 0 of the frame
is byte 0 of the first destination word, so run byte j has frame position x + j with x = destination modulo W. The
source word that holds the byte for position 0 of the frame is word 0 of the run's source.
"""

from amaranth.hdl import Module, Shape
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out

from hw.contract.isa import FORMATS, Op
from hw.interfaces import ADDR

LEN = next(f.width for f in FORMATS[Op.LD1] if f.name == "len")  #: bits of a run's length


def log2(word_bytes: int) -> int:
    """Return L, the bits of a byte's position within a word."""
    return word_bytes.bit_length() - 1


def word_index(word_bytes: int) -> int:
    """Return the bits that number the words of a run, and one word more than the longest run has."""
    return LEN + 2 - log2(word_bytes)


def run_layout(word_bytes: int, tag: dict) -> data.StructLayout:
    """Return the layout of one run. ``tag`` names further command fields that travel to the destination."""
    low, index = log2(word_bytes), word_index(word_bytes)
    return data.StructLayout(
        {
            "src": ADDR - low,  # word address of source word 0
            "dst": ADDR - low,  # word address of the first destination word
            "reads": 1,  # some byte is read; otherwise all are filled, and source and read positions mean nothing
            "src_first": index,  # first and last source word that is read
            "src_last": index,
            "rotate": low,  # frame position p holds byte (p + rotate) mod W of its source word
            "read_first": LEN + 1,  # frame positions of the first and last byte that is read
            "read_last": LEN + 1,
            "first": low,  # frame positions of the first and last byte that is written
            "last": LEN + 1,
            "fill": 8,
            "final": 1,  # last run of its command
            "tag": data.StructLayout(tag),
        }
    )


def beat_layout(word_bytes: int, tag: dict) -> data.StructLayout:
    """Return the layout of one destination word, ready to be written."""
    return data.StructLayout(
        {
            "addr": ADDR - log2(word_bytes),
            "data": 8 * word_bytes,
            "en": word_bytes,
            "remaining": word_index(word_bytes),  # words of the same run that follow
            "final": 1,  # belongs to the last run of its command
            "tag": data.StructLayout(tag),
        }
    )


def word_layout(word_bytes: int) -> data.StructLayout:
    """Return the layout of one source word."""
    return data.StructLayout({"data": 8 * word_bytes, "error": 1})


class StreamFifo(wiring.Component):
    """Passes entries on first in, first out: ``depth`` of them in a memory with synchronous reads, two cycles from
    ``i`` to ``o``.

    Members: ``i``: In(stream), ``o``: Out(stream), both of ``shape``; ``busy``: Out, there are entries, at ``o`` or on
    their way.
    """

    def __init__(self, shape, depth: int) -> None:
        self._shape = shape
        self._depth = depth
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape)), "busy": Out(1)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.fifo = fifo = SyncFIFOBuffered(width=Shape.cast(self._shape).width, depth=self._depth)
        m.d.comb += [
            fifo.w_data.eq(self.i.payload),
            fifo.w_en.eq(self.i.valid),
            self.i.ready.eq(fifo.w_rdy),
            self.o.payload.eq(fifo.r_data),
            self.o.valid.eq(fifo.r_rdy),
            fifo.r_en.eq(self.o.ready),
            self.busy.eq(fifo.level != 0),
        ]
        return m
