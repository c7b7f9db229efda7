"""A bench for one copy unit: memories around it, a NumPy reference, and command helpers."""

from dataclasses import dataclass, field

import numpy as np

from hw.contract.isa import Insn, Lv0Space, Lv0View, Op
from hw.contract.job import Fault
from hw.contract.params import SocParams, preset
from hw.dma.units import Ld0Unit, Ld1Unit, Ld2Unit, St1Unit, St2Unit
from hw.interfaces import COMMAND
from tests.support.memories import serve_bus_read, serve_bus_write, serve_read, serve_write
from tests.support.raw_insns import raw
from tests.support.streams import Stalls, check_held, feed, simulate

UNITS = {Op.LD1: Ld1Unit, Op.ST1: St1Unit, Op.LD0: Ld0Unit, Op.LD2: Ld2Unit, Op.ST2: St2Unit}

SMALL = preset("tiny").replace(lv1_bytes=4096, lv2_bytes=16384)  # LV1 and DRAM words of 8 bytes
WIDE = preset("base").replace(lv1_bytes=8192, lv2_bytes=16384)  # of 32 and 16 bytes


@dataclass
class Segments:
    """Bases and limits that a command comes with."""

    src_base: int = 0
    src_limit: int = 1 << 16
    dst_base: int = 0
    dst_limit: int = 1 << 16


def copy(op: Op, **fields: int) -> Insn:
    """A copy instruction that reads every byte unless ``fields`` clip it."""
    return Insn(op, {"hi": 0xFFFF, "hi1": 0xFFFF, "hi0": 0xFFFF, **fields})


def command(insn: Insn, segments: Segments, pc: int = 0) -> dict:
    """A ``COMMAND`` payload, with the bases and limits of whatever segments."""
    return raw_command(insn.op, segments, pc, **insn.fields)


def raw_command(op: Op, segments: Segments, pc: int = 0, **fields: int) -> dict:
    """A ``COMMAND`` payload whose fields need not be legal."""
    values = {"insn": int.from_bytes(raw(op, **fields), "little"), "pc": pc} | vars(segments)
    assert set(values) == {name for name, _ in COMMAND}
    return values


def runs(insn: Insn):
    """Per run: source offset, destination offset (modulo 2^32), and the mask of bytes that are read."""
    i2, i1, i0 = np.ogrid[: insn["n2"], : insn["n1"], : insn["n0"]]
    offsets = [
        (insn[side] + i2 * insn[f"{side}_s2"] + i1 * insn[f"{side}_s1"] + i0 * insn[f"{side}_s0"]).ravel() % 2**32
        for side in ("src", "dst")
    ]
    inside = (insn["lo1"] <= i1) & (i1 < insn["hi1"]) & (insn["lo0"] <= i0) & (i0 < insn["hi0"])
    inside = np.broadcast_to(inside, (insn["n2"], insn["n1"], insn["n0"])).ravel()
    j = np.arange(insn["len"])
    clip = (insn["lo"] <= j) & (j < insn["hi"])
    for src, dst, some in zip(*offsets, inside, strict=True):
        yield int(src), int(dst), clip & some


def reference(insn: Insn, segments: Segments, src: np.ndarray, dst: np.ndarray) -> tuple[int, int, int | None]:
    """Copy in NumPy. Returns bytes read, end of the highest write, and the offset beyond a limit, if any."""
    total, extent = 0, 0
    for s, d, mask in runs(insn):
        at = (s + np.flatnonzero(mask)) % 2**32
        for offsets, limit in ((at, segments.src_limit), ((d + np.arange(len(mask))) % 2**32, segments.dst_limit)):
            beyond = offsets[offsets >= limit]
            if len(beyond):
                return total, extent, int(beyond[0])
        run = np.full(len(mask), insn["fill"], np.uint8)
        run[mask] = src[segments.src_base + at]
        dst[segments.dst_base + d : segments.dst_base + d + len(run)] = run
        total, extent = total + int(mask.sum()), max(extent, d + len(run))
    return total, extent, None


@dataclass
class Bench:
    """One unit between two memories. ``run`` feeds commands and waits until ``finished`` or all are done."""

    op: Op
    params: SocParams = field(default_factory=lambda: SMALL)
    src_stall: float = 0.0
    dst_stall: float = 0.0
    latency: int = 4
    seed: int = 0
    src_size: int = 1 << 16
    dst_size: int = 1 << 16
    errors: frozenset = frozenset()

    def __post_init__(self) -> None:
        self.dut = UNITS[self.op](self.params)
        sizes = {
            Op.LD1: (self.params.lv2_bytes, self.params.lv1_bytes),
            Op.ST1: (self.params.lv1_bytes, self.params.lv2_bytes),
            Op.LD0: (self.params.lv1_bytes, self.params.pes * self.params.lv0_act_bytes),
            Op.LD2: (self.src_size, self.params.lv2_bytes),
            Op.ST2: (self.params.lv2_bytes, self.dst_size),
        }[self.op]
        rng = np.random.default_rng(self.seed)
        self.src = bytearray(rng.bytes(sizes[0]))
        self.dst = bytearray(rng.bytes(sizes[1]))
        self.done: list[int] = []  # cycles
        self.faults: list[dict] = []
        self.reads: list = []
        self.writes: list = []
        self.bytes = self.stalled = self.extent = self.cycle = 0
        self.lv0: list[dict] = []

    def _ports(self) -> list:
        src_stalls, dst_stalls = Stalls(self.seed + 1, self.src_stall), Stalls(self.seed + 2, self.dst_stall)
        dut = self.dut
        if self.op == Op.LD2:
            src = serve_bus_read(
                dut.src, self.src, latency=self.latency, stalls=src_stalls, errors=self.errors, log=self.reads
            )
            src.append(check_held(dut.src.req, "src.req"))
        else:
            src = [serve_read(dut.src, self.src, src_stalls, self.reads), check_held(dut.src.req, "src.req")]
        if self.op == Op.ST2:
            dst = serve_bus_write(
                dut.dst, self.dst, latency=self.latency, stalls=dst_stalls, errors=self.errors, log=self.writes
            )
            dst += [check_held(dut.dst.req, "dst.req"), check_held(dut.dst.data, "dst.data")]
        elif self.op == Op.LD0:
            dst = [self._serve_lv0]
        else:
            dst = [serve_write(dut.dst, self.dst, dst_stalls, self.writes), check_held(dut.dst.req, "dst.req")]
        return src + dst

    async def _serve_lv0(self, ctx) -> None:
        port = self.dut.dst
        names = ("space", "view", "pe_mask", "addr", "data", "en")
        async for _, _, valid, *values in ctx.tick().sample(port.valid, *(getattr(port, n) for n in names)):
            if valid:
                write = dict(zip(names, values, strict=True))
                self.lv0.append(write)
                self.writes.append((write["addr"], write["en"]))
                width = self.params.lv1_word
                for i in range(width):
                    if write["en"] >> i & 1:
                        self.dst[write["addr"] * width + i] = write["data"] >> (8 * i) & 0xFF

    async def _monitor(self, ctx) -> None:
        unit = self.dut.unit
        signals = (unit.done, unit.fault, unit.fault_info, unit.mon_bytes, unit.mon_stalled, unit.mon_extent_valid)
        async for _, _, done, fault, info, count, stalled, extends, extent in ctx.tick().sample(
            *signals, unit.mon_extent
        ):
            self.cycle += 1
            self.bytes += count
            self.stalled += stalled
            if extends:
                self.extent = max(self.extent, extent)
            if done:
                self.done.append(self.cycle)
            if fault:
                self.faults.append({"code": Fault(info.code), "pc": info.pc, "addr": info.addr})

    def run(self, commands: list[dict], *, until=None, limit: int = 20_000, extra: tuple = ()) -> None:
        """Feed ``commands``; end when all are done and the unit is idle, or when ``until(self)`` holds and it is."""
        until = until or (lambda bench: len(bench.done) == len(commands))

        async def finish(ctx) -> None:
            while not until(self) or ctx.get(self.dut.unit.busy):
                await ctx.tick()
            await ctx.tick().repeat(3)
            assert not ctx.get(self.dut.unit.busy)

        feeder = feed(self.dut.unit.cmd, commands)
        simulate(
            self.dut, finish, *extra, background=[*self._ports(), self._monitor, feeder], limit=limit
        )  # fmt: skip


def lv0_bytes(params: SocParams, insn: Insn) -> int:
    """Bytes of the memory an LD0 sees as its destination."""
    if insn["space"] == Lv0Space.ACC:
        return 4 * params.out_channels * params.lv0_acc_rows
    if insn["space"] == Lv0Space.INT4:
        return params.pes * params.lv0_wgt_bytes // 2
    size = params.lv0_act_bytes if insn["space"] == Lv0Space.ACT else params.lv0_wgt_bytes
    return size * (params.pes if insn["view"] == Lv0View.INTERLEAVED else 1)
