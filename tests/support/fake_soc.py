"""A SoC for driver tests: the registers and rings of ``hw/contract``, jobs run by the functional model.

Time is coarse: a job takes ``CYCLES_PER_INSTRUCTION`` for each instruction. Jobs run only while the host waits or
lets time pass, from one cancellation point to the next, in a seeded order of engines, so that tests meet different
interleavings. Prologues run as early as ``window_after`` allows. Pausing works as ``hw.contract.regs`` says. Of the
counters of a job it fills the bytes that DMAs read.

The fast model stands where it can: a test takes ``sim.model.bus.ModelBus``, or ``ModelSoc`` beside this module. This
device is for what the model cannot do:

- It misbehaves where a test says: a fault at any instruction (``inject``), jobs that never end (``hang``), a faulting
  job with or without a completion, registers that a test sets.
- A body takes at least ``CYCLES_PER_INSTRUCTION`` for each instruction, however short the instruction is. So tests of
  preemption stop the small images of ``preempt_images`` in the middle of a body at an instant that they choose. On the
  model these bodies mostly end before the pause of the driver arrives, and such a test would pass without a dump.
- Engines take their turns in a random order, so that layers on several engines meet in other orders with each seed.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass

from hw.contract.bus import LINE_BYTES, BusError, HostCosts
from hw.contract.formats import PARAMETERS
from hw.contract.isa import SEGMENTS, Insn, Op
from hw.contract.job import COMPLETION, JOB, JOB_MAGIC, SEMAPHORES, Fault, FaultUnit, JobFlag
from hw.contract.params import SocParams
from hw.contract.regs import ENGINE_BASE, ID_VALUE, VERSION_VALUE, EngineState, field_value, register_map
from sim.functional.machine import FunctionalFault, Machine
from sim.functional.units import COPIES

CYCLES_PER_INSTRUCTION = 100
_COMPLETION, _FAULT, _HALTED = 1, 2, 4
_ENABLE, _RESET, _PAUSE = 1, 2, 4
_IN_JOB = 1 << 5
_KEPT = ("RING_BASE", "RING_SIZE", "CPL_BASE", "CPL_SIZE", "IRQ_ENABLE")  #: registers an engine reset leaves alone


@dataclass
class _Body:
    """A body in progress. ``pc``: next instruction."""

    job: dict[str, int]
    index: int
    segments: list[tuple[int, int]]
    code: bytes
    pc: int
    start: int
    bytes_read: dict[Op, int]
    cycles: int = 0

    @property
    def parameters(self) -> list[int]:
        """What its instructions may name."""
        named = self.job["flags"] & JobFlag.PARAMS
        return [self.job[f"param{number}"] for number in range(PARAMETERS)] if named else []


class FakeSoc:
    """A ``hw.contract.bus.Bus``. ``hang``: jobs never end. ``fault_completion``: a faulting job writes a completion
    too.

    ``inject``: called with (engine, instruction) before each instruction of a body; a fault it returns happens.
    """

    def __init__(
        self, params: SocParams, *, costs: HostCosts | None = None, seed: int = 0, fault_completion: bool = True
    ) -> None:
        self.params = params
        self.costs = costs or HostCosts()
        self.hang = False
        self.fault_completion = fault_completion
        self.machine = Machine(params)
        self.resets: list[int] = []  #: engines that were reset, in order
        self.closed = False
        self.inject: Callable[[int, Insn], Fault | None] = lambda engine, insn: None
        self._cycle = 0
        self._bodies: list[_Body | None] = [None] * params.engines
        self._ahead: dict[int, int] = {}  #: bytes of prologues that have run, by job id
        self._random = random.Random(seed)
        self._names = {address: name for name, address in register_map(params.engines).items()}
        self._regs = dict.fromkeys(self._names.values(), 0)
        self._regs["ID"], self._regs["VERSION"] = ID_VALUE, VERSION_VALUE
        self._regs["PARAMS"] = int(params.digest()[:8], 16)
        self._regs["ENGINES"] = params.engines

    # -- Bus -------------------------------------------------------------------------------------------------
    @property
    def cycle(self) -> int:
        return self._cycle

    def read_reg(self, address: int) -> int:
        name = self._name(address)
        if name == "IRQ":  # what a driver that stays awake reads again and again
            self.advance(self.costs.register_access)
            return sum(1 << e for e in range(self.params.engines) if self._pending(e))
        self._cycle += self.costs.register_access
        if name == "CYCLE_LO":
            self._regs["CYCLE_HI"] = self._cycle >> 32
            return self._cycle & 0xFFFFFFFF
        if ".SEM[" in name and not self._regs[name]:
            engine, _, rest = name.partition(".SEM[")
            counts = self.machine.engines[int(engine[1:])].semaphores
            return counts[int(rest[:-1])] if int(rest[:-1]) < len(counts) else 0
        if name.endswith(".STATUS"):
            e = name.partition(".")[0]
            loaded, retired, point = (self._regs[f"{e}.{n}"] for n in ("RING_LOADED", "CPL_TAIL", "HALT_POINT"))
            return self._regs[name] | field_value("STATUS", loaded=loaded, retired=retired, point=point)
        return self._regs[name]

    def write_reg(self, address: int, value: int) -> None:
        name = self._name(address)
        self._cycle += self.costs.register_access
        kind = name.partition(".")[2]
        if kind == "IRQ_STATUS":
            self._regs[name] &= ~value
        elif kind == "CONTROL" and value & _RESET:
            self._reset((address - ENGINE_BASE) >> 12)
        else:
            self._regs[name] = value
            status = name.replace("CONTROL", "STATUS")
            if kind == "CONTROL" and self._regs[status] & 15 == EngineState.HALTED and not value & _PAUSE:
                self._regs[status] = EngineState.RUNNING if self._regs[status] & _IN_JOB else EngineState.IDLE

    def read_mem(self, address: int, size: int, *, charge: bool = True) -> bytes:
        self._check(address, size, charge)
        return self.machine.dram[address : address + size].tobytes()

    def write_mem(self, address: int, data: bytes, *, charge: bool = True) -> None:
        self._check(address, len(data), charge)
        self.machine.dram[address : address + len(data)] = memoryview(data)

    def wait_irq(self, limit: int) -> bool:
        deadline = self._cycle + limit
        while not self._line():
            if not self._run_one() or self._cycle > deadline:
                self._cycle = deadline
                return False
        self._cycle += self.costs.interrupt
        return True

    def step(self) -> None:
        """Let a little happen: a job goes on to its next cancellation point."""
        self.advance(1)

    def advance(self, cycles: int) -> None:
        end = self._cycle + cycles
        while self._cycle < end and self._run_one():
            pass
        self._cycle = max(self._cycle, end)

    def close(self) -> None:
        self.closed = True

    def _name(self, address: int) -> str:
        if address not in self._names:
            raise BusError(f"no register at 0x{address:x}")
        return self._names[address]

    def _check(self, address: int, size: int, charge: bool) -> None:
        if not 0 <= address <= address + size <= self.params.dram_bytes:
            raise BusError(f"DRAM access of {size} bytes at 0x{address:x} is outside {self.params.dram_bytes} bytes")
        if charge:
            self._cycle += -(-size // LINE_BYTES) * self.costs.memory_line

    # -- engines ---------------------------------------------------------------------------------------------
    def _pending(self, e: int) -> int:
        return self._regs[f"E{e}.IRQ_STATUS"] & self._regs[f"E{e}.IRQ_ENABLE"]

    def _line(self) -> bool:
        return any(self._pending(e) for e in range(self.params.engines))

    def _reset(self, e: int) -> None:
        self.resets.append(e)
        for name in self._regs:
            if name.startswith(f"E{e}.") and not name.endswith(_KEPT):
                self._regs[name] = 0
        self._bodies[e] = None
        self.machine.engines[e].semaphores[:] = [0] * self.params.semaphores

    def _run_one(self) -> bool:
        """Run one job that can run, up to its next cancellation point; False if there is none."""
        if self.hang:
            return False
        engines = list(range(self.params.engines))
        self._random.shuffle(engines)
        return any(self._try_job(e) for e in engines)

    def _try_job(self, e: int) -> bool:
        state, control = self._regs[f"E{e}.STATUS"] & 15, self._regs[f"E{e}.CONTROL"]
        if not control & _ENABLE or state in (EngineState.FAULT, EngineState.HALTED):
            return False
        if self._bodies[e] is None and not self._begin(e):
            return False
        if self._bodies[e] is not None:
            self._run_body(e, self._bodies[e])
        return True

    def _begin(self, e: int) -> bool:
        """Start the job at the head of the ring, or halt before it; False if neither happens."""
        head, tail = self._regs[f"E{e}.RING_HEAD"], self._regs[f"E{e}.RING_TAIL"]
        room = (self._regs[f"E{e}.CPL_TAIL"] - self._regs[f"E{e}.CPL_HEAD"]) < 1 << self._regs[f"E{e}.CPL_SIZE"]
        if self._regs[f"E{e}.CONTROL"] & _PAUSE and room:
            self._halt(e)
            return True
        if head == tail or not room:
            return False
        job = self._descriptor(e, head)
        if not self._events_reached(job):
            return False
        self._regs[f"E{e}.CURRENT_JOB"] = job["job_id"]
        segments = [(job[f"base{i}"], job[f"limit{i}"]) for i in range(SEGMENTS)]
        base, limit = segments[0]
        code = self.machine.dram[base : base + limit].tobytes()
        self._bodies[e] = body = _Body(job, head, segments, code, job["body_pc"], self._cycle, dict.fromkeys(COPIES, 0))
        counts = self.machine.engines[e].semaphores
        first = [job[f"sem{i}"] if job["flags"] & JobFlag.RESUME else 0 for i in range(SEMAPHORES)]
        counts[:] = first[: len(counts)]
        try:
            if job["magic"] != JOB_MAGIC:
                raise FunctionalFault(Fault.DESCRIPTOR, 0, 0, FaultUnit.RING)
            self._load_ahead(e)
        except FunctionalFault as fault:
            self._end(e, body, fault)
        return True

    def _load_ahead(self, e: int) -> None:
        """Prologues in ring order, as far as the windows of retired jobs reach."""
        loaded, head = self._regs[f"E{e}.RING_LOADED"], self._regs[f"E{e}.RING_HEAD"]
        while loaded < self._regs[f"E{e}.RING_TAIL"]:
            job = self._descriptor(e, loaded)
            if job["flags"] & JobFlag.PROLOGUE:
                if job["window_after"] and loaded - job["window_after"] >= head:
                    break
                segments = [(job[f"base{i}"], job[f"limit{i}"]) for i in range(SEGMENTS)]
                code = self.machine.dram[segments[0][0] : sum(segments[0])].tobytes()
                before = self.machine.bytes_read[Op.LD2]
                self.machine.run_prologue(code, job["prologue_pc"], segments, e)
                self._ahead[job["job_id"]] = self.machine.bytes_read[Op.LD2] - before
            loaded += 1
        self._regs[f"E{e}.RING_LOADED"] = loaded

    def _descriptor(self, e: int, index: int) -> dict[str, int]:
        slot = index & ((1 << self._regs[f"E{e}.RING_SIZE"]) - 1)
        address = self._regs[f"E{e}.RING_BASE"] + slot * JOB.size
        return JOB.unpack(self.machine.dram[address : address + JOB.size].tobytes())

    def _halt(self, e: int, point: int | None = None) -> None:
        self._regs[f"E{e}.STATUS"] = EngineState.HALTED | (0 if point is None else _IN_JOB)
        self._regs[f"E{e}.IRQ_STATUS"] |= _HALTED
        self._regs[f"E{e}.HALT_CYCLE_LO"] = self._cycle & 0xFFFFFFFF
        self._regs[f"E{e}.HALT_CYCLE_HI"] = self._cycle >> 32
        body = self._bodies[e]
        if body is not None and point is not None:
            self._regs[f"E{e}.HALT_JOB"] = body.job["job_id"]
            self._regs[f"E{e}.HALT_POINT"], self._regs[f"E{e}.HALT_PC"] = point, body.pc

    def _run_body(self, e: int, body: _Body) -> None:
        """Instructions up to the next CANCEL or END, both included."""
        try:
            while True:
                insn = self.machine.fetch(body.code, body.pc, parameters=body.parameters)
                body.pc += 1
                body.cycles += CYCLES_PER_INSTRUCTION
                self._cycle += CYCLES_PER_INSTRUCTION
                if insn.op is Op.CANCEL:
                    if self._regs[f"E{e}.CONTROL"] & _PAUSE:
                        self._halt(e, insn["point"])
                    return
                if insn.op is Op.END:
                    self.machine.finish(e, body.pc - 1)
                    limit = body.job["cycle_limit"]
                    if limit and body.cycles > limit:
                        raise FunctionalFault(Fault.CYCLE_LIMIT, body.job["body_pc"])
                    self._end(e, body, None)
                    return
                code = self.inject(e, insn)
                if code is not None:
                    raise FunctionalFault(code, body.pc - 1)
                before = self.machine.bytes_read.get(insn.op, 0)
                self.machine.step(insn, body.segments, e, body.pc - 1)
                if insn.op in COPIES:
                    body.bytes_read[insn.op] += self.machine.bytes_read[insn.op] - before
        except FunctionalFault as fault:
            self._end(e, body, fault)

    def _events_reached(self, job: dict[str, int]) -> bool:
        for i, flag in enumerate((JobFlag.WAIT0, JobFlag.WAIT1)):
            count = self._regs[f"EVENT[{job[f'wait{i}_id']}]"]
            if job["flags"] & flag and (count - job[f"wait{i}_value"]) & 0x80000000:
                return False
        return True

    def _end(self, e: int, body: _Body, fault: FunctionalFault | None) -> None:
        job, self._bodies[e] = body.job, None
        entry = {
            "job_id": job["job_id"],
            "tag": job["tag"],
            "index": body.index,
            "start": body.start,
            "end": self._cycle,
            "prologue_bytes": self._ahead.pop(job["job_id"], 0),
            **{f"{op.name.lower()}_bytes": count for op, count in body.bytes_read.items()},
        }
        if fault is not None:
            entry |= {"status": fault.code, "unit": fault.unit, "pc": fault.pc, "address": fault.addr}
            self._stop(e, job, fault)
        if fault is None or self.fault_completion:
            self._complete(e, entry)
        if fault is None:
            self._regs[f"E{e}.RING_HEAD"] += 1
            if job["flags"] & JobFlag.SIGNAL:
                self._regs[f"EVENT[{job['signal_id']}]"] += 1
            if job["flags"] & JobFlag.INTERRUPT:
                self._regs[f"E{e}.IRQ_STATUS"] |= _COMPLETION

    def _stop(self, e: int, job: dict[str, int], fault: FunctionalFault) -> None:
        self._regs[f"E{e}.STATUS"] = EngineState.FAULT
        self._regs[f"E{e}.FAULT_CODE"] = int(fault.code) | int(fault.unit) << 8
        self._regs[f"E{e}.FAULT_JOB"] = job["job_id"]
        self._regs[f"E{e}.FAULT_PC"] = fault.pc
        self._regs[f"E{e}.FAULT_ADDR"] = fault.addr
        self._regs[f"E{e}.IRQ_STATUS"] |= _FAULT

    def _complete(self, e: int, entry: dict[str, int]) -> None:
        slot = self._regs[f"E{e}.CPL_TAIL"] & ((1 << self._regs[f"E{e}.CPL_SIZE"]) - 1)
        self.write_mem(self._regs[f"E{e}.CPL_BASE"] + slot * COMPLETION.size, COMPLETION.pack(**entry), charge=False)
        self._regs[f"E{e}.CPL_TAIL"] += 1
