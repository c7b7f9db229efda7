"""Everything of an engine that is not a unit or a memory: the sequencers and their registers."""

from amaranth.hdl import Cat, Const, Module, Mux, ResetSignal, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.contract.isa import Unit
from hw.contract.job import Fault, FaultUnit
from hw.contract.params import SocParams
from hw.contract.regs import ENGINE_REGS, EngineState
from hw.control.events import EventPort
from hw.control.executor import Executor
from hw.control.faults import FaultCollector
from hw.control.ld2_share import Ld2Share
from hw.control.loader import Loader
from hw.control.monitor import Monitor
from hw.control.read_share import ReadShare
from hw.control.retire import COUNTER_WORD, Retirer
from hw.control.ring import JobRing
from hw.control.semaphores import SemaphoreFile
from hw.control.unit_queue import UnitQueue
from hw.interfaces import BusReadPort, BusWritePort, UnitPort
from hw.registers import Registers

_OTHERS = tuple(unit for unit in Unit if unit != Unit.LD2)


class EngineControl(wiring.Component):
    """Job ring, loader, executor, unit queues, semaphores, counters and registers of one engine.

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
        m.submodules.monitor = monitor = Monitor()
        m.submodules.semaphores = semaphores = SemaphoreFile(self.params, len(Unit))
        m.submodules.faults = faults = FaultCollector(self.params)
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
        connect(m, loader.header, ring.load_header)
        connect(m, loader.src, ring.load_src)
        connect(m, loader.dst, ring.load_dst)
        connect(m, executor.header, ring.run_header)
        connect(m, executor.src, ring.run_src)
        connect(m, executor.dst, ring.run_dst)
        connect(m, retirer.prologue, loader.result)
        stop = Signal()  # the ring stops, for good or until reset
        dead = Signal()
        m.d.comb += [
            dead.eq(executor.state == EngineState.FAULT),
            stop.eq(self.halt | dead),
            ring.halt.eq(stop),
            ring.released.eq(executor.released),
            loader.halt.eq(stop),
            executor.calm.eq(loader.resting),
            loader.stored.eq(ring.stored),
            loader.bad.eq(ring.bad),
            loader.bad_code.eq(ring.bad_code),
            loader.retired.eq(retirer.retired),
            loader.now.eq(self.now),
            executor.halt.eq(self.halt),
            executor.loaded.eq(loader.loaded),
            executor.load_failed.eq(loader.fault),
            executor.load_fault.eq(loader.fault_info),
            executor.now.eq(self.now),
            executor.retire_failed.eq(retirer.failed),
            executor.retire_free.eq(retirer.free),
            executor.copied.eq(retirer.copied),
            retirer.halt.eq(self.halt),
            retirer.start.eq(executor.retire),
            retirer.ended.eq(executor.ended),
        ]
        for mine, theirs in zip(retirer.counters, monitor.counters, strict=True):
            m.d.comb += mine.eq(theirs)

        # Events.
        connect(m, retirer.signal, flipped(self.event.signal))
        m.d.comb += [
            self.event.wait.eq(executor.event_wait),
            self.event.wait_id.eq(executor.event_id),
            self.event.wait_value.eq(executor.event_value),
            executor.event_reached.eq(self.event.reached),
        ]

        self._connect_units(m, executor, loader, ld2, queues, semaphores, faults)
        self._connect_monitor(m, executor, loader, ld2, queues, semaphores, monitor)
        self._connect_registers(m, ring, loader, executor, retirer, semaphores)
        units_quiet = ~Cat(self.units[unit].busy for unit in Unit).any()
        m.d.comb += [
            executor.units_quiet.eq(units_quiet),
            self.quiet.eq(units_quiet & ring.quiet & loader.quiet & executor.quiet & retirer.quiet),
        ]
        return m

    def _connect_units(self, m: Module, executor, loader, ld2, queues, semaphores, faults) -> None:
        """Queues between dispatch and the units, with LD2 shared between body and loader."""
        abort = Signal()
        m.d.comb += abort.eq(executor.abort | self.halt)
        for unit, queue in zip(Unit, queues, strict=True):
            m.d.comb += [
                queue.push.valid.eq(executor.push[unit]),
                queue.push.payload.eq(executor.command),
                executor.queue_ready[unit].eq(queue.push.ready),
                queue.halt.eq(abort),
                semaphores.wait[unit].eq(queue.wait),
                semaphores.request[unit].eq(queue.request),
                queue.grant.eq(semaphores.grant[unit]),
                semaphores.signal[unit].eq(queue.signal),
                faults.signal[unit].eq(queue.signal),
                faults.signal_pc[unit].eq(queue.signal_pc),
                faults.stuck[unit].eq(queue.stuck),
                faults.idle[unit].eq(queue.idle),
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
        connect(m, loader.cmd, ld2.loader)
        m.d.comb += [
            queues[Unit.LD2].done.eq(ld2.body_done),
            loader.done.eq(ld2.loader_done),
            loader.active.eq(ld2.loader_active),
            loader.present.eq(ld2.loader_present),
            ld2.abandon.eq(loader.abandon),
            loader.unit_fault.eq(ld2.loader_fault),
            loader.unit_fault_info.eq(self.units[Unit.LD2].fault_info),
            faults.unit_fault[Unit.LD2].eq(ld2.body_fault),
            ld2.abort.eq(abort),
            self.ld2_reset.eq(ld2.unit_reset),
        ]
        idle = Cat(queue.idle for queue in queues).all()
        busy = Cat(self.units[unit].busy for unit in _OTHERS).any()
        m.d.comb += [
            executor.drained.eq(idle & ~busy),
            executor.nonzero.eq(semaphores.nonzero),
            executor.fault.eq(faults.fault),
            executor.fault_info.eq(faults.info),
            semaphores.clear.eq(executor.begin),
            semaphores.load.eq(executor.sem_load),
            semaphores.load_group.eq(executor.sem_group),
            semaphores.load_counts.eq(executor.sem_counts),
            faults.overflow.eq(semaphores.overflow),
            faults.nonzero.eq(semaphores.nonzero),
            faults.blocked.eq(executor.blocked),
        ]

    def _connect_monitor(self, m: Module, executor, loader, ld2, queues, semaphores, monitor) -> None:
        m.d.comb += [
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
        port = self.units[Unit.LD2]
        m.d.comb += [
            loader.mon_bytes.eq(port.mon_bytes),
            loader.mon_busy.eq(port.busy),
            loader.mon_stalled.eq(port.mon_stalled),
            loader.mon_extent.eq(port.mon_extent),
            loader.mon_extent_valid.eq(port.mon_extent_valid),
        ]

    def _connect_registers(self, m: Module, ring, loader, executor, retirer, semaphores) -> None:
        regs = self.regs
        enable, pause = Signal(), Signal()
        m.d.comb += [
            ring.enable.eq(enable & ~pause),
            loader.enable.eq(enable),
            executor.enable.eq(enable),
            executor.pause.eq(pause),
            loader.hold.eq(pause),
            regs.control.r_data.eq(Cat(enable, Const(0, 1), pause)),
            regs.status.r_data.eq(Cat(executor.state, loader.busy, executor.in_job)),
        ]
        with m.If(regs.control.w_stb):
            m.d.sync += [enable.eq(regs.control.w_data[0]), pause.eq(regs.control.w_data[2])]

        # Interrupts.
        pending, wanted = Signal(3), self._register(m, "irq_enable", 3, kept=True)
        was_dead = Signal()
        dead = executor.state == EngineState.FAULT
        raised = Cat(retirer.interrupt, dead & ~was_dead, executor.halted)
        cleared = Mux(regs.irq_status.w_stb, regs.irq_status.w_data[:3], 0)
        m.d.sync += [was_dead.eq(dead), pending.eq((pending & ~cleared) | raised)]
        m.d.comb += [
            self.interrupt.eq((pending & wanted).any()),
            regs.irq_status.r_data.eq(pending),
        ]

        # Rings. Where they lie survives a reset of the engine.
        for name, target, kept in (
            ("ring_base", ring.base, True),
            ("ring_size", ring.size_log2, True),
            ("cpl_base", retirer.base, True),
            ("cpl_size", retirer.size_log2, True),
            ("cpl_head", retirer.consumed, False),
        ):
            m.d.comb += target.eq(self._register(m, name, len(target), kept=kept))
        m.d.comb += [
            ring.tail_stb.eq(regs.ring_tail.w_stb),
            ring.tail_data.eq(regs.ring_tail.w_data),
            regs.ring_tail.r_data.eq(ring.tail),
            regs.ring_fetched.r_data.eq(ring.fetched),
            regs.ring_loaded.r_data.eq(loader.loaded),
            regs.ring_head.r_data.eq(retirer.retired),
            regs.cpl_tail.r_data.eq(retirer.retired),
        ]

        # What runs, and what went wrong.
        fault, job_id = executor.ended.fault, Signal(32)
        m.d.comb += [job_id.eq(executor.ended.job.job_id), regs.fault_job.r_data.eq(Mux(dead, job_id, 0))]
        with m.If(retirer.failed):
            m.d.comb += [
                regs.fault_code.r_data.eq(Cat(Const(Fault.BUS, 8), Const(FaultUnit.RING, 8))),
                regs.fault_job.r_data.eq(retirer.failed_job),
            ]
        with m.Else():
            m.d.comb += [
                regs.fault_code.r_data.eq(Cat(fault.code, fault.unit)),
                regs.fault_pc.r_data.eq(fault.pc),
                regs.fault_addr.r_data.eq(fault.addr),
            ]
        m.d.comb += [
            regs.halt_job.r_data.eq(job_id),
            regs.halt_point.r_data.eq(executor.halt_point),
            regs.halt_pc.r_data.eq(executor.halt_pc),
            regs.halt_cycle_lo.r_data.eq(executor.halt_cycle[:32]),
            regs.halt_cycle_hi.r_data.eq(executor.halt_cycle[32:]),
            regs.current_job.r_data.eq(job_id),
            regs.current_pc.r_data.eq(executor.next_pc),
            semaphores.index.eq(regs.sem.index),
            regs.sem.r_data.eq(semaphores.count),
            regs.sem.ack.eq(1),
            retirer.view_index.eq(regs.counter.index + COUNTER_WORD),
            retirer.view_request.eq(regs.counter.read),
            regs.counter.r_data.eq(retirer.view),
            regs.counter.ack.eq(retirer.view_ack),
        ]

    def _register(self, m: Module, name: str, width: int, *, kept: bool) -> Signal:
        """A plain read and write register. ``kept``: only a reset of the whole clock domain clears it."""
        element, value = getattr(self.regs, name), Signal(width, name=name, reset_less=kept)
        m.d.comb += element.r_data.eq(value)
        with m.If(element.w_stb):
            m.d.sync += value.eq(element.w_data)
        if kept:
            with m.If(ResetSignal(allow_reset_less=True)):
                m.d.sync += value.eq(0)
        return value
