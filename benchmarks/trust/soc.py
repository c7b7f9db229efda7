"""Two tenants on one small SoC, without compiler and driver: rings, segments, and what each may touch.

Engine e runs the programs of tenant e. All memories are small, so that a round of a campaign can compare every byte.
"""

from dataclasses import dataclass

from hw.contract.bus import Bus
from hw.contract.isa import LV2_SEGMENTS, Insn, Op, Segment
from hw.contract.job import COMPLETION, JOB, JOB_MAGIC, JobFlag
from hw.contract.params import KIB, SocParams, preset
from hw.contract.regs import EngineState, engine_reg

#: The hardware of the campaigns: an engine for each tenant, and memories that are quick to compare.
PARAMS: SocParams = preset("tiny").replace(name="trust", engines=2, lv2_bytes=16 * KIB, dram_bytes=256 * KIB)
RING_LOG2 = 3
TENANT_BYTES = 0x10000  #: DRAM of one tenant: its engine's rings, then its segments
COMPLETIONS, SEGMENTS = 0x1000, 0x2000  #: offsets in it
LV2_COPY = 0x30000  #: where LV2 is written for comparison
_SUPERVISOR = 0x38000  #: code of the supervisor
CODE_BYTES = 0x1000
#: Offset in the tenant's DRAM, or in LV2, and size of each segment, by tenant. The gaps belong to nobody.
LAYOUT: tuple[tuple[tuple[int, int], ...], ...] = (
    ((0x2000, CODE_BYTES), (0x4000, 0x1000), (0x6000, 0x0FC3), (0x7040, 0x1000), (0x8080, 0x0FF0), (0x9100, 0x0FBF),
     (0x0C40, 0x17C0), (0x2480, 0x0777)),
    ((0x2000, CODE_BYTES), (0x4000, 0x1000), (0x6000, 0x1000), (0x7040, 0x1000), (0x8080, 0x1000), (0x9100, 0x1000),
     (0x0000, 0x0C00), (0x2C00, 0x1400)),
)  # fmt: skip
CYCLES = 400_000  #: that anything here may take


class Wedged(AssertionError):
    """The hardware does not answer as it must; the message says what was waited for."""


@dataclass(frozen=True)
class Ended:
    """How a job ended. ``unit``, ``pc`` and ``address`` mean something with a fault (``status`` not 0)."""

    status: int
    unit: int
    pc: int
    address: int


def segments_of(tenant: int) -> list[tuple[int, int]]:
    """Base in DRAM or LV2, and size, of each segment of a tenant."""
    base = tenant * TENANT_BYTES
    return [(at if i in LV2_SEGMENTS else base + at, size) for i, (at, size) in enumerate(LAYOUT[tenant])]


class TenantSoc:
    """The rings and registers of both engines behind ``bus``, whose parameters are those of :data:`PARAMS` or have
    memories of the same sizes. ``image``: DRAM as the host has written it."""

    def __init__(self, bus: Bus) -> None:
        self.bus = bus
        self.image = bytearray(LV2_COPY)
        self.jobs = [0, 0]
        for engine in range(2):
            self._set_up(engine)

    def _set_up(self, engine: int) -> None:
        base = engine * TENANT_BYTES
        for name, value in (
            ("RING_BASE", base), ("RING_SIZE", RING_LOG2), ("CPL_BASE", base + COMPLETIONS), ("CPL_SIZE", RING_LOG2),
            ("CONTROL", 1),
        ):  # fmt: skip
            self.write(engine, name, value)
        self.jobs[engine] = 0

    def read(self, engine: int, name: str) -> int:
        """An engine register."""
        return self.bus.read_reg(engine_reg(engine, name))

    def write(self, engine: int, name: str, value: int) -> None:
        """Set an engine register."""
        self.bus.write_reg(engine_reg(engine, name), value)

    def store(self, address: int, data: bytes) -> None:
        """Write DRAM by the back door."""
        self.bus.write_mem(address, data, charge=False)
        self.image[address : address + len(data)] = data

    def queue(self, tenant: int, body: list[bytes], prologue: list[bytes] | None = None, **fields: int) -> None:
        """Put a job into the ring of the tenant's engine, its code into segment 0; ``fields`` replace members of the
        descriptor. :meth:`ring` starts it."""
        segments = segments_of(tenant)
        code = b"".join([*(prologue or []), *body])
        self.store(segments[Segment.CODE][0], code.ljust(CODE_BYTES, b"\0")[:CODE_BYTES])
        self._put(
            tenant,
            segments,
            {"body_pc": len(prologue or []), "flags": int(JobFlag.PROLOGUE if prologue else 0)} | fields,
        )

    def _put(self, tenant: int, segments: list[tuple[int, int]], fields: dict[str, int]) -> None:
        values = {"magic": JOB_MAGIC, "job_id": self.jobs[tenant]}
        for i, (base, size) in enumerate(segments):
            values |= {f"base{i}": base, f"limit{i}": size}
        slot = self.jobs[tenant] % (1 << RING_LOG2)
        self.store(tenant * TENANT_BYTES + slot * JOB.size, JOB.pack(**(values | fields)))
        self.jobs[tenant] += 1

    def ring(self, tenant: int) -> None:
        """Let the engine run what is queued."""
        self.write(tenant, "RING_TAIL", self.jobs[tenant])

    def wait(self, tenant: int, cycles: int = CYCLES) -> Ended:
        """Run until the newest job has ended. Raises :class:`Wedged`."""
        end, step = self.bus.cycle + cycles, 64
        while self.read(tenant, "CPL_TAIL") != self.jobs[tenant]:
            if self.bus.cycle > end:
                raise Wedged(f"engine {tenant} does not end its job within {cycles} cycles")
            self.bus.advance(step)
            step = min(2 * step, 1024)
        slot = (self.jobs[tenant] - 1) % (1 << RING_LOG2)
        raw = self.bus.read_mem(
            tenant * TENANT_BYTES + COMPLETIONS + slot * COMPLETION.size, COMPLETION.size, charge=False
        )
        told = COMPLETION.unpack(raw)
        self.write(tenant, "CPL_HEAD", self.jobs[tenant])
        if told["job_id"] != self.jobs[tenant] - 1:
            raise Wedged(f"engine {tenant} completes job {told['job_id']}, not {self.jobs[tenant] - 1}")
        return Ended(told["status"], told["unit"], told["pc"], told["address"])

    def reset(self, tenant: int) -> None:
        """Reset one engine and set it up again. Raises :class:`Wedged`."""
        self.write(tenant, "CONTROL", 2)
        for _ in range(200):
            if self.read(tenant, "STATUS") & 15 == EngineState.DISABLED:
                self._set_up(tenant)
                return
            self.bus.advance(50)
        raise Wedged(f"engine {tenant} does not come out of reset")

    def supervise(self, engine: int, program: list[Insn]) -> None:
        """Run a program of the supervisor, which reaches all of LV2 and DRAM by segments 6 and 5; it must succeed."""
        code = b"".join(insn.encode() for insn in [*program, Insn(Op.END)])
        self.bus.write_mem(_SUPERVISOR, code, charge=False)
        segments = segments_of(engine)
        segments[Segment.CODE] = (_SUPERVISOR, len(code))
        segments[5:7] = [(0, self.bus.params.dram_bytes), (0, self.bus.params.lv2_bytes)]
        self._put(engine, segments, {})
        self.ring(engine)
        ended = self.wait(engine)
        if ended.status:
            raise Wedged(f"a program of the supervisor ends with {ended}")

    def lv2(self, engine: int) -> bytes:
        """All of LV2, by way of a copy that ``engine`` makes."""
        size = self.bus.params.lv2_bytes
        self.supervise(engine, [Insn(Op.ST2, {"src_seg": 6, "dst_seg": 5, "dst": LV2_COPY, **_whole(size)})])
        return self.bus.read_mem(LV2_COPY, size, charge=False)

    def store_lv2(self, engine: int, data: bytes) -> None:
        """Write all of LV2, likewise."""
        self.bus.write_mem(LV2_COPY, data, charge=False)
        self.supervise(engine, [Insn(Op.LD2, {"src_seg": 5, "dst_seg": 6, "src": LV2_COPY, **_whole(len(data))})])

    def strangers_write(self, dram: bytes) -> int | None:
        """The first byte of rings and code, which the host alone writes, that is not as it wrote it; None if there is
        none. Completions are the engines'."""
        for base in (0, TENANT_BYTES):
            for low, high in ((0, COMPLETIONS), (COMPLETIONS + (COMPLETION.size << RING_LOG2), SEGMENTS + CODE_BYTES)):
                found, known = dram[base + low : base + high], self.image[base + low : base + high]
                if found != known:
                    return base + low + next(i for i, (a, b) in enumerate(zip(found, known, strict=True)) if a != b)
        return None


def _whole(size: int) -> dict[str, int]:
    """Fields of a copy of so many bytes, a multiple of 4096."""
    return {"len": 4096, "hi": 4096, "n0": size // 4096, "hi1": 1, "hi0": 1 << 15, "src_s0": 4096, "dst_s0": 4096}
