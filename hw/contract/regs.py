"""The register map has every 32-bit register and bit once. RTL, driver, C header and reference page derive from it.

Global registers start at 0, those of engine e at ``ENGINE_BASE + e * ENGINE_STRIDE``. Accesses are whole
aligned words over AXI4-Lite; an address that is not in the map answers SLVERR.
"""

import enum
from dataclasses import dataclass

from hw.contract.job import COUNTERS

ENGINE_BASE = 0x1000
ENGINE_STRIDE = 0x1000
ID_VALUE = 0x53454143  # "CAES"
VERSION_VALUE = 0x0001_0002  # major 16, minor 16


class Access(enum.Enum):
    """Names what software may do with a register."""

    RO = "ro"  #: read only
    RW = "rw"  #: read and write
    W1C = "w1c"  #: write ones to clear
    WO = "wo"  #: write triggers, reads as zero


class EngineState(enum.IntEnum):
    """An engine is in one of these states, which STATUS.state shows."""

    DISABLED = 0  #: CONTROL.enable is clear and nothing runs
    IDLE = 1  #: no job
    RUNNING = 2  #: a job executes
    DRAINING = 3  #: END, or a pause at a cancellation point, waits for units to become idle
    HALTED = 4  #: stopped by a pause, at a cancellation point or before a body
    FAULT = 5  #: stopped by a fault; reset the engine to go on
    RESETTING = 6  #: an engine reset waits for bus transactions to end
    HUNG = 7  #: an engine reset has waited too long for the memory; it ends if the memory answers after all


@dataclass(frozen=True)
class Bits:
    """Describes a bit field of a register."""

    name: str
    low: int
    width: int
    doc: str


@dataclass(frozen=True)
class Reg:
    """Describes a register, or ``count`` consecutive ones. ``bits`` empty means one 32-bit number. ``reset``: the value
    that a register of settings has at power-on."""

    name: str
    offset: int
    access: Access
    doc: str
    bits: tuple[Bits, ...] = ()
    count: int = 1
    reset: int = 0

    @property
    def mask(self) -> int:
        """Return a mask of the bits that mean something."""
        return sum(((1 << b.width) - 1) << b.low for b in self.bits) if self.bits else 0xFFFFFFFF


_IRQ = (
    Bits("completion", 0, 1, "a job with the INTERRUPT flag retired"),
    Bits("fault", 1, 1, "the engine stopped on a fault"),
    Bits("halted", 2, 1, "the engine halted at a cancellation point"),
)

GLOBAL_REGS: tuple[Reg, ...] = (
    Reg("ID", 0x00, Access.RO, "reads 0x53454143 (`CAES`)"),
    Reg("VERSION", 0x04, Access.RO, "major << 16 | minor of this map"),
    Reg("PARAMS", 0x08, Access.RO, "first 32 bits of the parameter digest; images name the same digest"),
    Reg("ENGINES", 0x0C, Access.RO, "number of engines"),
    Reg("CYCLE_LO", 0x10, Access.RO, "global cycle counter; reading it latches CYCLE_HI"),
    Reg("CYCLE_HI", 0x14, Access.RO, "upper half as of the last read of CYCLE_LO"),
    Reg("IRQ", 0x18, Access.RO, "bit e: engine e has an enabled interrupt pending"),
    Reg(
        "AXI_ATTRIBUTES",
        0x1C,
        Access.RW,
        "AxCACHE and AxPROT of bursts from now on; those whose address is on the bus "
        "keep theirs. 0x0303 at power-on: normal memory, bufferable, not cached; "
        "not privileged, secure, data",
        (
            Bits("arcache", 0, 4, "ARCACHE of reads"),
            Bits("arprot", 4, 3, "ARPROT of reads"),
            Bits("awcache", 8, 4, "AWCACHE of writes"),
            Bits("awprot", 12, 3, "AWPROT of writes"),
        ),
        reset=0x0303,
    ),
    Reg("EVENT", 0x100, Access.RW, "SoC-wide event counters", count=64),
)

ENGINE_REGS: tuple[Reg, ...] = (
    Reg("CONTROL", 0x00, Access.RW, "control", (
        Bits("enable", 0, 1, "fetch and run jobs; clearing it stops before the next job"),
        Bits("reset", 1, 1, "write 1: reset this engine once its bus transactions have ended; reads 0. RING_BASE, "
                            "RING_SIZE, CPL_BASE, CPL_SIZE and IRQ_ENABLE keep their values"),
        Bits("pause", 2, 1, "halt at the next cancellation point or job boundary; clearing it lets a halted "
                            "engine go on, and before it has halted leaves no trace. Between jobs, an engine that is "
                            "not enabled is DISABLED, not HALTED"),
    )),
    Reg("STATUS", 0x04, Access.RO, "state", (
        Bits("state", 0, 4, "`EngineState`"),
        Bits("loader_busy", 4, 1, "a prologue runs"),
        Bits("in_job", 5, 1, "HALTED inside a body: HALT_JOB, HALT_POINT, HALT_PC and SEM tell where; otherwise the "
                             "engine halted before a body"),
        Bits("loaded", 6, 5, "RING_LOADED modulo 32"),
        Bits("retired", 11, 5, "CPL_TAIL modulo 32"),
        Bits("point", 16, 16, "HALT_POINT: one read tells where a halted engine stands"),
    )),
    Reg("IRQ_STATUS", 0x08, Access.W1C, "pending interrupts", _IRQ),
    Reg("IRQ_ENABLE", 0x0C, Access.RW, "interrupts that drive the line", _IRQ),
    Reg("RING_BASE", 0x10, Access.RW, "DRAM address of the job ring, a multiple of 256 (its low 8 bits are zero)"),
    Reg("RING_SIZE", 0x14, Access.RW, "log2 of the number of entries", (Bits("log2", 0, 4, "0 to 15"),)),
    Reg("RING_TAIL", 0x18, Access.RW, "doorbell: jobs submitted so far. Writing less than RING_FETCHED revokes "
                                      "nothing that was fetched: the tail becomes RING_FETCHED"),
    Reg("RING_FETCHED", 0x1C, Access.RO, "jobs whose descriptor was fetched: they can no longer be revoked"),
    Reg("RING_HEAD", 0x20, Access.RO, "jobs retired"),
    Reg("CPL_BASE", 0x24, Access.RW, "DRAM address of the completion ring, likewise"),
    Reg("CPL_SIZE", 0x28, Access.RW, "log2 of the number of entries", (Bits("log2", 0, 4, "0 to 15"),)),
    Reg("CPL_HEAD", 0x2C, Access.RW, "completions the host has consumed; a full ring holds retirement back"),
    Reg("CPL_TAIL", 0x30, Access.RO, "completions written"),
    Reg("RING_LOADED", 0x34, Access.RO, "jobs whose prologue has run, or that have none"),
    Reg("FAULT_CODE", 0x40, Access.RO, "`Fault` of the job that stopped the engine", (
        Bits("code", 0, 8, "`Fault`"),
        Bits("unit", 8, 8, "`FaultUnit`"),
    )),
    Reg("FAULT_JOB", 0x44, Access.RO, "job_id"),
    Reg("FAULT_PC", 0x48, Access.RO, "PC"),
    Reg("FAULT_ADDR", 0x4C, Access.RO, "address, an offset in the segment or memory"),
    Reg("HALT_JOB", 0x50, Access.RO, "job_id at the cancellation point (valid in HALTED)"),
    Reg("HALT_POINT", 0x54, Access.RO, "number of the cancellation point"),
    Reg("HALT_PC", 0x58, Access.RO, "PC of the next instruction"),
    Reg("CURRENT_JOB", 0x5C, Access.RO, "job_id of the body that runs"),
    Reg("CURRENT_PC", 0x60, Access.RO, "PC of the next instruction to issue"),
    Reg("HALT_CYCLE_LO", 0x64, Access.RO, "cycle count at which the engine became HALTED"),
    Reg("HALT_CYCLE_HI", 0x68, Access.RO, "its upper half"),
    Reg("SEM", 0x100, Access.RO, "semaphore counts", count=32),
    Reg("COUNTER", 0x200, Access.RO, "counters of the current job, in the order of `hw.contract.job.COUNTERS`",
        count=len(COUNTERS)),
)  # fmt: skip


def register_map(engines: int) -> dict[str, int]:
    """Return the byte address of every register by name: ``ID``, ``EVENT[3]``, ``E0.CONTROL``, ``E1.SEM[5]``."""
    result = {}
    blocks = [("", 0, GLOBAL_REGS)]
    blocks += [(f"E{e}.", ENGINE_BASE + e * ENGINE_STRIDE, ENGINE_REGS) for e in range(engines)]
    for prefix, base, regs in blocks:
        for reg in regs:
            for i in range(reg.count):
                name = f"{prefix}{reg.name}" + (f"[{i}]" if reg.count > 1 else "")
                result[name] = base + reg.offset + 4 * i
    return result


def engine_reg(engine: int, name: str, index: int = 0) -> int:
    """Return the byte address of one engine register."""
    for reg in ENGINE_REGS:
        if reg.name == name:
            return ENGINE_BASE + engine * ENGINE_STRIDE + reg.offset + 4 * index
    raise KeyError(f"no engine register {name!r}")


def global_reg(name: str, index: int = 0) -> int:
    """Return the byte address of one global register."""
    for reg in GLOBAL_REGS:
        if reg.name == name:
            return reg.offset + 4 * index
    raise KeyError(f"no global register {name!r}")


_NAMED = {reg.name: reg for reg in GLOBAL_REGS + ENGINE_REGS}


def register_of(name: str) -> Reg:
    """Return the register that ``name`` means, with or without its engine and index: ``E1.SEM[5]``, ``SEM``."""
    return _NAMED[name.rpartition(".")[2].partition("[")[0]]


def field_value(name: str, **fields: int) -> int:
    """Return the value of register ``name`` with the given bit fields set and all others zero."""
    bits = {b.name: b for b in register_of(name).bits}
    value = 0
    for field, number in fields.items():
        if field not in bits:
            raise KeyError(f"register {name} has no field {field!r}; known are {', '.join(bits)}")
        value |= (number & ((1 << bits[field].width) - 1)) << bits[field].low
    return value
