"""Defines the loader, which runs prologues in ring order, ahead of the bodies."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hw.block_ram import BLOCK_RAM, NO_COLLISION
from hw.contract.isa import Op
from hw.contract.job import Fault, FaultUnit, JobFlag
from hw.contract.params import SocParams
from hw.control.decode import Decoder, field_bits
from hw.control.fetch import InstructionFetch
from hw.control.signatures import (
    HEADER_BITS,
    LoadedJobs,
    PrologueLoads,
    RamRead,
    Slots,
    StoredJobs,
    member,
    word_of,
)
from hw.interfaces import PC, BusReadPort

#: What is kept of a prologue, per slot: 32-bit words in this order.
PROLOGUE_WORDS = ("start_lo", "start_hi", "end_lo", "end_hi", "bytes", "busy", "stalled", "occupancy")


class Loader(wiring.Component):
    """Takes stored jobs in order; runs the prologue of those that have one as soon as their window is free.

    A prologue may hold LD2 without semaphores, then END. When its last load has landed, its counters go to the slot
    and the job is handed to the executor. A fault stops the loader for good: the executor reports it when it comes to
    that job.

    A held loader does not wait for its loads: it has them taken out of the LD2 unit, and once it is no longer held goes
    on from the oldest that had not landed. A load may run any number of times. Its counters tell what the unit did,
    abandoned loads included.

    Members
    -------
    enable, halt : In(1)
        A prologue starts only with ``enable``; ``halt`` stops everything.
    hold : In(1)
        Begin no prologue, and abandon the loads of the one that runs.
    stored : In(StoredJobs)
    slots : Out(Slots)
    retired : In(32)
        Jobs retired; decides whether a window is free.
    loaded : Out(LoadedJobs)
    bus : Out(BusReadPort)
    loads : Out(PrologueLoads)
        The LD2 unit, shared with the body.
    now : In(64)
    result : In(RamRead)
        The counters: word ``addr[:3]`` (:data:`PROLOGUE_WORDS`) of slot ``addr[3:]``.
    busy : Out(1)
    quiet : Out(1)
        No instruction fetch is outstanding.
    """

    def __init__(self, params: SocParams) -> None:
        self.params = params
        super().__init__(
            {
                "enable": In(1),
                "halt": In(1),
                "hold": In(1),
                "stored": In(StoredJobs()),
                "slots": Out(Slots(params)),
                "retired": In(32),
                "loaded": Out(LoadedJobs()),
                "bus": Out(BusReadPort(params)),
                "loads": Out(PrologueLoads()),
                "now": In(64),
                "result": In(RamRead(params.job_slot_bits + 3, 32)),
                "busy": Out(1),
                "quiet": Out(1),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.fetch = fetch = InstructionFetch(self.params)
        m.submodules.decoder = decoder = Decoder(self.params, (Op.LD2, Op.END), semaphores=False)
        wiring.connect(m, wiring.flipped(self.bus), fetch.bus)
        slot = self.loaded.count[: self.params.job_slot_bits]
        fetched = fetch.insn.payload
        m.d.comb += [self.quiet.eq(fetch.quiet), decoder.insn.eq(fetched.insn)]

        word = Signal(HEADER_BITS)
        prologue_pc = Signal(PC)  # of the oldest load that has not landed
        window_after = Signal(16)
        in_use = Signal(32)
        flush = Signal()
        # The job whose retirement frees the window is `window_after` places earlier.
        m.d.comb += [
            in_use.eq(self.loaded.count - window_after - self.retired),
            self.slots.header.addr.eq(Cat(word, slot)),
            self.slots.src.addr.eq(Cat(field_bits(fetched.insn, Op.LD2, "src_seg"), slot)),
            self.slots.dst.addr.eq(Cat(field_bits(fetched.insn, Op.LD2, "dst_seg"), slot)),
            self.loads.cmd.payload.insn.eq(fetched.insn),
            self.loads.cmd.payload.pc.eq(fetched.pc),
            self.loads.cmd.payload.src_base.eq(self.slots.src.data.base),
            self.loads.cmd.payload.src_limit.eq(self.slots.src.data.limit),
            self.loads.cmd.payload.dst_base.eq(self.slots.dst.data.base),
            self.loads.cmd.payload.dst_limit.eq(self.slots.dst.data.limit),
            fetch.pc.eq(prologue_pc),
            fetch.flush.eq(flush | self.halt),
            fetch.base.eq(self.slots.src.data.base),
            fetch.limit.eq(self.slots.src.data.limit),
        ]
        end, illegal = Signal(), Signal()
        times = {name: Signal(64, name=name) for name in ("start", "end")}
        unfinished, still = Signal(32), Signal()
        save = Signal(range(len(PROLOGUE_WORDS)))
        saving, clear = Signal(), Signal()
        counters = self._counters(m, clear)
        m.d.sync += [
            unfinished.eq(unfinished + (self.loads.cmd.valid & self.loads.cmd.ready) - self.loads.done),
            prologue_pc.eq(prologue_pc + self.loads.done),  # a prologue is a straight line
        ]

        def stop(code, unit, pc=0, addr=0):
            info = self.loaded.fault
            m.d.sync += [
                self.loaded.failed.eq(1),
                info.code.eq(code),
                info.unit.eq(unit),
                info.pc.eq(pc),
                info.addr.eq(addr),
            ]
            m.d.comb += flush.eq(1)
            m.next = "STOPPED"

        with m.FSM() as fsm:
            between, stopped = fsm.ongoing("IDLE") | fsm.ongoing("WINDOW"), fsm.ongoing("STOPPED")
            m.d.comb += [
                self.busy.eq(~between & ~stopped),
                still.eq(between | (fsm.ongoing("DECODE") & (unfinished == 0)) | fsm.ongoing("HELD") | stopped),
                self.loaded.resting.eq(still & ~self.loads.present & self.hold),
                # A prologue that failed may have left loads behind.
                self.loads.abandon.eq(fsm.ongoing("ABANDON") | (stopped & self.hold)),
            ]
            with m.State("IDLE"):
                with m.If(self.halt | self.hold | ~self.enable):
                    pass
                with m.Elif(self.stored.count != self.loaded.count):
                    m.d.comb += [word.eq(word_of("flags")), clear.eq(1)]
                    m.d.sync += [times["start"].eq(0), times["end"].eq(0)]
                    m.next = "FLAGS"
                with m.Elif(self.stored.bad):
                    stop(self.stored.bad_code, FaultUnit.RING)
            with m.State("FLAGS"):
                m.d.comb += word.eq(word_of("prologue_pc"))
                with m.If(member(self.slots.header.data, "flags") & JobFlag.PROLOGUE):
                    m.next = "PC"
                with m.Else():
                    m.next = "SAVE"
            with m.State("PC"):
                m.d.sync += prologue_pc.eq(member(self.slots.header.data, "prologue_pc"))
                m.d.comb += word.eq(word_of("window_after"))
                m.next = "AFTER"
            with m.State("AFTER"):
                m.d.sync += window_after.eq(member(self.slots.header.data, "window_after"))
                m.next = "WINDOW"
            with m.State("WINDOW"):
                m.d.comb += self.slots.src.addr.eq(Cat(Const(0, 3), slot))
                with m.If(self.halt):
                    m.next = "IDLE"
                with m.Elif(~self.hold & ((window_after == 0) | in_use[31])):
                    m.next = "START"
            with m.State("START"):
                m.d.comb += fetch.start.eq(1)
                m.d.sync += times["start"].eq(self.now)
                m.next = "DECODE"
            with m.State("DECODE"):
                m.d.sync += [end.eq(decoder.end), illegal.eq(decoder.illegal)]
                with m.If(self.loads.fault):
                    self._unit_fault(stop)
                with m.Elif(self.hold):
                    with m.If(unfinished != 0):
                        m.next = "ABANDON"
                with m.Elif(fetch.insn.valid & ~self.halt):
                    m.next = "ISSUE"
            with m.State("ISSUE"):
                with m.If(self.loads.fault):
                    self._unit_fault(stop)
                with m.Elif(fetched.fault != Fault.NONE):
                    stop(fetched.fault, FaultUnit.LOADER, fetched.pc, fetched.pc << 6)
                with m.Elif(illegal):
                    stop(Fault.ILLEGAL, FaultUnit.LOADER, fetched.pc, fetched.pc << 6)
                with m.Elif(end):
                    m.d.comb += flush.eq(1)
                    m.next = "DRAIN"
                with m.Else():
                    m.d.comb += [self.loads.cmd.valid.eq(1), fetch.insn.ready.eq(self.loads.cmd.ready)]
                    with m.If(self.hold):
                        m.next = "ABANDON"
                    with m.Elif(self.loads.cmd.ready):
                        m.next = "DECODE"
            with m.State("DRAIN"):
                with m.If(self.loads.fault):
                    self._unit_fault(stop)
                with m.Elif((unfinished == 0) & ~self.loads.active):
                    m.d.sync += times["end"].eq(self.now)
                    m.next = "SAVE"
                with m.Elif(self.hold):
                    m.next = "ABANDON"
            with m.State("ABANDON"):
                m.d.comb += flush.eq(1)
                with m.If(self.loads.fault):
                    self._unit_fault(stop)
                with m.Elif(~self.loads.present):
                    m.d.sync += unfinished.eq(0)
                    m.next = "HELD"
            with m.State("HELD"):
                m.d.comb += self.slots.src.addr.eq(Cat(Const(0, 3), slot))
                with m.If(~self.hold & ~self.halt):
                    m.next = "AGAIN"
            with m.State("AGAIN"):
                m.d.comb += fetch.start.eq(1)
                m.next = "DECODE"
            with m.State("SAVE"):
                m.d.comb += saving.eq(1)
                m.d.sync += save.eq(save + 1)
                with m.If(save == len(PROLOGUE_WORDS) - 1):
                    m.d.sync += self.loaded.count.eq(self.loaded.count + 1)
                    m.next = "IDLE"
            with m.State("STOPPED"):
                pass

        words = self.params.job_slots * len(PROLOGUE_WORDS)
        m.submodules.results = results = Memory(shape=32, depth=words, init=[], attrs=BLOCK_RAM | NO_COLLISION)
        write, read = results.write_port(), results.read_port()
        m.d.comb += [
            write.addr.eq(Cat(save, slot)),
            write.en.eq(saving),
            read.addr.eq(self.result.addr),
            self.result.data.eq(read.data),
        ]
        values = [times["start"][:32], times["start"][32:], times["end"][:32], times["end"][32:], *counters]
        with m.Switch(save):
            for i, value in enumerate(values):
                with m.Case(i):
                    m.d.comb += write.data.eq(value)
        return m

    def _unit_fault(self, stop) -> None:
        info = self.loads.fault_info
        stop(info.code, FaultUnit.LD2, info.pc, info.addr)

    def _counters(self, m: Module, clear: Signal) -> list[Signal]:
        total, busy, stalled, occupancy = (Signal(32, name=name) for name in PROLOGUE_WORDS[4:])
        now = self.loads.activity
        higher = now.extent_valid & (now.extent > occupancy)
        with m.If(clear):
            m.d.sync += [c.eq(0) for c in (total, busy, stalled, occupancy)]
        with m.Elif(self.loads.active):
            m.d.sync += [
                total.eq(total + now.bytes),
                busy.eq(busy + now.busy),
                stalled.eq(stalled + now.stalled),
                occupancy.eq(Mux(higher, now.extent, occupancy)),
            ]
        return [total, busy, stalled, occupancy]
