"""Gets the next body ready while the current one runs."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.contract.job import JobFlag
from hw.contract.params import SocParams
from hw.control.fetch import InstructionFetch
from hw.control.signatures import EVENT_BITS, HEADER_BITS, JOB_INFO, EventWait, HeaderRead, SegmentRead, member, word_of
from hw.interfaces import ADDR, PC

_HEADER = 5  # 64-bit words of the descriptor's header that are in use


class JobPreparer(wiring.Component):
    """Reads the header of the next job, starts the fetch of its body, and waits for its events.

    The first two overlap the drain of the current body: they begin as soon as that body's END was decoded.

    Members
    -------
    enable, halt : In(1)
    hold : In(1)
        Begin neither a job, whose ``header`` is not to be had in this cycle, nor a fetch.
    loaded : In(32)
        Jobs handed over by the loader.
    failed : In(1)
        The job at index ``loaded`` will not come: it has failed in the loader.
    header, segment : Out
        Read ports of the slots; ``segment`` is used only while ``fetch_free``.
    fetch_free : In(1)
        No body is being fetched.
    fetch_start, fetch_pc, fetch_base, fetch_limit : Out
    event : Out(EventWait)
    ready, job : Out(1), Out(JOB_INFO)
        A job may start.
    take : In(1)
        It does: go on to the next.
    """

    def __init__(self, params: SocParams) -> None:
        self.params = params
        super().__init__(
            {
                "enable": In(1),
                "halt": In(1),
                "hold": In(1),
                "loaded": In(32),
                "failed": In(1),
                "header": Out(HeaderRead(params)),
                "segment": Out(SegmentRead(params)),
                "fetch_free": In(1),
                "fetch_start": Out(1),
                "fetch_pc": Out(PC),
                "fetch_base": Out(ADDR),
                "fetch_limit": Out(ADDR),
                "event": Out(EventWait()),
                "ready": Out(1),
                "job": Out(JOB_INFO),
                "take": In(1),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        index = Signal(32)
        slot = index[: self.params.job_slot_bits]
        word, count = self.header.data, Signal(HEADER_BITS)
        ids = [Signal(EVENT_BITS, name=f"wait{i}_id") for i in range(2)]
        values = [Signal(32, name=f"wait{i}_value") for i in range(2)]
        second = Signal()
        m.d.comb += [
            self.header.addr.eq(Cat(count, slot)),
            self.segment.addr.eq(Cat(Const(0, 3), slot)),
            self.fetch_base.eq(self.segment.data.base),
            self.fetch_limit.eq(self.segment.data.limit),
            self.event.id.eq(Mux(second, ids[1], ids[0])),
            self.event.value.eq(Mux(second, values[1], values[0])),
        ]
        registers = {
            "flags": self.job.flags, "job_id": self.job.job_id, "body_pc": self.fetch_pc,
            "cycle_limit": self.job.cycle_limit, "wait0_id": ids[0], "wait1_id": ids[1],
            "wait0_value": values[0], "wait1_value": values[1], "signal_id": self.job.signal_id,
            "tag": self.job.tag,
        }  # fmt: skip

        with m.FSM():
            with m.State("IDLE"):
                with m.If(self.enable & ~self.halt & ~self.hold & ((self.loaded != index) | self.failed)):
                    m.d.sync += [count.eq(1), self.job.failed.eq(self.loaded == index)]
                    m.next = "READ"
            with m.State("READ"):
                m.d.sync += count.eq(count + 1)
                with m.Switch(count):
                    for number in range(_HEADER):
                        with m.Case(number + 1):
                            m.d.sync += [
                                register.eq(member(word, name))
                                for name, register in registers.items()
                                if word_of(name) == number
                            ]
                with m.If(count == _HEADER):
                    m.d.sync += count.eq(0)
                    m.next = "FETCH"
                    with m.If(self.job.failed):
                        m.next = "READY"
            with m.State("FETCH"):
                with m.If(self.fetch_free & ~self.hold):
                    m.next = "START"
            with m.State("START"):
                m.d.comb += self.fetch_start.eq(1)
                m.d.sync += second.eq(0)
                m.next = "WAIT"
            with m.State("WAIT"):
                wanted = Mux(second, self.job.flags & JobFlag.WAIT1, self.job.flags & JobFlag.WAIT0).any()
                m.d.comb += self.event.request.eq(wanted)
                with m.If(~wanted | self.event.reached):
                    m.d.sync += second.eq(1)
                    with m.If(second):
                        m.next = "READY"
            with m.State("READY"):
                m.d.comb += self.ready.eq(1)
                with m.If(self.take):
                    m.d.sync += index.eq(index + 1)
                    m.next = "IDLE"
        return m

    def connect(self, m: Module, executor, fetch: InstructionFetch, dispatching: Signal) -> None:
        """Connect it with the executor and its instruction fetch; ``dispatching``: a body is being fetched."""
        m.d.comb += [
            self.enable.eq(executor.enable),
            self.halt.eq(executor.halt),
            self.loaded.eq(executor.loaded.count),
            self.failed.eq(executor.loaded.failed),
            self.header.data.eq(executor.slots.header.data),
            self.segment.data.eq(executor.slots.src.data),
            self.fetch_free.eq(~dispatching & ~fetch.running),
            fetch.start.eq(self.fetch_start),
            fetch.pc.eq(self.fetch_pc),
            fetch.base.eq(self.fetch_base),
            fetch.limit.eq(self.fetch_limit),
        ]
        connect(m, self.event, flipped(executor.event))
