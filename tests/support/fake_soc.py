"""A SoC for driver tests: the registers and rings of ``hw.regs`` and ``hw.job``, jobs run by the functional model.

Time is coarse: a job takes ``CYCLES_PER_INSTRUCTION`` for each instruction. Jobs run only while the host waits or
lets time pass, in a seeded order of engines, so that tests meet different interleavings.
"""

import random

from hw.isa import SEGMENTS
from hw.job import COMPLETION, JOB, JOB_MAGIC, Fault, FaultUnit, JobFlag
from hw.params import SocParams
from hw.regs import ENGINE_BASE, ID_VALUE, VERSION_VALUE, EngineState, register_map
from sim.bus import LINE_BYTES, BusError, HostCosts
from sim.model.functional import FunctionalFault, Machine

CYCLES_PER_INSTRUCTION = 100
_COMPLETION, _FAULT = 1, 2


class FakeSoc:
    """A ``sim.bus.Bus``. ``hang``: jobs never end. ``fault_completion``: a faulting job writes a completion too."""

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
        self._cycle = 0
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
        self._cycle += self.costs.register_access
        if name == "IRQ":
            return sum(1 << e for e in range(self.params.engines) if self._pending(e))
        if name == "CYCLE_LO":
            self._regs["CYCLE_HI"] = self._cycle >> 32
            return self._cycle & 0xFFFFFFFF
        return self._regs[name]

    def write_reg(self, address: int, value: int) -> None:
        name = self._name(address)
        self._cycle += self.costs.register_access
        kind = name.partition(".")[2]
        if kind == "IRQ_STATUS":
            self._regs[name] &= ~value
        elif kind == "CONTROL" and value & 2:
            self._reset((address - ENGINE_BASE) >> 12)
        else:
            self._regs[name] = value

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
            if name.startswith(f"E{e}."):
                self._regs[name] = 0
        self.machine.engines[e].semaphores[:] = [0] * self.params.semaphores

    def _run_one(self) -> bool:
        """Run one job that can run; False if there is none."""
        if self.hang:
            return False
        engines = list(range(self.params.engines))
        self._random.shuffle(engines)
        return any(self._try_job(e) for e in engines)

    def _try_job(self, e: int) -> bool:
        head, tail = self._regs[f"E{e}.RING_HEAD"], self._regs[f"E{e}.RING_TAIL"]
        room = (self._regs[f"E{e}.CPL_TAIL"] - self._regs[f"E{e}.CPL_HEAD"]) < 1 << self._regs[f"E{e}.CPL_SIZE"]
        enabled = self._regs[f"E{e}.CONTROL"] & 1 and self._regs[f"E{e}.STATUS"] != EngineState.FAULT
        if head == tail or not room or not enabled:
            return False
        slot = head & ((1 << self._regs[f"E{e}.RING_SIZE"]) - 1)
        address = self._regs[f"E{e}.RING_BASE"] + slot * JOB.size
        job = JOB.unpack(self.machine.dram[address : address + JOB.size].tobytes())
        if not self._events_reached(job):
            return False
        self._run_job(e, job, head)
        return True

    def _events_reached(self, job: dict[str, int]) -> bool:
        for i, flag in enumerate((JobFlag.WAIT0, JobFlag.WAIT1)):
            count = self._regs[f"EVENT[{job[f'wait{i}_id']}]"]
            if job["flags"] & flag and (count - job[f"wait{i}_value"]) & 0x80000000:
                return False
        return True

    def _run_job(self, e: int, job: dict[str, int], index: int) -> None:
        start = self._cycle
        self._regs[f"E{e}.CURRENT_JOB"] = job["job_id"]
        fault = self._execute(e, job)
        end = self._cycle
        entry = {"job_id": job["job_id"], "tag": job["tag"], "index": index, "start": start, "end": end}
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

    def _execute(self, e: int, job: dict[str, int]) -> FunctionalFault | None:
        if job["magic"] != JOB_MAGIC:
            return FunctionalFault(Fault.DESCRIPTOR, 0, 0, FaultUnit.RING)
        segments = [(job[f"base{i}"], job[f"limit{i}"]) for i in range(SEGMENTS)]
        base, limit = segments[0]
        code = self.machine.dram[base : base + limit].tobytes()
        try:
            if job["flags"] & JobFlag.PROLOGUE:
                self.machine.run_prologue(code, job["prologue_pc"], segments, e)
            last = self.machine.run_program(code, job["body_pc"], segments, e)
        except FunctionalFault as fault:
            self._cycle += CYCLES_PER_INSTRUCTION
            return fault
        cycles = (last + 1 - job["body_pc"]) * CYCLES_PER_INSTRUCTION
        self._cycle += cycles
        if job["cycle_limit"] and cycles > job["cycle_limit"]:
            return FunctionalFault(Fault.CYCLE_LIMIT, job["body_pc"])
        return None

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
