"""Jobs on a whole SoC through its ``Bus``, without compiler and driver."""

from hw.contract.bus import Bus, HostCosts
from hw.contract.isa import INSN_BYTES, Insn, Op
from hw.contract.job import COMPLETION, JOB, JOB_MAGIC, JobFlag
from hw.contract.params import SocParams
from hw.contract.regs import engine_reg, global_reg
from sim.backends import DEFAULT_BACKEND
from sim.rtl import open_bus

RING_LOG2 = 3
ENGINE_MEMORY = 0x8000  #: DRAM of one engine: rings, code and data
CPL, CODE, DATA = 0x1000, 0x2000, 0x4000
DATA_BYTES = 0x4000
LV2_BYTES = 0x1000

END = Insn(Op.END)


def copy(op: Op, wait: int = 0, signal: int = 0, **fields: int) -> Insn:
    """A copy of ``len`` contiguous bytes between segment 2 (DRAM) and segment 6 (LV2), as the opcode needs."""
    segments = {
        Op.LD2: {"src_seg": 2, "dst_seg": 6},
        Op.ST2: {"src_seg": 6, "dst_seg": 2},
        Op.LD1: {"src_seg": 6},
        Op.ST1: {"dst_seg": 6},
        Op.LD0: {},
    }[op]
    values = {"wait": wait, "signal": signal, "hi": fields.get("len", 1), "hi1": 1, "hi0": 1} | segments | fields
    return Insn(op, {name: value for name, value in values.items() if value})


class SocBench:
    """One SoC, and per engine a ring, a code segment, a DRAM segment 2 and an LV2 segment 6."""

    def __init__(self, params: SocParams, backend: str = DEFAULT_BACKEND, *, bus: Bus | None = None) -> None:
        self.params = params
        self.bus = bus or open_bus(params, backend, costs=HostCosts.free())
        self.jobs = [0] * params.engines
        self.code = [0] * params.engines

    def base(self, engine: int) -> int:
        return engine * ENGINE_MEMORY

    def data(self, engine: int = 0) -> int:
        return self.base(engine) + DATA

    def setup(self, engine: int = 0) -> None:
        """Program the rings and enable the engine."""
        base = self.base(engine)
        for name, value in (
            ("RING_BASE", base), ("RING_SIZE", RING_LOG2), ("CPL_BASE", base + CPL), ("CPL_SIZE", RING_LOG2),
            ("IRQ_ENABLE", 7), ("CONTROL", 1),
        ):  # fmt: skip
            self.write(name, value, engine)
        self.jobs[engine] = 0

    def read(self, name: str, engine: int = 0, index: int = 0) -> int:
        return self.bus.read_reg(engine_reg(engine, name, index))

    def write(self, name: str, value: int, engine: int = 0) -> None:
        self.bus.write_reg(engine_reg(engine, name), value)

    def event(self, number: int) -> int:
        return self.bus.read_reg(global_reg("EVENT", number))

    def program(self, instructions, engine: int = 0) -> int:
        pc = self.code[engine]
        raw = b"".join(i if isinstance(i, bytes) else i.encode() for i in instructions)
        self.bus.write_mem(self.base(engine) + CODE + pc * INSN_BYTES, raw)
        self.code[engine] += len(instructions)
        return pc

    def job(self, body, prologue=None, engine: int = 0, **fields: int) -> int:
        """Put a job into the ring; returns its index. ``ring`` tells the engine."""
        index = self.jobs[engine]
        values = {"magic": JOB_MAGIC, "job_id": 0x100 + index, "flags": int(JobFlag.INTERRUPT)}
        values["flags"] |= fields.pop("flags", 0)
        values["body_pc"] = self.program(body, engine)
        if prologue is not None:
            values["prologue_pc"] = self.program(prologue, engine)
            values["flags"] |= JobFlag.PROLOGUE
        base = self.base(engine)
        values |= {"base0": base + CODE, "limit0": DATA - CODE, "base2": base + DATA, "limit2": DATA_BYTES}
        values |= {"base6": engine * LV2_BYTES, "limit6": LV2_BYTES}
        slot = index % (1 << RING_LOG2)
        self.bus.write_mem(base + slot * JOB.size, JOB.pack(**(values | fields)))
        self.jobs[engine] += 1
        return index

    def ring(self, engine: int = 0) -> None:
        self.write("RING_TAIL", self.jobs[engine], engine)

    def wait(self, count: int, engine: int = 0, limit: int = 6000) -> None:
        """Run until ``count`` jobs have retired."""
        end = self.bus.cycle + limit
        while self.read("RING_HEAD", engine) < count:
            assert self.bus.cycle < end, f"engine {engine}: {self.read('RING_HEAD', engine)} jobs of {count} retired"
            self.bus.advance(50)

    def completion(self, index: int, engine: int = 0) -> dict[str, int]:
        start = self.base(engine) + CPL + (index % (1 << RING_LOG2)) * COMPLETION.size
        return COMPLETION.unpack(self.bus.read_mem(start, COMPLETION.size))
