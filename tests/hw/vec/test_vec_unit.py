"""The vector unit against the functional model: operands, windows, parameters, tables, faults, throughput."""

import random

import numpy as np
import pytest

from hw.contract.isa import RECORD_BYTES, VEC_HEADER, Insn, Op, VecOp
from hw.contract.job import Fault
from hw.contract.params import preset
from hw.vec.unit import VecUnit
from sim.functional.machine import FunctionalFault, Machine
from tests.support.memories import serve_read, serve_write
from tests.support.row_programs import layer_norm, softmax
from tests.support.sampled import sampled
from tests.support.streams import Stalls, check_held, feed, simulate

TINY = preset("tiny").replace(lv1_bytes=4096)
WIDE = preset("base").replace(lv1_bytes=8192, lv0_acc_rows=32)
SEGMENTS = [(0, 0)] * 8
ACROSS = (VecOp.MAX, VecOp.SUM, VecOp.LOOKUP, VecOp.MOMENTS)
ROW_BLOCK, RECORDS = 512, 704  #: where parameters of instructions with ``across`` lie, and records they may read


LOOKUP = {"op": VecOp.LOOKUP, "b_en": 1, "row": 1, "b": 1024, "t": 1024}


def command(insn: Insn, pc: int = 0) -> dict:
    word = int.from_bytes(insn.encode(), "little")
    return {"insn": word, "pc": pc, "src_base": 0, "src_limit": 0, "dst_base": 0, "dst_limit": 0}


def serve_acc(port, acc: np.ndarray, lanes: int, stalls: Stalls):
    """Serve an ``AccReadPort`` from (rows, channels) int32."""

    async def testbench(ctx) -> None:
        while True:
            ctx.set(port.req.ready, not stalls())
            req = port.req
            _, _, valid, ready, row, group = await ctx.tick().sample(
                req.valid, req.ready, req.payload.row, req.payload.group
            )
            if valid and ready:
                values = acc[row, group * lanes : (group + 1) * lanes].astype(np.uint32)
                ctx.set(port.data, int.from_bytes(values.tobytes(), "little"))
            else:
                ctx.set(port.data, 0)

    return testbench


class Bench:
    """A vector unit with memories of random content, and a functional machine with the same content."""

    def __init__(self, params, seed: int) -> None:
        self.params = params
        self.rng = np.random.default_rng(seed)
        self.machine = Machine(params, dram=np.zeros(64, np.uint8))
        engine = self.machine.engines[0]
        engine.lv1[:] = self.rng.integers(0, 256, engine.lv1.size)
        engine.acc[:] = self.rng.integers(-(2**20), 2**20, engine.acc.shape)
        self.lv1 = bytearray(engine.lv1.tobytes())
        self.acc = engine.acc.copy()

    def block(self, at: int, entries: int, **header: int) -> None:
        """Write a parameter block into both memories."""
        values = {"zp_a": 3, "zp_b": -7, "ma": 1 << 12, "mb": -3333, "zp_y": 5, "lo": -128, "hi": 127} | header
        raw = b"".join(values[name].to_bytes(size, "little", signed=True) for name, size, _ in VEC_HEADER)
        raw = raw.ljust(self.params.vec_header_bytes, b"\0")
        bias = self.rng.integers(-5000, 5000, entries).astype(np.int32)
        scale = np.exp2(self.rng.uniform(-18, -8, entries)).astype(np.float32)
        scale *= self.rng.choice([-1, 1], entries, p=[0.3, 0.7]).astype(np.float32)
        for b, s in zip(bias, scale, strict=True):
            raw += b.tobytes() + s.tobytes()
        self.write(at, raw)

    def row_block(self) -> None:
        """Parameters for ``across`` at ``ROW_BLOCK`` and records at ``RECORDS``."""
        lanes, rng = self.params.vec_lanes, self.rng
        self.block(ROW_BLOCK, lanes, ma=int(rng.integers(-(1 << 22) + 1, 1 << 22)), mb=int(rng.integers(-64, 64)))
        for at in range(RECORDS, 1024, lanes):
            record = np.array([rng.integers(-(2**31), 2**31) >> rng.integers(0, 24)]).astype("<i4").tobytes()
            self.write(at, (record + np.exp2(rng.uniform(-24, 4)).astype("<f4").tobytes())[:lanes])

    def write(self, at: int, raw: bytes) -> None:
        """Write ``raw`` into both memories."""
        self.lv1[at : at + len(raw)] = raw
        self.machine.engines[0].lv1[at : at + len(raw)] = np.frombuffer(raw, np.uint8)

    def run(
        self, insns: list[Insn], stall: float = 0.0, seed: int = 0, limit: int = 20_000, abort_at: int | None = None
    ) -> dict:
        """Run all on the unit, or until ``abort_at`` cycles have passed; returns what it reported."""
        dut = VecUnit(self.params)
        seen: dict = {"done": 0, "cycles": 0, "active": 0, "fault": None}

        async def watch(ctx) -> None:
            while seen["done"] < len(insns) and seen["fault"] is None and seen["cycles"] != abort_at:
                unit = dut.unit
                _, _, done, fault, info, active = await ctx.tick().sample(
                    unit.done, unit.fault, unit.fault_info, unit.mon_active
                )
                seen["done"] += done
                seen["active"] += active
                seen["cycles"] += 1
                if fault:
                    seen["fault"] = (info.code, info.pc, info.addr)
            if seen["cycles"] == abort_at:
                await abort(ctx)
            for _ in range(4):
                await ctx.tick()
            assert not ctx.get(dut.unit.busy)

        async def abort(ctx) -> None:
            """Nothing may happen once ``busy`` has dropped, and no ``done`` once ``abort`` was seen."""
            ctx.set(dut.unit.abort, 1)
            await ctx.tick()
            for _ in range(100):
                _, _, done, busy = await ctx.tick().sample(dut.unit.done, dut.unit.busy)
                assert not done
                if not busy:
                    break
            seen["left"] = bytes(self.lv1)
            for _ in range(40):
                requests = (dut.a.req.valid, dut.b.req.valid, dut.d.req.valid, dut.acc.req.valid)
                assert not any(ctx.get(signal) for signal in (dut.unit.busy, dut.unit.done, *requests))
                await ctx.tick()

        noise = [Stalls(seed * 10 + i, stall) for i in range(5)]
        ports = {"a": dut.a, "b": dut.b, "d": dut.d, "acc": dut.acc}
        simulate(
            dut,
            watch,
            background=[
                feed(dut.unit.cmd, [command(insn, pc) for pc, insn in enumerate(insns)]),
                serve_read(dut.a, self.lv1, noise[0]),
                serve_read(dut.b, self.lv1, noise[1]),
                serve_write(dut.d, self.lv1, noise[2]),
                serve_acc(dut.acc, self.acc, self.params.vec_lanes, noise[3]),
                *(check_held(port.req, name) for name, port in ports.items()),
            ],
            limit=limit,
        )
        return seen

    def expect(self, insns: list[Insn]) -> None:
        """Run all on the functional model and compare LV1."""
        for insn in insns:
            self.machine.execute(insn, SEGMENTS)
        got = np.frombuffer(bytes(self.lv1), np.uint8)
        wrong = np.flatnonzero(got != self.machine.engines[0].lv1)
        assert not len(wrong), f"{len(wrong)} bytes differ, first at {wrong[0]:#x}"


def random_insn(params, rand: random.Random) -> Insn:
    """Legal: operands in the second quarter, results in the upper half, parameters at 0 or ``ROW_BLOCK``, records at
    ``RECORDS``, table at 1 KiB."""
    lanes, quarter = params.vec_lanes, params.lv1_bytes // 4
    records = lanes >= RECORD_BYTES
    op = rand.choice([op for op in VecOp if records or op not in (VecOp.LOOKUP, VecOp.MOMENTS)])
    if op == VecOp.RAW:
        return random_raw(params, rand)
    across = records and (op == VecOp.MOMENTS or (op in ACROSS and rand.random() < 0.5))
    fields = {"op": op, "p": 0, "t": 1024, "table": op != VecOp.LOOKUP and not across and rand.random() < 0.3}
    fields |= {"a_signed": rand.randrange(2), "b_signed": rand.randrange(2)}
    fields |= {"per_channel": not across and rand.random() < 0.4}
    fields |= {"n2": rand.randint(1, 3), "n1": rand.randint(1, 4)}
    fields |= {"n0": 1 if across else rand.randint(1, params.vec_groups)}
    if not across and not fields["table"] and rand.random() < 0.3:
        fields |= {"planes": 1, "n2": 3}
    if op == VecOp.LIN and rand.random() < 0.4:
        fields |= {"src_acc": 1, "a": rand.randint(0, 8), "a_s2": rand.randint(0, 4), "a_s1": rand.randint(0, 3)}
    else:
        fields |= {"a": quarter + lanes * rand.randint(0, 8)}
        fields |= {f"a_s{i}": lanes * rand.randint(0, 4) for i in range(3)}
    if across or op in (VecOp.MAX, VecOp.SUM, VecOp.WIDE):
        fields |= {"k1": rand.randint(1, 3), "k0": rand.randint(1, 3)}
        fields |= {"a_k1": lanes * rand.randint(0, 3), "a_k0": lanes * rand.randint(0, 2)}
    if across:
        fields |= {"across": 1, "tail": rand.randint(0, lanes), "p": ROW_BLOCK}
    if op == VecOp.MOMENTS:
        fields["plain"] = rand.randrange(2)
    lin_b = op == VecOp.LIN and not fields.get("src_acc") and rand.random() < 0.8
    if records and (op == VecOp.LOOKUP or (lin_b and rand.random() < 0.5)):
        fields |= {"b_en": 1, "row": 1, "b": RECORDS + lanes * rand.randint(0, 4)}
        fields |= {f"b_s{i}": lanes * rand.randint(0, 2) for i in range(3)}
    elif op == VecOp.MUL or lin_b:
        fields |= {"b_en": 1, "b": quarter + lanes * rand.randint(0, 16)}
        fields |= {f"b_s{i}": lanes * rand.randint(0, 3) for i in range(3)}
    d_s0 = lanes
    d_s1 = lanes * rand.randint(fields["n0"], 4)
    fields |= {"d": 2 * quarter + lanes * rand.randint(0, 9), "d_s0": d_s0, "d_s1": d_s1, "d_s2": d_s1 * fields["n1"]}
    return Insn(Op.VEC, {k: int(v) for k, v in fields.items()})


def random_raw(params, rand: random.Random) -> Insn:
    """A dump of accumulators: whole numbers, as a driver wants them, or every quarter somewhere else."""
    lanes, groups = params.vec_lanes, rand.randint(1, params.vec_groups)
    fields = {"op": VecOp.RAW, "src_acc": 1, "n2": 4, "n1": rand.randint(1, 8), "n0": groups, "a_s1": 1}
    fields |= {"a": rand.randint(0, 8), "d": params.lv1_bytes // 2 + lanes * rand.randint(0, 4)}
    if rand.random() < 0.7:
        fields |= {"d_s2": lanes, "d_s0": 4 * lanes, "d_s1": 4 * lanes * groups}
    else:
        fields |= {"d_s0": lanes, "d_s1": lanes * groups, "d_s2": lanes * groups * fields["n1"]}
    return Insn(Op.VEC, {k: int(v) for k, v in fields.items()})


@pytest.mark.parametrize("params", [TINY, WIDE], ids=["tiny", "wide"])
@pytest.mark.parametrize("seed", sampled(range(6), 1))
def test_random_instructions_equal_the_model(params, seed):
    rand = random.Random(seed)
    bench = Bench(params, seed)
    bench.block(0, params.out_channels)
    bench.row_block()
    insns = [random_insn(params, rand) for _ in range(6)]
    bench.run(insns, stall=rand.choice([0.0, 0.3]), seed=seed)
    bench.expect(insns)


@pytest.mark.parametrize("params", [TINY, WIDE], ids=["tiny", "wide"])
@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (0, 2))])
def test_raw_dumps_between_other_instructions(params, seed):
    rand = random.Random(seed)
    bench = Bench(params, seed)
    bench.block(0, params.out_channels)
    bench.row_block()
    insns = [make(params, rand) for make in (random_raw, random_insn, random_raw, random_insn)]
    bench.run(insns, stall=rand.choice([0.0, 0.3]), seed=seed)
    bench.expect(insns)


@pytest.mark.parametrize(("zp_a", "zp_b"), [(-128, 255), (255, -128)])
@pytest.mark.parametrize("op", [VecOp.LIN, VecOp.MUL])
def test_zero_points_at_both_ends_of_their_range(op, zp_a, zp_b):
    bench = Bench(TINY, 5)
    scales = {"ma": 300, "mb": 211} if op == VecOp.LIN else {}
    bench.block(0, TINY.out_channels, zp_a=zp_a, zp_b=zp_b, **scales)
    fields = {"op": op, "a": 1024, "b": 1536, "b_en": 1, "n1": 16, "p": 0}
    fields |= {name: TINY.vec_lanes for name in ("a_s1", "b_s1", "d_s1")}
    insns = [Insn(Op.VEC, fields | {"d": 2048 + 128 * i, "a_signed": i & 1, "b_signed": i >> 1}) for i in range(4)]
    bench.run(insns)
    bench.expect(insns)


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (0, 2))])
def test_each_command_sees_the_parameters_and_results_of_the_one_before(seed):
    """A chain in LV1: commands that follow at once read what the last one wrote, with blocks and tables of their own.

    The parameter block and the table of a command may themselves be results."""
    bench = Bench(TINY, seed)
    bench.block(0, TINY.out_channels, zp_y=100, lo=0, hi=255)
    bench.block(128, TINY.out_channels, ma=-(1 << 14), zp_y=20)
    lanes, at = TINY.vec_lanes, 1024
    insns = []
    for number in range(8):
        fields = {"a": at, "p": 128 * (number % 2), "table": number // 2 % 2, "t": 512, "n1": 4, "a_s1": lanes}
        fields |= {"op": VecOp.MAX if number == 5 else VecOp.LIN, "d": at + 4 * lanes, "d_s1": lanes}
        insns.append(Insn(Op.VEC, {name: int(value) for name, value in fields.items()}))
        at += 4 * lanes
    insns.append(Insn(Op.VEC, {"a": at, "a_s1": lanes, "n1": 32, "d": 512, "d_s1": lanes, "p": 0}))  # a new table
    insns.append(Insn(Op.VEC, {"a": 1024, "a_s1": lanes, "n1": 8, "d": 3072, "d_s1": lanes, "table": 1, "t": 512}))
    seen = bench.run(insns, stall=0.25 * seed, seed=seed)
    assert seen["done"] == len(insns)
    bench.expect(insns)


@pytest.mark.parametrize(
    "when", [14, 80, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 4, 9, 20, 27, 35, 50, 120))]
)
@pytest.mark.parametrize("stall", [0.0, 0.6])
def test_abort_ends_in_mid_flight(when, stall):
    rand = random.Random(when)
    bench = Bench(TINY, when)
    bench.block(0, TINY.out_channels)
    bench.row_block()
    before = bytes(bench.lv1)
    insns = [random_insn(TINY, rand) for _ in range(8)]
    allowed = [{byte} for byte in before]
    for insn in insns:
        bench.machine.execute(insn, SEGMENTS)
        for byte, choices in zip(bench.machine.engines[0].lv1.tolist(), allowed, strict=True):
            choices.add(byte)
    seen = bench.run(insns, stall=stall, seed=when, abort_at=when)
    assert seen["done"] < len(insns) and seen["fault"] is None
    assert bytes(bench.lv1) == seen["left"]
    assert all(byte in choices for byte, choices in zip(bench.lv1, allowed, strict=True))


def test_accumulators_leave_at_one_vector_per_cycle():
    bench = Bench(WIDE, 1)
    bench.block(0, WIDE.out_channels)
    insn = Insn(Op.VEC, {"src_acc": 1, "per_channel": 1, "n2": 10, "n1": 32, "n0": 2, "a_s1": 1, "p": 0,
                         "d": 4096, "d_s1": 32, "d_s0": 16})  # fmt: skip
    seen = bench.run([insn])
    bench.expect([insn])
    assert seen["active"] == 640
    assert seen["cycles"] <= 640 / 0.95


@pytest.mark.parametrize(
    "fields, code",
    [
        ({"op": 5}, Fault.ILLEGAL),
        ({"op": VecOp.RAW, "n2": 4}, Fault.ILLEGAL),
        ({"op": VecOp.RAW, "src_acc": 1, "a": 0, "n2": 3}, Fault.ILLEGAL),
        ({"op": VecOp.RAW, "src_acc": 1, "a": 0, "n2": 4, "k0": 2}, Fault.ILLEGAL),
        ({"op": VecOp.RAW, "src_acc": 1, "a": 0, "n2": 4, "table": 1}, Fault.ILLEGAL),
        ({"op": VecOp.MUL}, Fault.ILLEGAL),
        ({"op": VecOp.MAX, "b_en": 1}, Fault.ILLEGAL),
        ({"src_acc": 1, "op": VecOp.SUM}, Fault.ILLEGAL),
        ({"k0": 2}, Fault.ILLEGAL),
        ({"a": 1}, Fault.ILLEGAL),
        ({"p": 4}, Fault.ILLEGAL),
        ({"per_channel": 1, "n0": 3}, Fault.ILLEGAL),
        ({"n1": 2, "a_s1": 4096}, Fault.LIMIT),
        ({"d": 4096}, Fault.LIMIT),
        ({"src_acc": 1, "a": 64}, Fault.LIMIT),
        ({"n1": 2, "b_en": 1, "b": 64, "b_s1": -128}, Fault.LIMIT),
        ({"p": 4080}, Fault.LIMIT),
        ({"table": 1, "t": 3848}, Fault.LIMIT),
        (LOOKUP | {"t": 3080}, Fault.LIMIT),
        (LOOKUP | {"b": 4096}, Fault.LIMIT),
        (LOOKUP | {"t": 4}, Fault.ILLEGAL),
        (LOOKUP | {"b": 1028}, Fault.ILLEGAL),
        (LOOKUP | {"k0": 2}, Fault.ILLEGAL),
        ({"op": VecOp.MOMENTS}, Fault.ILLEGAL),
        ({"op": VecOp.MAX, "across": 1, "tail": 9}, Fault.ILLEGAL),
        ({"op": VecOp.WIDE, "across": 1}, Fault.ILLEGAL),
        ({"planes": 1, "n2": 2}, Fault.ILLEGAL),
        ({"plain": 1}, Fault.ILLEGAL),
        ({"op": VecOp.SUM, "across": 1, "plain": 1}, Fault.ILLEGAL),
        ({"row": 1}, Fault.ILLEGAL),
    ],
)
def test_faults(fields, code):
    bench = Bench(TINY, 2)
    bench.block(0, TINY.out_channels)
    insn = Insn(Op.VEC, {"a": 1024, "d": 2048, "p": 0, **{k: int(v) for k, v in fields.items()}})
    seen = bench.run([insn])
    assert seen["fault"] is not None and seen["fault"][:2] == (code, 0)
    assert seen["done"] == 0
    with pytest.raises(FunctionalFault) as caught:
        bench.machine.execute(insn, SEGMENTS)
    assert caught.value.code is code


def test_softmax_and_layer_normalisation_equal_the_model():
    rng, params = np.random.default_rng(5), TINY
    scores, x = rng.integers(-128, 128, (5, 21)).astype(np.int8), rng.integers(0, 256, (4, 32)).astype(np.uint8)
    gain, shift = rng.uniform(0.2, 1.5, 32), rng.uniform(-1, 1, 32)
    for program in (softmax(params, scores, 0.07), layer_norm(params, x, gain, shift, 1 / 32, 0.01)):
        bench = Bench(params, 0)
        for at, raw in program.memory.items():
            bench.write(at, raw)
        bench.run(program.insns)
        bench.expect(program.insns)


@pytest.mark.parametrize("op", ACROSS)
def test_rows_enter_at_one_vector_per_cycle(op):
    """Rows of one vector: a record leaves in every cycle. Operands A and B of LOOKUP lie in different banks."""
    params, rows = WIDE, 120
    bench = Bench(params, 1)
    bench.row_block()
    lanes, word = params.vec_lanes, params.lv1_word
    fields = {"op": op, "across": 1, "n1": rows, "a": 2048, "a_s1": lanes, "d": 4096, "d_s1": lanes, "p": ROW_BLOCK}
    if op == VecOp.LOOKUP:
        fields |= {"b_en": 1, "row": 1, "b": RECORDS, "b_s1": 0, "t": 1024}
    insn = Insn(Op.VEC, {name: int(value) for name, value in fields.items()})
    seen = bench.run([insn])
    bench.expect([insn])
    loading = 1024 // word * (word // 8 + 1) if op == VecOp.LOOKUP else 0
    assert seen["active"] == rows
    assert seen["cycles"] - loading <= rows + 40


@pytest.mark.slow
def test_squares_beyond_32_bits_wrap():
    """Windows that read one vector of extremes over and over."""
    params = TINY
    bench = Bench(params, 3)
    bench.block(ROW_BLOCK, params.vec_lanes, zp_a=-128, ma=1 << 21, mb=40)
    bench.write(1024, b"\xff" * params.vec_lanes)
    fields = {"across": 1, "a": 1024, "p": ROW_BLOCK, "k1": 255, "k0": 60}
    insns = [Insn(Op.VEC, fields | {"op": int(op), "d": 2048 + 64 * op}) for op in (VecOp.SUM, VecOp.MOMENTS)]
    bench.run(insns, limit=40_000)
    bench.expect(insns)
