"""Retires jobs: writes the completion, then tells host and events."""

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hw.block_ram import BLOCK_RAM, NO_COLLISION
from hw.contract.job import COMPLETION, COUNTERS, JobFlag
from hw.contract.params import SocParams
from hw.control.fetch import burst_words
from hw.control.loader import PROLOGUE_WORDS
from hw.control.monitor import COUNTER_BITS, PROLOGUE_COUNTERS
from hw.control.signatures import EVENT_BITS, JOB_INFO, CompletionRingControl, EndedJob, RamRead
from hw.interfaces import BusWritePort

_WORDS = COMPLETION.size // 4
COUNTER_WORD = COMPLETION[COUNTERS[0][0]].offset // 4  #: completion word of the first counter
_USED_WORDS = COUNTER_WORD + len(COUNTERS)
_BODY_COUNTER_WORD = COUNTER_WORD + PROLOGUE_COUNTERS

_TIMES = COMPLETION["prologue_start"].offset // 4
#: Completion words that the loader supplies, and their number among its results.
_PROLOGUE_AT = {
    **{_TIMES + i: i for i in range(len(PROLOGUE_WORDS) - PROLOGUE_COUNTERS)},
    **{COUNTER_WORD + i: len(PROLOGUE_WORDS) - PROLOGUE_COUNTERS + i for i in range(PROLOGUE_COUNTERS)},
}


class Retirer(wiring.Component):
    """Copies the completion of an ended job into a local RAM, which frees the counters for the next body; then, in
    the background, waits for room in the completion ring, writes it, and when the write has landed counts the job as
    retired, signals its event and raises its interrupt.

    Members
    -------
    ended : In(EndedJob)
    counters, counter_wanted : Out(RamRead), Out(1)
        ``read`` and ``wanted`` of :class:`~hw.control.monitor.Monitor`.
    prologue : Out(RamRead)
        The loader's counters.
    control : In(CompletionRingControl)
    signal : Out(stream)
        Event to signal.
    bus : Out(BusWritePort)
    halt : In(1)
        Begin no write.
    quiet : Out(1)
        No transaction is outstanding.
    """

    def __init__(self, params: SocParams) -> None:
        self.params = params
        super().__init__(
            {
                "ended": In(EndedJob()),
                "counters": Out(RamRead(COUNTER_BITS, 32)),
                "counter_wanted": Out(1),
                "prologue": Out(RamRead(params.job_slot_bits + 3, 32)),
                "control": In(CompletionRingControl()),
                "signal": Out(stream.Signature(EVENT_BITS)),
                "bus": Out(BusWritePort(params)),
                "halt": In(1),
                "quiet": Out(1),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        word_bytes = self.params.dram_word
        lanes = word_bytes // 4
        rows = COMPLETION.size // word_bytes
        chunk = burst_words(self.params, COMPLETION.size)
        m.submodules.ram = ram = Memory(shape=8 * word_bytes, depth=rows, init=[], attrs=BLOCK_RAM | NO_COLLISION)
        write, read = ram.write_port(granularity=32), ram.read_port()

        # Completion words of the current job, two cycles after their index.
        index, index_d, word = (Signal(range(_WORDS), name=name) for name in ("index", "index_d", "word"))
        copying, copy_index, copy_valid = Signal(), Signal(range(_WORDS)), Signal(2)
        answered = Signal(2)
        m.d.comb += [
            index.eq(Mux(copying, copy_index, self.control.view_index)),
            self.control.view.eq(self._word(word)),
            self.control.view_ack.eq(answered[1] & ~copying),
            self.counters.addr.eq(index - _BODY_COUNTER_WORD),
            self.counter_wanted.eq(copying | self.control.view_request),
        ]
        self._address_prologue_word(m, index_d)
        m.d.sync += [
            index_d.eq(index),
            word.eq(index_d),
            copy_valid.eq(Cat(copying, copy_valid[0])),
            answered.eq(
                Mux(self.control.view_request & ~copying & ~self.control.view_ack, Cat(Const(1, 1), answered[0]), 0)
            ),
        ]
        lane_bits = (lanes - 1).bit_length()
        m.d.comb += [
            write.addr.eq(word[lane_bits:]),
            write.data.eq(self.control.view.replicate(lanes)),
            write.en.eq(copy_valid[1] << word[:lane_bits]),
        ]

        # Beats from the RAM.
        row, beat_valid = Signal(range(rows + 1)), Signal()
        sending, beat_taken = Signal(), Signal()
        in_burst = Signal(range(chunk)) if chunk > 1 else Signal(0)
        m.d.comb += [
            beat_taken.eq(self.bus.data.valid & self.bus.data.ready),
            read.addr.eq(row),
            read.en.eq(sending & (~beat_valid | beat_taken)),
            self.bus.data.valid.eq(beat_valid),
            self.bus.data.payload.data.eq(read.data),
            self.bus.data.payload.strb.eq(~0),
            self.bus.data.payload.last.eq(in_burst == chunk - 1),
        ]

        m.d.comb += self.ended.failed.eq(self.control.failed)
        job = Signal(JOB_INFO)
        beyond = (~0 << self.control.size_log2)[:15]  # bits that no index within the ring has
        place = self.control.retired[:15] & ~beyond
        waiting = (self.control.retired - self.control.consumed)[:32]
        has_room = ~((waiting[:15] & beyond).any() | waiting[15:].any())
        bad = Signal()
        unanswered = Signal(range(rows // chunk + 1))
        answer = Signal()
        m.d.comb += [self.bus.rsp.ready.eq(1), answer.eq(self.bus.rsp.valid)]
        with m.If(answer):
            m.d.sync += [unanswered.eq(unanswered - 1), bad.eq(bad | self.bus.rsp.payload.error)]

        with m.FSM() as fsm:
            m.d.comb += [
                self.ended.free.eq(fsm.ongoing("IDLE")),
                self.quiet.eq(fsm.ongoing("IDLE") | fsm.ongoing("COPY") | fsm.ongoing("COPIED") | fsm.ongoing("ROOM")),
            ]
            with m.State("IDLE"):
                with m.If(self.ended.valid & ~self.control.failed):
                    m.d.sync += copy_index.eq(0)
                    m.next = "COPY"
            with m.State("COPY"):
                m.d.comb += copying.eq(1)
                m.d.sync += copy_index.eq(copy_index + 1)
                with m.If(copy_index == _USED_WORDS - 1):
                    m.next = "COPIED"
            with m.State("COPIED"):
                m.d.comb += self.ended.copied.eq(1)
                m.d.sync += [job.eq(self.ended.info.job), row.eq(0), bad.eq(0), unanswered.eq(rows // chunk)]
                m.next = "ROOM"
            with m.State("ROOM"):
                m.d.sync += self.bus.req.payload.addr.eq(self.control.base + (place << 8))
                with m.If(has_room & ~self.halt):
                    m.next = "REQUEST"
            with m.State("REQUEST"):
                m.d.comb += [self.bus.req.valid.eq(1), self.bus.req.payload.beats.eq(chunk)]
                with m.If(self.bus.req.ready):
                    m.d.sync += in_burst.eq(0)
                    m.next = "DATA"
            with m.State("DATA"):
                m.d.comb += sending.eq((in_burst != chunk - 1) | ~beat_valid)
                with m.If(read.en):
                    m.d.sync += [row.eq(row + 1), beat_valid.eq(1)]
                with m.Elif(beat_taken):
                    m.d.sync += beat_valid.eq(0)
                with m.If(beat_taken):
                    m.d.sync += in_burst.eq(in_burst + 1)
                    with m.If(self.bus.data.payload.last):
                        m.d.sync += self.bus.req.payload.addr.eq(self.bus.req.payload.addr + chunk * word_bytes)
                        m.next = "REQUEST"
                        with m.If(row == rows):
                            m.next = "RESPONSE"
            with m.State("RESPONSE"):
                with m.If(unanswered == 0):
                    with m.If(bad):
                        m.d.sync += [self.control.failed.eq(1), self.control.failed_job.eq(job.job_id)]
                        m.next = "IDLE"
                    with m.Else():
                        m.d.sync += self.control.retired.eq(self.control.retired + 1)
                        m.d.comb += self.control.interrupt.eq((job.flags & JobFlag.INTERRUPT).any())
                        m.next = "SIGNAL"
            with m.State("SIGNAL"):
                wanted = (job.flags & JobFlag.SIGNAL).any()
                m.d.comb += [self.signal.valid.eq(wanted), self.signal.payload.eq(job.signal_id)]
                with m.If(~wanted | self.signal.ready):
                    m.next = "IDLE"
        return m

    def _address_prologue_word(self, m: Module, index: Signal) -> None:
        """Point the loader's read port at what completion word ``index`` holds, if it holds one of its results."""
        number = Signal(range(len(PROLOGUE_WORDS)))
        with m.Switch(index):
            for word, source in _PROLOGUE_AT.items():
                with m.Case(word):
                    m.d.comb += number.eq(source)
        m.d.comb += self.prologue.addr.eq(Cat(number, self.ended.info.index[: self.params.job_slot_bits]))

    def _word(self, index: Signal) -> Value:
        """Return word ``index`` of the completion of the current job: each is gated by its number, and all are
        joined."""
        info = self.ended.info
        job, fault = info.job, info.fault
        members = {
            "job_id": job.job_id, "status": Cat(fault.code, fault.unit), "index": info.index,
            "pc": fault.pc, "address": fault.addr, "tag": job.tag, "start": info.start, "end": info.end,
        }  # fmt: skip
        parts = []
        for name, value in members.items():
            first = COMPLETION[name].offset // 4
            parts += [Mux(index == first + k, value[32 * k :][:32], 0) for k in range(-(-len(value) // 32))]
        parts.append(Mux(Cat(index == word for word in _PROLOGUE_AT).any(), self.prologue.data, 0))
        parts.append(Mux((index >= _BODY_COUNTER_WORD) & (index < _USED_WORDS), self.counters.data, 0))
        return reduce(or_, parts)
