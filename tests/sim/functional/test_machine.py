"""The functional model against plain loops over the definitions in hw.contract.isa, on random instructions."""

import numpy as np
import pytest

from hw.contract.isa import INSN_BYTES, VEC_HEADER, Insn, Lv0Space, Lv0View, Op, VecOp
from hw.contract.job import Fault
from hw.contract.params import preset
from hw.contract.spaces import Space
from sim.functional.machine import FunctionalFault, Machine
from tests.support.raw_insns import with_field

TINY = preset("tiny")
SEGMENTS = [(0, 4096), (4096, 4096), (8192, 4096), (12288, 4096), (0, 0), (0, 0), (0, 8192), (8192, 8192)]


def _machine(seed: int) -> tuple[Machine, np.random.Generator]:
    rng = np.random.default_rng(seed)
    machine = Machine(TINY)
    for memory in (machine.dram, machine.lv2, machine.engines[0].lv1, machine.engines[0].act, machine.engines[0].wgt):
        memory[...] = rng.integers(0, 256, memory.shape, dtype=np.uint8)
    return machine, rng


@pytest.mark.parametrize("seed", range(8))
def test_copy_with_padding_equals_loops(seed):
    machine, rng = _machine(seed)
    n2, n1, n0, length = (int(v) for v in rng.integers(1, 5, 4))
    f = {
        "src_seg": 2, "dst_seg": 6, "n2": n2, "n1": n1, "n0": n0, "len": length, "fill": 0xA5, "src": 2000, "dst": 100,
        "src_s2": 64, "src_s1": -16, "src_s0": 3, "dst_s2": n1 * n0 * length, "dst_s1": n0 * length, "dst_s0": length,
        "lo": int(rng.integers(0, 2)), "hi": int(rng.integers(1, 6)), "lo1": int(rng.integers(0, 2)),
        "hi1": int(rng.integers(1, 6)), "lo0": int(rng.integers(0, 2)), "hi0": int(rng.integers(1, 6)),
    }  # fmt: skip
    expected = machine.lv2.copy()
    for i2, i1, i0, j in np.ndindex(n2, n1, n0, length):
        read = f["lo"] <= j < f["hi"] and f["lo1"] <= i1 < f["hi1"] and f["lo0"] <= i0 < f["hi0"]
        source = 8192 + 2000 + i2 * 64 - i1 * 16 + i0 * 3 + j
        at = 100 + i2 * f["dst_s2"] + i1 * f["dst_s1"] + i0 * length + j
        expected[at] = machine.dram[source] if read else 0xA5
    machine.execute(Insn(Op.LD2, f), SEGMENTS)
    assert np.array_equal(machine.lv2, expected)


def test_source_may_lie_before_the_segment_under_padding():
    machine, _ = _machine(0)
    f = {"src_seg": 6, "src": (1 << 32) - 4, "len": 8, "lo": 4, "hi": 8, "hi1": 1, "hi0": 1, "fill": 7}
    machine.execute(Insn(Op.LD1, f), SEGMENTS)
    assert machine.engines[0].lv1[:8].tolist() == [7] * 4 + machine.lv2[:4].tolist()
    with pytest.raises(FunctionalFault) as caught:
        machine.execute(Insn(Op.LD1, f | {"lo": 3}), SEGMENTS)
    assert caught.value.code is Fault.LIMIT and caught.value.addr == (1 << 32) - 1


@pytest.mark.parametrize("view", Lv0View)
def test_ld0_views(view):
    machine, _ = _machine(1)
    before = machine.engines[0].act.copy()
    f = {"src": 64, "dst": 24, "len": 20, "hi": 20, "hi1": 1, "hi0": 1, "pe_mask": 2, "view": int(view)}
    machine.execute(Insn(Op.LD0, f), SEGMENTS)
    rows, pes = TINY.rows, TINY.pes
    for j in range(20):
        x = 24 + j
        pe, byte = (1, x) if view is Lv0View.MULTICAST else (x // rows % pes, x // (pes * rows) * rows + x % rows)
        before[pe, byte] = machine.engines[0].lv1[64 + j]
    assert np.array_equal(machine.engines[0].act, before)


@pytest.mark.parametrize("view", Lv0View)  # ignored
@pytest.mark.parametrize("clip", [{"hi": 20}, {"lo": 3, "hi": 9}, {"n0": 2, "src_s0": -7, "dst_s0": 30, "hi": 20}, {}])
def test_ld0_of_int4(view, clip):
    """Each word of LV1 goes to two interleaved words: first the low halves of all its bytes, then the high ones."""
    machine, _ = _machine(1)
    e, rows, pes = machine.engines[0], TINY.rows, TINY.pes
    before, original = e.wgt.copy(), e.wgt.copy()
    f = {"src": 64, "dst": 21, "len": 20, "hi1": 1, "hi0": 1, "pe_mask": 2, "view": int(view), "fill": 0x8F, "space": 3}
    machine.execute(Insn(Op.LD0, f | clip), SEGMENTS)
    for i0, j in np.ndindex(clip.get("n0", 1), 20):
        read = i0 == 0 and clip.get("lo", 0) <= j < clip.get("hi", 0)
        byte = int(e.lv1[64 - 7 * i0 + j]) if read else 0x8F
        at = 21 + 30 * i0 + j
        for half, number in enumerate((byte & 15, byte >> 4)):
            x = at // 8 * 16 + 8 * half + at % 8
            before[x // rows % pes, x // (pes * rows) * rows + x % rows] = number - 16 * (number > 7) & 0xFF
    assert np.array_equal(e.wgt, before)
    *reads, write = machine.accesses
    touched = np.flatnonzero((before != original).any(axis=0)) // rows
    assert [read.space for read in reads] == [Space.LV1] * ("hi" in clip) and write.space == Space.LV0_WGT
    assert write.where.bounds() == (touched[0] // 2 * 2, touched[-1] // 2 * 2 + 2)
    assert machine.bytes_read[Op.LD0] == sum(np.prod(read.where.shape) for read in reads)


@pytest.mark.parametrize("mode", [0, 1])
@pytest.mark.parametrize("w_cols", [0, 1])
def test_mac_equals_loops(mode, w_cols):
    machine, rng = _machine(2 + mode)
    e, rows = machine.engines[0], TINY.rows
    e.acc[...] = rng.integers(-1000, 1000, e.acc.shape)
    f = {
        "mode": mode, "accumulate": mode, "x_signed": mode, "w_signed": 1 - mode, "w_cols": w_cols, "x_zp": 0x85,
        "w_zp": 0xF3, "act": 40, "wgt": 4, "acc": 9, "n2": 1, "n1": 2, "n0": 3, "k1_s": 7, "k0_s": -2,
        "p1": 2, "p0": 3, "p1_s": 11, "p0_s": 2, "acc_s": 5,
    }  # fmt: skip
    expected = e.acc.copy()
    x_type, w_type = (np.int8, np.uint8) if mode else (np.uint8, np.int8)
    x_zp, w_zp = int(np.uint8(0x85).astype(x_type)), int(np.uint8(0xF3).astype(w_type))
    for pe, y, x, c in np.ndindex(TINY.pes, 2, 3, TINY.cols):
        total = 0
        for b, (i1, i0) in enumerate(np.ndindex(2, 3)):
            word = 40 + i1 * 7 - i0 * 2 + y * 11 + x * 2
            for r in range(TINY.lv0_banks if mode else rows):
                byte = (word + r) * rows + c if mode else word * rows + r
                xv = int(e.act[pe, byte].astype(x_type)) - x_zp
                at = (4 + b * rows + (c if w_cols else r)) * rows + (r if w_cols else c)
                total += xv * (int(e.wgt[pe, at].astype(w_type)) - w_zp)
        row = 9 + y * 5 + x
        expected[row, pe * TINY.cols + c] = total + (expected[row, pe * TINY.cols + c] if mode else 0)
    machine.execute(Insn(Op.MAC, f), SEGMENTS)
    assert np.array_equal(e.acc, expected)


def _header(machine: Machine, at: int, entries: int, rng, **values) -> None:
    lv1 = machine.engines[0].lv1
    offset = at
    for name, size, _ in VEC_HEADER:
        raw = values.get(name, 0).to_bytes(size, "little", signed=True)
        lv1[offset : offset + size] = np.frombuffer(raw, np.uint8)
        offset += size
    table = np.zeros(entries, [("bias", "<i4"), ("scale", "<f4")])
    table["bias"] = rng.integers(-500, 500, entries)
    table["scale"] = rng.uniform(0.001, 0.1, entries)
    at += TINY.vec_header_bytes
    lv1[at : at + table.nbytes] = np.frombuffer(table.tobytes(), np.uint8)


def test_vec_requantises_accumulators_per_channel_through_a_table():
    machine, rng = _machine(5)
    e = machine.engines[0]
    e.acc[...] = rng.integers(-5000, 5000, e.acc.shape)
    _header(machine, 1024, 8, rng, zp_y=-3, lo=-100, hi=90)
    f = {"src_acc": 1, "a": 2, "a_s2": 8, "a_s1": 2, "n2": 2, "n1": 3, "d": 4096, "d_s2": 64, "d_s1": 8, "p": 1024,
         "t": 2048, "table": 1, "per_channel": 1}  # fmt: skip
    machine.execute(Insn(Op.VEC, f), SEGMENTS)
    entries = np.frombuffer(e.lv1[1056:1120].tobytes(), [("bias", "<i4"), ("scale", "<f4")])
    for y, x, c in np.ndindex(2, 3, 8):
        s = np.float32(int(e.acc[2 + y * 8 + x * 2, c]) + int(entries["bias"][c]))
        q = int(np.clip(int(np.rint(s * entries["scale"][c])) - 3, -100, 90))
        assert e.lv1[4096 + y * 64 + x * 8 + c] == e.lv1[2048 + (q & 0xFF)]


@pytest.mark.parametrize("op", range(4))
def test_vec_operators_on_lv1(op):
    machine, rng = _machine(6)
    e = machine.engines[0]
    _header(machine, 1024, 8, rng, zp_a=-4, zp_b=9, ma=3, mb=-5, zp_y=10, lo=0, hi=255)
    f = {"op": op, "b_en": int(op < 2), "a_signed": 1, "a": 2048, "b": 3072, "d": 4096, "p": 1024, "n1": 4,
         "a_s1": 16, "b_s1": 8, "d_s1": 8,
         "k1": 2 if op > 1 else 1, "k0": 3 if op > 1 else 1, "a_k1": 64, "a_k0": 8}  # fmt: skip
    machine.execute(Insn(Op.VEC, f), SEGMENTS)
    entries = np.frombuffer(e.lv1[1056:1120].tobytes(), [("bias", "<i4"), ("scale", "<f4")])
    for x, c in np.ndindex(4, 8):
        window = [
            int(e.lv1[2048 + x * 16 + j1 * 64 + j0 * 8 + c].astype(np.int8)) + 4
            for j1, j0 in np.ndindex(f["k1"], f["k0"])
        ]
        b = int(e.lv1[3072 + x * 8 + c]) - 9
        s = (window[0] * 3 - 5 * b, window[0] * b, max(window), sum(window))[op]
        y = np.rint(np.float32(s + int(entries["bias"][c])) * entries["scale"][c])
        assert e.lv1[4096 + x * 8 + c] == np.clip(int(y) + 10, 0, 255)


def test_raw_writes_the_bytes_of_the_accumulators_and_ld0_brings_them_back():
    machine, rng = _machine(8)
    e, lanes, row = machine.engines[0], TINY.vec_lanes, 4 * TINY.out_channels
    e.acc[...] = rng.integers(-(1 << 31), 1 << 31, e.acc.shape)
    before = e.acc.copy()
    raw = {"op": int(VecOp.RAW), "src_acc": 1, "a": 5, "a_s1": 2, "n2": 4, "n1": 3, "n0": TINY.vec_groups, "d": 4096,
           "d_s2": lanes, "d_s1": row, "d_s0": 4 * lanes}  # fmt: skip
    machine.execute(Insn(Op.VEC, raw), SEGMENTS)
    assert e.lv1[4096 : 4096 + 3 * row].tobytes() == before[[5, 7, 9]].astype("<i4").tobytes()
    e.acc[...] = -1
    load = {"space": int(Lv0Space.ACC), "src": 4096, "dst": 5 * row, "len": row, "hi": row, "n0": 3, "hi1": 1,
            "hi0": 3, "src_s0": row, "dst_s0": 2 * row}  # fmt: skip
    machine.execute(Insn(Op.LD0, load), SEGMENTS)
    assert np.array_equal(e.acc[[5, 7, 9]], before[[5, 7, 9]])
    assert (np.delete(e.acc, [5, 7, 9], axis=0) == -1).all()


def test_a_stopped_job_goes_on_with_its_semaphores():
    load = Insn(Op.LD1, ONE | {"signal": 4})
    take = Insn(Op.LD0, ONE | {"wait": 4, "pe_mask": 1})
    code = _code(load, load, Insn(Op.CANCEL, {"point": 7}), take, Insn(Op.CANCEL, {"point": 8}), take)
    machine, other = _machine(9)[0], _machine(9)[0]
    for each in (machine, other):
        each.dram[: len(code)] = np.frombuffer(code, np.uint8)
    halt = machine.run_job(SEGMENTS, 0, stop_at=7)
    assert halt is not None and (halt.point, halt.pc) == (7, 2) and halt.semaphores[:4] == (0, 0, 2, 0)
    assert other.run_job(SEGMENTS, halt.pc + 1, semaphores=halt.semaphores) is None
    with pytest.raises(FunctionalFault, match="SEMAPHORE_UNDERFLOW at PC 3"):
        other.run_job(SEGMENTS, halt.pc + 1)


def _code(*insns: Insn | bytes) -> bytes:
    return b"".join(insn if isinstance(insn, bytes) else insn.encode() for insn in (*insns, Insn(Op.END)))


ONE = {"len": 1, "hi": 1, "hi1": 1, "hi0": 1, "src_seg": 6}


@pytest.mark.parametrize(
    ("program", "code", "pc"),
    [
        ([Insn(Op.LD1, ONE | {"wait": 1})], Fault.SEMAPHORE_UNDERFLOW, 0),
        ([Insn(Op.LD1, ONE | {"signal": 4})], Fault.SEMAPHORE_RESIDUE, 1),
        ([Insn(Op.LD1, ONE | {"signal": 4})] * 256, Fault.SEMAPHORE_OVERFLOW, 255),
        ([with_field(Insn(Op.LD1, ONE), "src_seg", 2)], Fault.ILLEGAL, 0),
        ([Insn(Op.LD1, ONE | {"dst": TINY.lv1_bytes})], Fault.LIMIT, 0),
        ([Insn(Op.MAC, {"acc": 60, "p0": 5})], Fault.LIMIT, 0),
        ([Insn(Op.VEC, {"d": 4})], Fault.ILLEGAL, 0),
        ([Insn(Op.VEC, {"op": 4, "n2": 4})], Fault.ILLEGAL, 0),
        ([Insn(Op.VEC, {"op": 4, "src_acc": 1})], Fault.ILLEGAL, 0),
        ([Insn(Op.VEC, {"op": 4, "src_acc": 1, "n2": 4, "table": 1})], Fault.ILLEGAL, 0),
        ([Insn(Op.VEC, {"op": 5})], Fault.ILLEGAL, 0),
        ([Insn(Op.LD0, ONE | {"space": 3, "dst": TINY.pes * TINY.lv0_wgt_bytes // 2})], Fault.LIMIT, 0),
        ([Insn(Op.LD0, ONE | {"space": 2})], Fault.ILLEGAL, 0),
        ([Insn(Op.LD0, ONE | {"space": 2, "len": 8, "hi": 8, "dst": TINY.lv0_acc_rows * 32})], Fault.LIMIT, 0),
    ],
)
def test_faults(program, code, pc):
    machine = Machine(TINY)
    with pytest.raises(FunctionalFault) as caught:
        machine.run_program(_code(*program), 0, SEGMENTS)
    assert (caught.value.code, caught.value.pc) == (code, pc)


def test_job_runs_prologue_then_body_and_prologues_hold_loads_only():
    machine, _ = _machine(7)
    load = Insn(Op.LD2, {"len": 16, "hi": 16, "hi1": 1, "hi0": 1, "src_seg": 1, "dst_seg": 7})
    store = Insn(Op.ST2, {"len": 16, "hi": 16, "hi1": 1, "hi0": 1, "src_seg": 7, "dst_seg": 3})
    code = _code(load) + _code(Insn(Op.CANCEL), store)
    machine.dram[: len(code)] = np.frombuffer(code, np.uint8)
    machine.run_job(SEGMENTS, body_pc=2, prologue_pc=0)
    assert np.array_equal(machine.dram[12288:12304], machine.dram[4096:4112])
    with pytest.raises(FunctionalFault) as caught:
        machine.run_job(SEGMENTS, body_pc=2, prologue_pc=2)
    assert caught.value.code is Fault.ILLEGAL and len(code) == 5 * INSN_BYTES
