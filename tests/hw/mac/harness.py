"""A bench for the MAC unit: memories set through the back door, results compared with the functional model."""

import random
from dataclasses import dataclass, field

import numpy as np

from hw.contract.isa import FORMATS, Insn, Op
from hw.contract.params import SocParams, preset
from hw.mac.unit import MacUnit
from sim.functional.machine import Machine
from tests.support.streams import Stalls, simulate, stream_put

SMALL = preset("tiny").replace(lv0_act_bytes=1024, lv0_wgt_bytes=1024, lv0_acc_rows=32)
SEGMENTS = [(0, 0)] * 8


def raw_command(op: Op, pc: int = 0, **fields: int) -> dict:
    """A ``COMMAND`` payload whose fields need not be legal."""
    word, offset = 0, 0
    for f in FORMATS[op]:
        value = int(op) if f.name == "opcode" else fields.get(f.name, f.default)
        word |= (value & ((1 << f.width) - 1)) << offset
        offset += f.width
    return {"insn": word, "pc": pc, "src_base": 0, "src_limit": 0, "dst_base": 0, "dst_limit": 0}


@dataclass
class MacBench:
    """One MAC unit with random memories; ``run`` executes commands and leaves the accumulators in ``acc``."""

    params: SocParams = field(default_factory=lambda: SMALL)
    seed: int = 0
    stall: float = 0.0

    def __post_init__(self) -> None:
        p, rng = self.params, np.random.default_rng(self.seed)
        self.machine = Machine(p.replace(engines=1))
        engine = self.machine.engines[0]
        engine.act[:] = rng.integers(0, 256, engine.act.shape)
        engine.wgt[:] = rng.integers(0, 256, engine.wgt.shape)
        engine.acc[:] = rng.integers(-(2**31), 2**31, engine.acc.shape)
        self.dut = MacUnit(p)
        self._fill(self.dut.act.data, engine.act)
        self._fill(self.dut.wgt.data, engine.wgt)
        half = p.lv0_acc_rows // 2
        for bank in range(2):
            rows = engine.acc[bank * half : (bank + 1) * half]
            self.dut.accumulators.data[bank].init = [int.from_bytes(r.astype("<i4").tobytes(), "little") for r in rows]
        self.done: list[int] = []
        self.faults: list[tuple[int, int, int]] = []
        self.active: list[int] = []  #: cycles in which a pixel was issued
        self.drained: list[np.ndarray] = []  #: what VEC read, in request order
        self.cycle = 0

    def _fill(self, banks, memory: np.ndarray) -> None:
        p = self.params
        words = memory.reshape(p.pes, -1, p.rows).transpose(1, 0, 2).reshape(-1, p.lv1_word)
        for b, data in enumerate(banks):
            data.init = [int.from_bytes(w.tobytes(), "little") for w in words[b :: len(banks)]]

    def expect(self, insns: list[Insn]) -> np.ndarray:
        """Execute on the functional model; returns all accumulator rows."""
        for insn in insns:
            self.machine.execute(insn, SEGMENTS)
        return self.machine.engines[0].acc

    def run(self, commands, *, until: int | None = None, reads=(), read_after: int = 0, abort_at: int | None = None):
        """Feed ``commands`` (`Insn` or payload dicts) until ``until`` (all) are done or a fault, then drain."""
        payloads = [raw_command(Op.MAC, i, **c.fields) if isinstance(c, Insn) else c for i, c in enumerate(commands)]
        want = len(payloads) if until is None else until
        unit, acc, dut = self.dut.unit, self.dut.acc, self.dut

        async def feeder(ctx):
            stalls = Stalls(self.seed, self.stall)
            for payload in payloads:
                await stream_put(ctx, unit.cmd, payload, stalls)

        async def monitor(ctx):
            signals = (unit.done, unit.fault, unit.fault_info, unit.mon_active, unit.busy)
            async for _, _, done, fault, info, active, _ in ctx.tick().sample(*signals):
                self.cycle += 1
                self.active += [self.cycle] * active
                self.done += [self.cycle] * done
                if fault:
                    self.faults.append((info.code, info.pc, info.addr))
                if self.cycle == abort_at:
                    ctx.set(unit.abort, 1)

        async def reader(ctx):
            while len(self.done) < read_after:
                await ctx.tick()
            rng = random.Random(self.seed)
            for row, group in reads:
                while rng.random() < self.stall:
                    await ctx.tick()
                await stream_put(ctx, acc.req, {"row": row, "group": group})
                raw = ctx.get(acc.data).to_bytes(4 * self.params.vec_lanes, "little")
                self.drained.append(np.frombuffer(raw, "<i4"))

        async def finish(ctx):
            while len(self.done) < want and not self.faults and not (abort_at and self.cycle > abort_at):
                await ctx.tick()
            await ctx.tick().repeat(12)
            assert not ctx.get(unit.busy)
            while len(self.drained) < len(reads):
                await ctx.tick()
            half = self.params.lv0_acc_rows // 2
            rows = []
            for memory in banks:
                for i in range(half):
                    rows.append(ctx.get(memory[i]).to_bytes(4 * self.params.out_channels, "little"))
            self.acc = np.frombuffer(b"".join(rows), "<i4").reshape(-1, self.params.out_channels)

        banks = dut.accumulators.data
        simulate(dut, finish, reader, background=[feeder, monitor], limit=20_000)
        return self.acc


def random_insn(rng: random.Random, params: SocParams, *, pixels: int = 8) -> Insn:
    """A legal MAC instruction with every feature at random."""
    words, wgt_words = params.lv0_act_bytes // params.rows, params.lv0_wgt_bytes // params.rows
    while True:
        f = {name: rng.randint(1, 3) for name in ("n2", "n1", "n0")}
        f |= {"p1": rng.randint(1, 3), "p0": rng.randint(1, pixels)}
        f |= {name: rng.randint(-6, 6) for name in ("k2_s", "k1_s", "k0_s", "p1_s", "p0_s")}
        f |= {name: rng.randint(0, 1) for name in ("mode", "accumulate", "x_signed", "w_signed", "w_cols")}
        f |= {name: rng.randint(0, 255) for name in ("x_zp", "w_zp")}
        f["acc_s"] = f["p0"] + rng.randint(0, 2)
        span = (f["p1"] - 1) * f["acc_s"] + f["p0"]
        blocks = f["n2"] * f["n1"] * f["n0"]
        if span > params.lv0_acc_rows // 2 or blocks * params.rows > wgt_words:
            continue
        f["acc"] = rng.randint(0, params.lv0_acc_rows - span)
        f["wgt"] = rng.randint(0, wgt_words - blocks * params.rows)
        pairs = (("n2", "k2_s"), ("n1", "k1_s"), ("n0", "k0_s"), ("p1", "p1_s"), ("p0", "p0_s"))
        ends = [(f[n] - 1) * f[s] for n, s in pairs]
        low, high = -sum(min(0, e) for e in ends), words - params.lv0_banks - sum(max(0, e) for e in ends)
        if low <= high:
            f["act"] = rng.randint(low, high)
            return Insn(Op.MAC, f)
