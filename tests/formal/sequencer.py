"""Stand-ins for what surrounds the sequencers in a proof: an instruction fetch and a job preparer that may do anything
their contracts allow."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring

from hw.contract.isa import Op
from hw.contract.job import Fault
from hw.contract.params import SocParams, preset
from hw.control.fetch import InstructionFetch
from hw.control.prepare import JobPreparer
from tests.support.raw_insns import legal

PARAMS = preset("tiny").replace(unit_queue_depth=2, semaphores=16)
KINDS = (Op.MAC, Op.LD2, Op.CANCEL, Op.END)  #: what an instruction may be, besides illegal


class AnyFetch(InstructionFetch):
    """Delivers any program, in order, whenever it likes. ``come`` and ``kind`` are inputs of the proof; ``shown`` is
    the kind of the instruction on offer."""

    def __init__(self, params: SocParams) -> None:
        super().__init__(params)
        self.come, self.kind, self.faulty = Signal(), Signal(range(len(KINDS) + 1)), Signal()
        self.shown = Signal(range(len(KINDS) + 1))

    def inputs(self) -> list[Signal]:
        return [self.come, self.kind, self.faulty]

    def elaborate(self, platform) -> Module:
        m = Module()
        there, faulty, number = Signal(), Signal(), Signal.like(self.pc)
        payload = self.insn.payload
        m.d.comb += [
            self.insn.valid.eq(there & self.running),
            payload.pc.eq(number),
            payload.fault.eq(Mux(faulty, Fault.BUS, Fault.NONE)),
            self.quiet.eq(1),
        ]
        with m.Switch(self.shown):
            for number_of_kind, op in enumerate(KINDS):
                with m.Case(number_of_kind):
                    m.d.comb += payload.insn.eq(int.from_bytes(legal(op).encode(), "little"))
        taken = self.insn.valid & self.insn.ready
        with m.If(taken | ~there):
            m.d.sync += [there.eq(self.come), self.shown.eq(self.kind), faulty.eq(self.faulty)]
        with m.If(taken):
            m.d.sync += number.eq(number + 1)
        with m.If(self.flush):
            m.d.sync += self.running.eq(0)
        with m.Elif(self.start):
            m.d.sync += [self.running.eq(1), number.eq(self.pc)]
        return m


class AnyPreparer(JobPreparer):
    """Offers any job once the fetch of its body was started. ``go``, ``pc`` and ``flags`` are inputs of the proof."""

    def __init__(self, params: SocParams) -> None:
        super().__init__(params)
        self.go, self.first, self.flags = Signal(), Signal.like(self.fetch_pc), Signal(16)

    def inputs(self) -> list[Signal]:
        return [self.go, self.first, self.flags]

    def elaborate(self, platform) -> Module:
        m = Module()
        started = Signal()
        m.d.comb += [
            self.fetch_start.eq(self.go & self.fetch_free & ~self.hold & ~started),
            self.fetch_pc.eq(self.first),
            self.ready.eq(started),
        ]
        with m.If(self.fetch_start):
            m.d.sync += [started.eq(1), self.job.flags.eq(self.flags)]
        with m.If(self.take):
            m.d.sync += started.eq(0)
        return m


def instances(monkeypatch, module, name: str, stand_in: type[wiring.Component]) -> list:
    """Let ``module`` build ``stand_in`` under ``name``; returns the list that will hold what it built."""
    built: list = []

    def build(params: SocParams):
        built.append(stand_in(params))
        return built[-1]

    monkeypatch.setattr(module, name, build)
    return built
