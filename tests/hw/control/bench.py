"""A control under test: DRAM in a bytearray, stub units with random latencies, registers driven directly."""

import random
from collections import deque
from typing import ClassVar

from amaranth.hdl import Value
from amaranth.sim import Simulator

from hw.contract.isa import DESTINATION_SEGMENTS, INSN_BYTES, SOURCE_SEGMENTS, Insn, Op, Unit
from hw.contract.job import COMPLETION, JOB, JOB_MAGIC, JobFlag
from hw.contract.layout import LayoutError
from hw.contract.params import SocParams, preset
from hw.contract.regs import EngineState
from hw.control.engine_control import EngineControl
from hw.interfaces import COMMAND
from tests.support.memories import serve_bus_read, serve_bus_write
from tests.support.streams import Outputs, Stalls

RING, CPL, CODE = 0x1000, 0x3000, 0x4000
RING_LOG2 = 3
PARAMS = preset("tiny")


def mask(*semaphores: int) -> int:
    return sum(1 << s for s in semaphores)


def insn(op: Op, wait=(), signal=(), **fields: int) -> Insn:
    """An instruction whose masks are given as semaphore numbers; of a copy, with segments it may name."""
    masks = {"wait": mask(*wait), "signal": mask(*signal)}
    ends = {"src_seg": SOURCE_SEGMENTS.get(op), "dst_seg": DESTINATION_SEGMENTS.get(op)}
    segments = {name: int(allowed[0]) for name, allowed in ends.items() if allowed}
    return Insn(op, segments | fields | {name: value for name, value in masks.items() if value})


END = Insn(Op.END)


class StubUnit:
    """A unit that does nothing but take time. Pulses ``done`` in order, or a fault for chosen PCs.

    It writes what becomes of its commands to ``bench.order``: start, then done, fault or dropped.
    """

    def __init__(self, bench: "ControlBench", control: EngineControl, unit: Unit) -> None:
        self.bench, self.port, self.unit = bench, control.units[unit], unit
        self.reset = control.ld2_reset if unit == Unit.LD2 else None
        self.log: list = []

    async def run(self, ctx) -> None:
        port, bench = self.port, self.bench
        flying: deque = deque()
        dead, linger = False, 0
        outputs = Outputs(ctx)
        offered, ready, command, aborted = port.cmd.valid, port.cmd.ready, port.cmd.payload.as_value(), port.abort
        done, fault, busy = port.done, port.fault, port.busy
        extent, extent_valid, read = port.mon_extent, port.mon_extent_valid, port.mon_bytes
        extra = [self.reset] if self.reset is not None else []
        while True:
            accepting = not dead and len(flying) < 2 and not bench.stalls()
            outputs.set(ready, accepting)
            _, _, valid, bits, abort, *reset = await ctx.tick().sample(offered, command, aborted, *extra)
            finished = faulty = False
            if any(reset):
                dead, linger = False, 0
            elif abort and not dead:
                dead, linger = True, bench.linger
                bench.order += [("dropped", self.unit, pc) for _, pc in flying]
                flying.clear()
            if valid and accepting and not dead:
                taken = COMMAND.from_bits(bits)
                pc, decoded = taken.pc, Insn.decode(taken.insn.to_bytes(INSN_BYTES, "little"))
                self.log.append((pc, decoded, taken.src_base, taken.dst_base))
                bench.order.append(("start", self.unit, pc))
                flying.append([bench.latency(self.unit, pc), pc])
            if flying:
                flying[0][0] -= 1
                if flying[0][0] <= 0:
                    _, pc = flying.popleft()
                    if (self.unit, pc) in bench.unit_faults:
                        code, addr = bench.unit_faults[self.unit, pc]
                        faulty = True
                        ctx.set(port.fault_info, {"code": code, "pc": pc, "addr": addr})
                        dead, linger = True, bench.linger
                        bench.order += [("fault", self.unit, pc), *(("dropped", self.unit, pc) for _, pc in flying)]
                        flying.clear()
                    else:
                        bench.order.append(("done", self.unit, pc))
                        finished = True
                        outputs.set(extent, pc + 1)
            outputs.set(done, finished)
            outputs.set(extent_valid, finished)
            outputs.set(fault, faulty)
            outputs.set(read, 3 if flying else 0)
            linger = max(0, linger - 1)
            outputs.set(busy, bool(flying) or linger > 0)


class _Machine:
    """One elaborated control and its simulator, used by one bench after another: elaboration takes seconds."""

    cache: ClassVar[dict[SocParams, "_Machine"]] = {}

    def __init__(self, params: SocParams) -> None:
        self.dut = EngineControl(params)
        self.testbenches: list = []
        self.simulator: Simulator | None = None

    @classmethod
    def of(cls, params: SocParams) -> "_Machine":
        if params not in cls.cache:
            cls.cache[params] = cls(params)
        return cls.cache[params]

    def run(self, testbench, processes: list) -> None:
        """Run from power-on until ``testbench`` ends; there must be equally many ``processes`` every time. The design
        settles once for all that they set in a cycle."""
        self.testbenches = [testbench, *processes]
        if self.simulator is None:
            self.simulator = Simulator(self.dut)
            self.simulator.add_clock(1e-6)
            self.simulator.add_testbench(self._delegate(0))
            for number in range(1, 1 + len(processes)):
                self.simulator.add_process(self._delegate(number))
        else:
            self.simulator.reset()
        self.simulator.run()

    def _delegate(self, number: int):
        async def testbench(ctx) -> None:
            await self.testbenches[number](ctx)

        return testbench


class ControlBench:
    """Runs one :class:`EngineControl` with stub units; see the tests for how."""

    def __init__(self, *, seed: int = 0, stall: float = 0.0, latency=(1, 12), params: SocParams = PARAMS,
                 read_errors=frozenset(), write_errors=frozenset(), bus_latency: int = 10) -> None:  # fmt: skip
        self.params = params
        self.machine = _Machine.of(params)
        self.dut = self.machine.dut
        self.random = random.Random(seed)
        self.stalls = Stalls(seed + 1, stall)
        self._latency = latency
        self.fixed_latency: dict[Unit | tuple[Unit, int], int] = {}  # of a unit, or of one of its instructions
        self.linger = 3  # cycles in which an aborted unit waits for what it has outstanding
        self.memory = bytearray(1 << 16)
        self.order: list = []
        self.unit_faults: dict = {}
        self.jobs = 0
        self.code_end = 0
        self.units = [StubUnit(self, self.dut, unit) for unit in Unit]
        stalls = Stalls(seed + 2, stall)
        width = params.dram_word
        read_errors = {address // width for address in read_errors}
        self.fetches: list = []
        self._background = [
            *serve_bus_read(
                self.dut.body_fetch, self.memory, latency=bus_latency, stalls=stalls, errors=read_errors,
                log=self.fetches,
            ),
            *serve_bus_read(self.dut.load_fetch, self.memory, latency=bus_latency, stalls=stalls, errors=read_errors),
            *serve_bus_write(
                self.dut.completion, self.memory, latency=bus_latency, stalls=stalls, errors=write_errors
            ),
            *(unit.run for unit in self.units),
        ]  # fmt: skip

    def latency(self, unit: Unit, pc: int) -> int:
        fixed = self.fixed_latency.get((unit, pc)) or self.fixed_latency.get(unit)
        return fixed or self.random.randint(*self._latency)

    # -- memory --------------------------------------------------------------------------------------------
    def code(self, *program: Insn | bytes) -> int:
        """Append a program to the code segment; returns its PC."""
        pc = self.code_end
        for instruction in program:
            raw = instruction if isinstance(instruction, bytes) else instruction.encode()
            self.memory[CODE + self.code_end * INSN_BYTES : CODE + (self.code_end + 1) * INSN_BYTES] = raw
            self.code_end += 1
        return pc

    def job(self, *body: Insn | bytes, prologue: tuple | None = None, **fields: int) -> int:
        """Append a job to the ring in memory; returns its index."""
        values = {"magic": JOB_MAGIC, "job_id": 0x100 + self.jobs, "tag": 7 * self.jobs, "flags": 0}
        values["body_pc"] = self.code(*body)
        if prologue is not None:
            values["prologue_pc"] = self.code(*prologue)
            values["flags"] |= JobFlag.PROLOGUE
        values |= {"base0": CODE, "limit0": 0x4000, "base2": 0x8000, "limit2": 0x1000, "base6": 256, "limit6": 4096}
        values["flags"] |= fields.pop("flags", 0)
        raw = JOB.pack(**(values | fields))
        start = RING + 256 * (self.jobs % (1 << RING_LOG2))
        self.memory[start : start + 256] = raw
        self.jobs += 1
        return self.jobs - 1

    def completion(self, index: int) -> dict[str, int]:
        start = CPL + 256 * (index % (1 << RING_LOG2))
        try:
            return COMPLETION.unpack(bytes(self.memory[start : start + 256]))
        except LayoutError as error:  # pragma: no cover
            raise AssertionError(error) from None

    # -- registers -----------------------------------------------------------------------------------------
    async def write(self, ctx, name: str, value: int) -> None:
        element = getattr(self.dut.regs, name)
        ctx.set(Value.cast(element.w_data), value)
        ctx.set(element.w_stb, 1)
        await ctx.tick()
        ctx.set(element.w_stb, 0)

    def read(self, ctx, name: str) -> int:
        return ctx.get(Value.cast(getattr(self.dut.regs, name).r_data))

    async def read_array(self, ctx, name: str, index: int) -> int:
        array = getattr(self.dut.regs, name)
        ctx.set(array.index, index)
        ctx.set(array.read, 1)
        (value,) = await ctx.tick().sample(array.r_data).until(array.ack)
        ctx.set(array.read, 0)
        return value

    def state(self, ctx) -> int:
        return self.read(ctx, "status") & 0xF

    async def enable(self, ctx, *, tail: int | None = None) -> None:
        await self.write(ctx, "ring_base", RING)
        await self.write(ctx, "ring_size", RING_LOG2)
        await self.write(ctx, "cpl_base", CPL)
        await self.write(ctx, "cpl_size", RING_LOG2)
        await self.write(ctx, "control", 1)
        await self.write(ctx, "ring_tail", self.jobs if tail is None else tail)

    async def retired(self, ctx, count: int, limit: int = 4000) -> None:
        for _ in range(limit):
            if self.read(ctx, "ring_head") == count:
                return
            await ctx.tick()
        raise AssertionError(f"{self.read(ctx, 'ring_head')} jobs retired, not {count}; state {self.state(ctx)}")

    async def faulted(self, ctx, limit: int = 4000) -> None:
        for _ in range(limit):
            if self.state(ctx) == EngineState.FAULT:
                return
            await ctx.tick()
        raise AssertionError(f"no fault; state {self.state(ctx)}")

    async def _clock(self, ctx) -> None:
        now = 0
        while True:
            await ctx.tick()
            now += 1
            ctx.set(self.dut.now, now)

    async def _events(self, ctx) -> None:
        """Events that nobody needs: signals are taken, waits are answered from ``self.event``."""
        port = self.dut.event
        self.event: dict[int, int] = {}
        ctx.set(port.signal.ready, 1)
        told = False
        while True:
            _, _, signal, number, wait, wait_id, value = await ctx.tick().sample(
                port.signal.valid, port.signal.payload, port.wait.request, port.wait.id, port.wait.value
            )
            if signal:
                self.event[number] = self.event.get(number, 0) + 1
            reached = self.event.get(wait_id, 0) - value
            told = bool(wait and not told and 0 <= reached < 1 << 31)
            ctx.set(port.wait.reached, told)

    def run(self, testbench) -> None:
        self.machine.run(testbench, [*self._background, self._clock, self._events])
