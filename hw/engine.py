"""Defines one engine, sequencers, load and store units, LV1, MAC array and vector unit, and how it is reset without
disturbing the bus."""

from amaranth.hdl import Module, Mux, ResetInserter, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.contract.isa import Unit
from hw.contract.params import SocParams
from hw.contract.regs import ENGINE_REGS, EngineState
from hw.contract.timing import RESET_PATIENCE, SETTLED
from hw.control.engine_control import EngineControl
from hw.control.signatures import EventPort
from hw.csr import RegisterBus, RegisterFile
from hw.dma.units import Ld0Unit, Ld1Unit, Ld2Unit, St1Unit, St2Unit
from hw.interfaces import BusReadPort, BusWritePort, ReadPort, WritePort
from hw.mac.unit import MacUnit
from hw.scratchpad import NarrowRead, NarrowWrite, Scratchpad, word_bits
from hw.vec.unit import VecUnit


class EngineReset(wiring.Component):
    """Quiesces an engine, then resets it: transactions the bus has accepted are never abandoned.

    Members
    -------
    request : In(1)
        Pulse.
    quiet : In(1)
        The engine has no bus transaction outstanding.
    halt : Out(1)
        Finish what is outstanding and begin nothing.
    reset : Out(1)
        One cycle, at the end.
    busy : Out(1)
        From the cycle after the request to the reset.
    hung : Out(1)
        The reset has waited for ``RESET_PATIENCE`` cycles: a transaction is not answered. An answer that came after a
        reset would be taken for that of another transaction, so it goes on waiting.
    """

    def __init__(self) -> None:
        super().__init__(
            {"request": In(1), "quiet": In(1), "halt": Out(1), "reset": Out(1), "busy": Out(1), "hung": Out(1)}
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        silence = Signal(range(SETTLED + 1))
        waits = self.busy & self.quiet & ~self.reset
        m.d.comb += self.halt.eq(self.busy)
        m.d.sync += self.reset.eq(waits & (silence == SETTLED - 1))  # from a register, as it goes everywhere
        with m.If(self.request):
            m.d.sync += self.busy.eq(1)
        with m.Elif(self.reset):
            m.d.sync += self.busy.eq(0)
        waited = Signal(range(RESET_PATIENCE + 1))
        m.d.comb += self.hung.eq(waited == RESET_PATIENCE)
        with m.If(~self.busy):
            m.d.sync += waited.eq(0)
        with m.Elif(~self.hung):
            m.d.sync += waited.eq(waited + 1)
        with m.If(waits):
            m.d.sync += silence.eq(silence + 1)
        with m.Else():
            m.d.sync += silence.eq(0)
        return m


READERS = 3  #: bus read clients of an engine: body fetch, loader and descriptors, LD2
WRITERS = 2  #: bus write clients: ST2, completions


class Engine(wiring.Component):
    """Joins a PE cluster with a job ring of its own. Everything in it but the register file can be reset alone.

    Members
    -------
    regs : In(RegisterBus)
    bus_read : Out(BusReadPort).array(READERS)
    bus_write : Out(BusWritePort).array(WRITERS)
    lv2_read : Out(ReadPort).array(2)
        LD1, ST2: words of ``params.lv1_word`` bytes.
    lv2_write : Out(WritePort).array(2)
        ST1, LD2.
    event : Out(EventPort)
    now : In(64)
        Global cycle count.
    interrupt : Out(1)
    """

    def __init__(self, params: SocParams) -> None:
        self.params = params
        word = params.lv1_word
        lv2_addr = word_bits(params.lv2_bytes, word)
        super().__init__(
            {
                "regs": In(RegisterBus()),
                "bus_read": Out(BusReadPort(params)).array(READERS),
                "bus_write": Out(BusWritePort(params)).array(WRITERS),
                "lv2_read": Out(ReadPort(lv2_addr, word)).array(2),
                "lv2_write": Out(WritePort(lv2_addr, word)).array(2),
                "event": Out(EventPort()),
                "now": In(64),
                "interrupt": Out(1),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        p = self.params
        resetter = EngineReset()
        m.submodules.resetter = resetter
        inner = ResetInserter(resetter.reset)

        # Control and registers.
        control = EngineControl(p)
        m.submodules.control = inner(control)
        m.submodules.registers = registers = RegisterFile(ENGINE_REGS)
        self._connect_registers(m, registers, control, resetter)
        connect(m, flipped(self.event), control.event)
        connect(m, flipped(self.bus_read[0]), control.body_fetch)
        connect(m, flipped(self.bus_read[1]), control.load_fetch)
        connect(m, flipped(self.bus_write[1]), control.completion)
        m.d.comb += [control.now.eq(self.now), self.interrupt.eq(control.interrupt)]

        # Load and store units.
        ld2, st2, ld1, st1, ld0 = Ld2Unit(p), St2Unit(p), Ld1Unit(p), St1Unit(p), Ld0Unit(p)
        m.submodules.ld2 = ResetInserter(resetter.reset | control.ld2_reset)(ld2)
        for name, unit in (("st2", st2), ("ld1", ld1), ("st1", st1), ("ld0", ld0)):
            m.submodules[name] = inner(unit)
        for index, unit in ((Unit.LD2, ld2), (Unit.ST2, st2), (Unit.LD1, ld1), (Unit.ST1, st1), (Unit.LD0, ld0)):
            connect(m, control.units[index], unit.unit)
        connect(m, flipped(self.bus_read[2]), ld2.src)
        connect(m, flipped(self.bus_write[0]), st2.dst)

        # LV2: the bus-side units move bus words.
        lv2_addr = word_bits(p.lv2_bytes, p.lv1_word)
        m.submodules.narrow_write = narrow_write = NarrowWrite(lv2_addr, p.lv1_word, p.dram_word)
        m.submodules.narrow_read = narrow_read = NarrowRead(lv2_addr, p.lv1_word, p.dram_word)
        connect(m, ld2.dst, narrow_write.narrow)
        connect(m, st2.src, narrow_read.narrow)
        connect(m, flipped(self.lv2_read[0]), ld1.src)
        connect(m, flipped(self.lv2_read[1]), narrow_read.wide)
        connect(m, flipped(self.lv2_write[0]), st1.dst)
        connect(m, flipped(self.lv2_write[1]), narrow_write.wide)

        # MAC arrays and vector unit; LD0 writes the LV0 memories of the PEs, VEC reads their accumulators.
        m.submodules.mac = inner(mac := MacUnit(p))
        m.submodules.vec = inner(vec := VecUnit(p))
        connect(m, control.units[Unit.MAC], mac.unit)
        connect(m, control.units[Unit.VEC], vec.unit)
        connect(m, ld0.dst, mac.lv0)
        connect(m, vec.acc, mac.acc)

        # LV1.
        m.submodules.lv1 = lv1 = Scratchpad(p.lv1_bytes, p.lv1_word, p.lv1_banks, readers=4, writers=2)
        for port, client in zip(lv1.read, (ld0.src, st1.src, vec.a, vec.b), strict=True):
            connect(m, client, port)
        for port, client in zip(lv1.write, (ld1.dst, vec.d), strict=True):
            connect(m, client, port)
        return m

    def _connect_registers(self, m: Module, registers, control, resetter) -> None:
        connect(m, flipped(self.regs), registers.bus)
        wires = registers.regs
        for reg in ENGINE_REGS:
            name = reg.name.lower()
            if name != "status":
                connect(m, getattr(wires, name), getattr(control.regs, name))
        m.d.comb += wires.status.r_data.eq(control.regs.status.r_data)
        with m.If(resetter.busy):
            m.d.comb += wires.status.r_data.state.eq(Mux(resetter.hung, EngineState.HUNG, EngineState.RESETTING))
        m.d.comb += [
            resetter.request.eq(wires.control.w_stb & wires.control.w_data.reset),
            resetter.quiet.eq(control.quiet),
            control.halt.eq(resetter.halt),
        ]
