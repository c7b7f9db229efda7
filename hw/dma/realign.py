"""Turns runs and source words into destination words: a byte funnel that makes one destination word per cycle."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.dma.layouts import beat_layout, log2, run_layout, word_index, word_layout


class Realign(wiring.Component):
    """Rotates every source word to the alignment of the destination, merges it with its predecessor, and fills.

    A run takes one cycle per destination word, and one more if its first destination word needs two source words.
    Two stages: rotate, then merge; a beat is held until it is taken.

    Members: ``run``: In(stream of runs), ``word``: In(stream of source words, in the order runs name them), ``beat``:
    Out(stream of destination words), ``discard``: In, take runs and words and emit nothing; ``waiting``: Out, for a
    source word; ``error``: Out, a word taken this cycle is marked as an error, ``error_tag`` is its run's tag;
    ``read_bytes``: Out, source bytes in the word emitted this cycle; ``busy``: Out.
    """

    def __init__(self, word_bytes: int, tag: dict) -> None:
        self._word_bytes = word_bytes
        self._tag = tag
        super().__init__(
            {
                "run": In(stream.Signature(run_layout(word_bytes, tag))),
                "word": In(stream.Signature(word_layout(word_bytes))),
                "beat": Out(stream.Signature(beat_layout(word_bytes, tag))),
                "discard": In(1),
                "waiting": Out(1),
                "error": Out(1),
                "error_tag": Out(data.StructLayout(tag)),
                "read_bytes": Out(8),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        width = self._word_bytes
        low = log2(width)
        run, word, beat = self.run.payload, self.word.payload, self.beat.payload
        run_last, read_from, read_to = run.last[low:], run.read_first[low:], run.read_last[low:]  # words of the run

        # Step through the head run: number of the destination word, and the source word this step takes.
        number = Signal(word_index(width))
        following = Signal(word_index(width), init=1)  # number + 1
        primed = Signal()
        pair = Signal()  # destination word n needs the source words n and n + 1; the first may need a step of its own
        priming, takes, last = Signal(), Signal(), Signal()

        def within(index: Value) -> Value:
            return (index >= run.src_first) & (index <= run.src_last)

        m.d.comb += [
            pair.eq((run.rotate != 0) & (run.src_last != 0)),
            priming.eq(pair & run.reads & (run.src_first == 0) & ~primed),
            takes.eq(run.reads & Mux(pair & ~priming, within(following), within(number))),
            last.eq((number == run_last) & ~priming),
        ]
        rotated_ready, step = Signal(), Signal()
        m.d.comb += [
            step.eq(self.run.valid & (self.word.valid | ~takes) & rotated_ready),
            self.run.ready.eq(step & last | self.discard),
            self.word.ready.eq(step & takes | self.discard),
            self.waiting.eq(self.run.valid & takes & ~self.word.valid),
            self.error.eq(step & takes & word.error & ~self.discard),
            self.error_tag.eq(run.tag),
        ]
        with m.If(step):
            m.d.sync += [primed.eq(1), number.eq(number + ~priming), following.eq(following + ~priming)]
            with m.If(last):
                m.d.sync += [primed.eq(0), number.eq(0), following.eq(1)]

        # First stage: the rotated source word, and where the bytes of the destination word come from.
        in_reads = run.reads & (number >= read_from) & (number <= read_to)
        rotated = Signal(
            data.StructLayout(
                {
                    "data": 8 * width, "emit": 1, "pair": 1, "rotate": low, "reads": 1, "read_first": low,
                    "read_last": low, "first": low, "last": low, "fill": 8, "addr": len(beat.addr),
                    "remaining": len(beat.remaining), "final": 1, "tag": data.StructLayout(self._tag),
                }
            )
        )  # fmt: skip
        rotated_valid = Signal()
        merged_ready = Signal()
        m.d.comb += rotated_ready.eq(~rotated_valid | merged_ready)
        with m.If(rotated_ready):
            m.d.sync += [
                rotated_valid.eq(step),
                rotated.data.eq(Cat(word.data, word.data) >> Cat(Const(0, 3), run.rotate)),
                rotated.emit.eq(~priming),
                rotated.pair.eq(pair),
                rotated.rotate.eq(run.rotate),
                rotated.reads.eq(in_reads),
                rotated.read_first.eq(Mux(number == read_from, run.read_first[:low], 0)),
                rotated.read_last.eq(Mux(number == read_to, run.read_last[:low], width - 1)),
                rotated.first.eq(Mux(number == 0, run.first, 0)),
                rotated.last.eq(Mux(last, run.last[:low], width - 1)),
                rotated.fill.eq(run.fill),
                rotated.addr.eq(run.dst + number),
                rotated.remaining.eq(run_last - number),
                rotated.final.eq(run.final),
                rotated.tag.eq(run.tag),
            ]

        # Second stage: merge with the word before, fill, enable.
        previous = Signal(8 * width)
        beat_valid = Signal()
        m.d.comb += merged_ready.eq(~beat_valid | self.beat.ready)
        # Frame positions below W - rotate belong to the word before.
        from_previous, read = Signal(8 * width), Signal(8 * width)
        m.d.comb += [
            from_previous.eq(Mux(rotated.pair, _up_to(~rotated.rotate, width), 0)),
            read.eq(Mux(rotated.reads, _between(rotated.read_first, rotated.read_last, width), 0)),
        ]
        source_bytes = (previous & from_previous) | (rotated.data & ~from_previous)
        every = (1 << width) - 1
        with m.If(merged_ready):
            m.d.sync += [
                beat_valid.eq(rotated_valid & rotated.emit & ~self.discard),
                beat.addr.eq(rotated.addr),
                beat.data.eq((source_bytes & read) | (rotated.fill.replicate(width) & ~read)),
                beat.en.eq((Const(every, width) >> ~rotated.last) & ~(Const(every >> 1, width) >> ~rotated.first)),
                beat.remaining.eq(rotated.remaining),
                beat.final.eq(rotated.final),
                beat.tag.eq(rotated.tag),
            ]
            with m.If(rotated_valid):
                m.d.sync += previous.eq(rotated.data)
            with m.If(rotated_valid & rotated.emit & rotated.reads & ~self.discard):
                m.d.comb += self.read_bytes.eq(rotated.read_last - rotated.read_first + 1)
        with m.If(self.discard):
            m.d.sync += rotated_valid.eq(0)
        m.d.comb += [self.beat.valid.eq(beat_valid), self.busy.eq(rotated_valid | beat_valid)]
        return m


def _up_to(position, width: int):
    """Return a bit mask of the bytes 0..position of a word. Shifting a constant right needs no more than a decoder."""
    return Const((1 << 8 * width) - 1, 8 * width) >> Cat(Const(0, 3), (~position)[: log2(width)])


def _between(first, last, width: int):
    """Return a bit mask of the bytes first..last of a word."""
    below = Const((1 << 8 * (width - 1)) - 1, 8 * width) >> Cat(Const(0, 3), (~first)[: log2(width)])
    return _up_to(last, width) & ~below
