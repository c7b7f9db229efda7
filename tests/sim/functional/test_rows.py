"""Operations on rows: the functional model against plain loops over their definition, and against softmax and layer
normalisation in floating point."""

import math
import random

import numpy as np
import pytest

from hw.contract.isa import VEC_HEADER, Insn, Op, VecOp
from hw.contract.params import preset
from sim.functional.machine import Machine
from tests.support.row_programs import layer_norm, softmax

TINY = preset("tiny")
LANES = TINY.vec_lanes
SEGMENTS = [(0, 0)] * 8
A, RECORDS, TABLE, RESULT = 4096, 8192, 2048, 12288


class Rows:
    """A machine with random bytes in LV1, parameters at 0 and records at ``RECORDS``, and what the loops read of it."""

    def __init__(self, seed: int) -> None:
        self.machine = Machine(TINY, dram=np.zeros(64, np.uint8))
        self.lv1 = self.machine.engines[0].lv1
        rng = np.random.default_rng(seed)
        self.lv1[:] = rng.integers(0, 256, self.lv1.size)
        self.head = {"zp_a": int(rng.integers(-128, 256)), "zp_b": 0, "ma": int(rng.integers(1, 1000))}
        self.head |= {"mb": int(rng.integers(-64, 64)), "zp_y": 3, "lo": -128, "hi": 127}
        raw = b"".join(self.head[name].to_bytes(size, "little", signed=True) for name, size, _ in VEC_HEADER)
        self.put(0, raw)
        self.bias = rng.integers(-9999, 9999, LANES).astype("<i4")
        for lane, bias in enumerate(self.bias):
            self.put(TINY.vec_header_bytes + 8 * lane, bias.tobytes() + np.float32(2**-9).tobytes())
        self.records = [
            (int(rng.integers(-999, 999)), float(np.float32(rng.uniform(2**-12, 2**-9)))) for _ in range(16)
        ]
        for number, (value, factor) in enumerate(self.records):
            self.put(RECORDS + LANES * number, np.array(value, "<i4").tobytes() + np.array(factor, "<f4").tobytes())

    def put(self, at: int, raw: bytes) -> None:
        self.lv1[at : at + len(raw)] = np.frombuffer(raw, np.uint8)

    def byte(self, at: int, signed: int) -> int:
        value = int(self.lv1[at])
        return value - 256 if signed and value > 127 else value

    def entry(self, index: int) -> int:
        return int.from_bytes(self.lv1[TABLE + 4 * (index & 255) :][:4].tobytes(), "little", signed=True)


def int32(value: int) -> int:
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


@pytest.mark.parametrize("op", [VecOp.MAX, VecOp.SUM, VecOp.LOOKUP, VecOp.MOMENTS])
@pytest.mark.parametrize("seed", range(4))
def test_records_equal_loops(op, seed):
    rows, rand = Rows(seed), random.Random(seed)
    n1, k1, k0, tail, signed = (rand.randint(*ends) for ends in [(1, 5), (1, 3), (1, 3), (0, LANES), (0, 1)])
    fields = {"op": op, "across": 1, "n1": n1, "k1": k1, "k0": k0, "tail": tail, "a_signed": signed, "p": 0, "t": TABLE}
    fields |= {"a": A, "a_s1": 9 * LANES, "a_k1": 3 * LANES, "a_k0": LANES, "d": RESULT, "d_s1": LANES}
    if op == VecOp.LOOKUP:
        fields |= {"b_en": 1, "row": 1, "b": RECORDS, "b_s1": LANES}
    if op == VecOp.MOMENTS:
        fields["plain"] = seed % 2
    rows.machine.execute(Insn(Op.VEC, fields), SEGMENTS)
    for i1 in range(n1):
        values = []
        for j1, j0, lane in np.ndindex(k1, k0, LANES):
            last = (j1, j0) == (k1 - 1, k0 - 1)
            if not (last and tail and lane >= tail):
                at = A + (9 * i1 + 3 * j1 + j0) * LANES + lane
                values.append(rows.byte(at, signed) - rows.head["zp_a"])
        given = rows.records[i1][0]
        if op == VecOp.LOOKUP:
            values = [rows.entry(given - a) for a in values]
        number, argument = sum(values), sum(values) % (1 << 32)
        if op == VecOp.MAX:
            number, argument = max(values), 0
        elif op == VecOp.LOOKUP:
            number = given
        elif op == VecOp.MOMENTS:
            number *= 1 - fields["plain"]
            argument = rows.head["ma"] * sum(a * a for a in values) - number**2 + int(rows.bias[0]) % (1 << 32)
            argument %= 1 << 48
        root = op == VecOp.MOMENTS
        factor = 2.0 ** rows.head["mb"] / (math.sqrt(argument) if root else argument) if argument else 0.0
        got = rows.lv1[RESULT + i1 * LANES :][:LANES].tobytes()
        assert int.from_bytes(got[:4], "little", signed=True) == int32(number)
        assert np.frombuffer(got[4:8], "<f4")[0] == pytest.approx(factor, rel=2**-22)
        assert not any(got[8:])


@pytest.mark.parametrize("op", [VecOp.LIN, VecOp.LOOKUP, VecOp.WIDE, VecOp.SUM])
@pytest.mark.parametrize("planes", [0, 1])
@pytest.mark.parametrize("seed", range(3))
def test_vectors_equal_loops(op, planes, seed):
    rows, rand = Rows(seed), random.Random(seed)
    n1, n0, signed = rand.randint(1, 5), rand.randint(1, 3), rand.randint(0, 1)
    k0 = rand.randint(1, 5) if op in (VecOp.WIDE, VecOp.SUM) else 1
    fields = {"op": op, "n1": n1, "n0": n0, "k0": k0, "a_signed": signed, "p": 0, "t": TABLE, "planes": planes}
    fields |= {"a": A, "a_s1": 20 * LANES, "a_s0": 6 * LANES, "a_k0": LANES, "n2": 3 if planes else 1}
    fields |= {"d": RESULT, "d_s2": 16 * LANES, "d_s1": 3 * LANES, "d_s0": LANES}
    if op in (VecOp.LIN, VecOp.LOOKUP):
        fields |= {"b_en": 1, "row": 1, "b": RECORDS, "b_s1": LANES}
    rows.machine.execute(Insn(Op.VEC, fields), SEGMENTS)
    for i1, i0, lane in np.ndindex(n1, n0, LANES):
        at = A + (20 * i1 + 6 * i0) * LANES + lane
        number, scale = rows.records[i1]
        a = rows.byte(at, signed) - rows.head["zp_a"]
        if op == VecOp.LIN:
            total = a * rows.head["ma"] - number
        elif op == VecOp.LOOKUP:
            total = rows.entry(number - a)
        else:
            scale = 2**-9
            window = [rows.byte(at + j * LANES, signed and (op == VecOp.SUM or j == 0)) for j in range(k0)]
            total = sum(byte - rows.head["zp_a"] for byte in window)
            if op == VecOp.WIDE:
                total = 0
                for byte in window:
                    total = 256 * total + byte
        total = int32(int32(total) + int(rows.bias[lane]))
        wide = int(np.rint(np.float32(total) * np.float32(scale)))
        got = [int(rows.lv1[RESULT + (16 * i2 + 3 * i1 + i0) * LANES + lane]) for i2 in range(fields["n2"])]
        if planes:
            assert int.from_bytes(bytes(got), "little", signed=True) == min(max(wide, -(1 << 23)), (1 << 23) - 1)
        else:
            assert got == [min(max(wide + 3, -128), 127) % 256]


@pytest.mark.parametrize("length", [1, 7, 8, 20, 61])
def test_softmax_is_that_of_floats(length):
    rng = np.random.default_rng(length)
    scores, scale = rng.integers(-128, 128, (6, length)).astype(np.int8), 0.07
    scores[0] = -128
    program = softmax(TINY, scores, scale)
    found = _run(program).astype(np.float64)[:, :length]
    powers = np.exp(scale * scores.astype(np.float64))
    wanted = np.minimum(256 * powers / powers.sum(axis=1, keepdims=True), 255)
    assert np.abs(found - wanted).max() < 0.501


@pytest.mark.parametrize("spread", [3, 100, 255])
def test_layer_normalisation_is_that_of_floats(spread):
    rng = np.random.default_rng(spread)
    length, scale, epsilon = 32, 1 / 32, 1e-2
    x = rng.integers(0, spread + 1, (6, length)).astype(np.uint8)
    gain, shift = rng.uniform(0.2, 1.5, length), rng.uniform(-1, 1, length)
    found = _run(layer_norm(TINY, x, gain, shift, scale, epsilon)).view(np.int8).astype(np.float64)
    normal = (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + epsilon)
    wanted = np.clip((normal * gain + shift) / scale, -128, 127)
    assert np.abs(found - wanted).max() < 0.52


def _run(program):
    machine = Machine(TINY, dram=np.zeros(64, np.uint8))
    lv1 = machine.engines[0].lv1
    for at, raw in program.memory.items():
        lv1[at : at + len(raw)] = np.frombuffer(raw, np.uint8)
    for insn in program.insns:
        machine.execute(insn, SEGMENTS)
    rows = program.insns[0]["n1"]
    return program.result(lv1, rows, program.stride)
