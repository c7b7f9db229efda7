"""Joins everything of an engine that is neither a unit nor a memory: the sequencers and their registers."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.contract.isa import Unit
from hw.contract.params import SocParams
from hw.contract.regs import ENGINE_REGS, EngineState
from hw.control.engine_registers import EngineRegisters
from hw.control.executor import Executor
from hw.control.faults import FaultCollector
from hw.control.ld2_share import Ld2Share
from hw.control.loader import Loader
from hw.control.monitor import Monitor
from hw.control.retire import Retirer
from hw.control.ring import JobRing, ReadShare
from hw.control.semaphores import SemaphoreFile
from hw.control.signatures import EventPort
from hw.control.unit_queue import UnitQueue
from hw.interfaces import BusReadPort, BusWritePort, UnitPort
from hw.registers import Registers

_OTHERS = tuple(unit for unit in Unit if unit != Unit.LD2)


class EngineControl(wiring.Component):
    """Joins job ring, loader, executor, unit queues, semaphores, counters and registers of one engine.

    Members
    -------
    units : In(UnitPort).array(7)
        The units, by ``hw.contract.isa.Unit``.
    ld2_reset : Out(1)
        Reset the LD2 unit alone: a prologue faulted, or is abandoned.
    body_fetch, load_fetch : Out(BusReadPort)
        Instructions of bodies; descriptors and instructions of prologues.
    completion : Out(BusWritePort)
    event : Out(EventPort)
    regs : In(Registers(ENGINE_REGS))
        CONTROL.reset is the business of whoever resets this component.
    now : In(64)
        Global cycle count.
    halt : In(1)
        Start nothing new and abort the units, in order to be reset.
    quiet : Out(1)
        With ``halt``: no bus transaction is outstanding.
    interrupt : Out(1)
        An enabled interrupt is pending.
    """

    def __init__(self, params: SocParams) -> None:
        self.params = params
        super().__init__(
            {
                "units": In(UnitPort()).array(len(Unit)),
                "ld2_reset": Out(1),
                "body_fetch": Out(BusReadPort(params)),
                "load_fetch": Out(BusReadPort(params)),
                "completion": Out(BusWritePort(params)),
                "event": Out(EventPort()),
                "regs": In(Registers(ENGINE_REGS)),
                "now": In(64),
                "halt": In(1),
                "quiet": Out(1),
                "interrupt": Out(1),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.ring = ring = JobRing(self.params)
        m.submodules.load_share = load_share = ReadShare(self.params)
        m.submodules.loader = loader = Loader(self.params)
        m.submodules.executor = executor = Executor(self.params)
        m.submodules.retirer = retirer = Retirer(self.params)
        m.submodules.monitor = monitor = Monitor(self.params)
        m.submodules.semaphores = semaphores = SemaphoreFile(self.params, len(Unit))
        m.submodules.faults = faults = FaultCollector(self.params)
        m.submodules.registers = registers = EngineRegisters()
        m.submodules.ld2_share = ld2 = Ld2Share()
        queues = [UnitQueue(self.params, unit) for unit in Unit]
        for unit, queue in zip(Unit, queues, strict=True):
            m.submodules[f"queue_{unit.name.lower()}"] = queue

        # Buses.
        connect(m, flipped(self.body_fetch), executor.bus)
        connect(m, loader.bus, load_share.client[0])
        connect(m, ring.bus, load_share.client[1])
        connect(m, flipped(self.load_fetch), load_share.bus)
        connect(m, flipped(self.completion), retirer.bus)

        # Job flow: ring -> loader -> executor -> retirer.
        connect(m, ring.stored, loader.stored)
        connect(m, loader.loaded, executor.loaded)
        connect(m, executor.ended, retirer.ended)
        connect(m, loader.slots, ring.load_slots)
        connect(m, executor.slots, ring.run_slots)
        connect(m, retirer.prologue, loader.result)
        connect(m, retirer.counters, monitor.read)
        stop = Signal()  # the ring stops, for good or until reset
        m.d.comb += [
            stop.eq(self.halt | (executor.status.state == EngineState.FAULT)),
            ring.halt.eq(stop),
            loader.halt.eq(stop),
            executor.halt.eq(self.halt),
            retirer.halt.eq(self.halt),
            ring.released.eq(executor.released),
            loader.retired.eq(retirer.control.retired),
            loader.now.eq(self.now),
            executor.now.eq(self.now),
        ]

        # Events.
        connect(m, retirer.signal, flipped(self.event.signal))
        connect(m, executor.event, flipped(self.event.wait))

        # Registers.
        connect(m, flipped(self.regs), registers.regs)
        connect(m, registers.ring, ring.control)
        connect(m, registers.completions, retirer.control)
        connect(m, executor.status, registers.status)
        m.d.comb += [
            ring.enable.eq(registers.enable & ~registers.pause),
            loader.enable.eq(registers.enable),
            loader.hold.eq(registers.pause),
            executor.enable.eq(registers.enable),
            executor.pause.eq(registers.pause),
            registers.ended.eq(executor.ended.info),
            registers.loading.eq(loader.busy),
            registers.loaded.eq(loader.loaded.count),
            semaphores.index.eq(registers.semaphore),
            registers.semaphore_count.eq(semaphores.count),
            self.interrupt.eq(registers.interrupt),
        ]

        self._connect_units(m, executor, loader, ld2, queues, semaphores, faults)
        self._connect_monitor(m, executor, retirer, ld2, queues, semaphores, monitor)
        units_quiet = ~Cat(self.units[unit].busy for unit in Unit).any()
        m.d.comb += [
            executor.units_quiet.eq(units_quiet),
            self.quiet.eq(units_quiet & ring.quiet & loader.quiet & executor.quiet & retirer.quiet),
        ]
        return m

    def _connect_units(self, m: Module, executor, loader, ld2, queues, semaphores, faults) -> None:
        """Connect dispatch to the units through their queues, with LD2 shared between body and loader."""
        halt, abort = Signal(), Signal()
        m.d.comb += halt.eq(executor.abort | self.halt)
        m.d.sync += abort.eq(halt)  # units stop a cycle later: the level goes everywhere
        for unit, queue in zip(Unit, queues, strict=True):
            m.d.comb += [
                queue.push.valid.eq(executor.dispatch.push[unit]),
                queue.push.payload.eq(executor.dispatch.command),
                executor.dispatch.ready[unit].eq(queue.push.ready),
                queue.halt.eq(halt),
                semaphores.wait[unit].eq(queue.wait),
                semaphores.request[unit].eq(queue.request),
                queue.grant.eq(semaphores.grant[unit]),
                semaphores.signal[unit].eq(queue.signal),
                faults.signal[unit].eq(queue.signal),
                faults.signal_pc[unit].eq(queue.signal_pc),
                faults.wait[unit].eq(queue.wait),
                faults.head_pc[unit].eq(queue.head_pc),
                faults.unit_info[unit].eq(self.units[unit].fault_info),
            ]
        for unit in _OTHERS:
            port = self.units[unit]
            connect(m, queues[unit].cmd, flipped(port.cmd))
            m.d.comb += [
                queues[unit].done.eq(port.done),
                port.abort.eq(abort),
                faults.unit_fault[unit].eq(port.fault),
            ]
        connect(m, ld2.unit, flipped(self.units[Unit.LD2]))
        connect(m, queues[Unit.LD2].cmd, ld2.body)
        connect(m, loader.loads, ld2.loads)
        m.d.comb += [
            queues[Unit.LD2].done.eq(ld2.body_done),
            faults.unit_fault[Unit.LD2].eq(ld2.body_fault),
            ld2.abort.eq(abort),
            self.ld2_reset.eq(ld2.unit_reset),
        ]
        connect(m, executor.semaphores, semaphores.setup)
        # Who waits or is idle goes to the faults from registers: a deadlock lasts.
        m.d.sync += [
            faults.stuck.eq(Cat(queue.stuck for queue in queues)), faults.idle.eq(Cat(queue.idle for queue in queues)),
        ]  # fmt: skip
        idle = Cat(queue.idle for queue in queues).all()
        busy = Cat(self.units[unit].busy for unit in _OTHERS).any()
        m.d.comb += [
            executor.drained.eq(idle & ~busy),
            executor.fault.eq(faults.fault),
            executor.fault_info.eq(faults.info),
            faults.overflow.eq(semaphores.overflow),
            faults.nonzero.eq(semaphores.setup.nonzero),
            faults.blocked.eq(executor.blocked),
        ]

    def _connect_monitor(self, m: Module, executor, retirer, ld2, queues, semaphores, monitor) -> None:
        m.d.comb += [
            monitor.wanted.eq(retirer.counter_wanted),
            monitor.clear.eq(executor.begin),
            monitor.enable.eq(executor.measure),
            *(monitor.missing[i].eq(semaphores.missing[unit]) for i, unit in enumerate((Unit.MAC, Unit.VEC))),
            monitor.loading.eq(self.units[Unit.LD2].busy),
            monitor.mac_empty.eq(queues[Unit.MAC].idle),
            monitor.instructions.eq(executor.issued),
            monitor.fetch_stalled.eq(executor.starved),
        ]
        for unit in Unit:
            port, now = self.units[unit], monitor.activity[unit]
            mine = ld2.body_active if unit == Unit.LD2 else Const(1)
            m.d.comb += [
                now.bytes.eq(Mux(mine, port.mon_bytes, 0)),
                now.busy.eq(port.busy & mine),
                now.active.eq(port.mon_active),
                now.stalled.eq(port.mon_stalled),
                now.extent.eq(port.mon_extent),
                now.extent_valid.eq(port.mon_extent_valid & mine),
            ]
