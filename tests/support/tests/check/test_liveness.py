"""Backward liveness against what happens when a byte is changed, on random programs."""

import numpy as np
import pytest

from hw.contract.isa import Insn, MacMode, Op
from hw.contract.params import preset
from hw.contract.spaces import Space
from sim.functional.machine import Machine
from tests.support.check.liveness import Executed, Liveness, effective, first_reader, memories

TINY = preset("tiny")
SEGMENTS = [(0, 0), (0, 4096), (0, 4096), (4096, 4096), (0, 0), (0, 0), (0, 8192), (8192, 8192)]


def _program(rng: np.random.Generator) -> list[Insn]:
    """Copies and MACs among few addresses, so that they meet; then results go to DRAM by way of LV1 and LV2."""
    program = []
    for _ in range(12):
        size, at = int(rng.integers(4, 17)), [int(v) for v in rng.integers(0, 24, 2)]
        copy = {"len": size, "lo": int(rng.integers(0, 3)), "hi": size, "hi1": 1, "hi0": 1, "src": at[0], "dst": at[1]}
        program.append(
            [
                Insn(Op.LD1, copy | {"src_seg": 6}),
                Insn(Op.ST1, copy | {"dst_seg": 6}),
                Insn(Op.LD0, copy | {"view": int(rng.integers(0, 2)), "space": at[0] % 2, "pe_mask": at[1] % 4}),
                Insn(Op.MAC, {"act": at[0] % 4, "acc": at[1] % 4, "p0": 2, "p0_s": 1, "accumulate": at[0] % 2}),
            ][int(rng.integers(0, 4))]
        )
    raw = {"op": 4, "src_acc": 1, "n2": 4, "n1": 6, "a_s1": 1, "d": 64, "d_s2": 8, "d_s1": 32}
    program.append(Insn(Op.VEC, raw))
    program.append(Insn(Op.ST1, {"len": 256, "hi": 256, "hi1": 1, "hi0": 1, "dst_seg": 6, "dst": 16}))
    program.append(Insn(Op.ST2, {"len": 272, "hi": 272, "hi1": 1, "hi0": 1, "src_seg": 6, "dst_seg": 3}))
    return program


def _machine(seed: int) -> Machine:
    rng = np.random.default_rng(seed)
    machine = Machine(TINY, np.zeros(8192, np.uint8))
    for memory in memories(machine):
        memory.data[...] = rng.integers(1, 256, memory.data.size, np.uint8)
    return machine


def _run(machine: Machine, program: list[Insn]) -> list[Executed]:
    done = []
    for pc, insn in enumerate(program):
        machine.execute(insn, SEGMENTS, 0, pc)
        accesses = effective(insn, machine.accesses, machine.engines[0], TINY)
        done.append(Executed(insn, pc, 0, True, accesses))
    return done


@pytest.mark.parametrize("seed", range(20))
def test_only_what_is_not_needed_may_change(seed):
    program = _program(np.random.default_rng(seed))
    machine = _machine(seed)
    executed = _run(machine, program)
    liveness = Liveness(TINY, SEGMENTS)
    liveness.undo(executed)
    needs = [np.unpackbits(need).view(bool) for need in liveness.needs()]
    other = _machine(seed)
    for memory, need in zip(memories(other), needs, strict=True):
        memory.data[~need] ^= 0x55
    _run(other, program)
    assert np.array_equal(machine.dram, other.dram), seed
    other = _machine(seed)
    for memory, need in zip(memories(other), needs, strict=True):
        memory.data[need] ^= 0x55
        for byte in np.flatnonzero(need)[::7].tolist():
            assert first_reader(executed, memory, byte) is not None, (seed, memory.name, byte)
    _run(other, program)
    assert not np.array_equal(machine.dram, other.dram), seed


def test_activations_under_zero_weights_are_not_needed():
    machine = _machine(0)
    engine = machine.engines[0]
    taps, rows = min(TINY.lv0_banks, TINY.rows), TINY.rows
    engine.wgt[:, rows : 2 * rows] = 7  # the second tap of the first block: its zero point
    insn = Insn(Op.MAC, {"mode": int(MacMode.DEPTHWISE), "w_zp": 7, "act": 3, "p0": 2, "p0_s": 5})
    liveness = Liveness(TINY, SEGMENTS)
    liveness.undo(_run(machine, [insn, Insn(Op.VEC, {"op": 4, "src_acc": 1, "n2": 4, "n1": 2, "a_s1": 1})]))
    need = dict(zip([m.name for m in memories(machine)], liveness.needs(), strict=True))[Space.LV0_ACT]
    words = np.flatnonzero(np.unpackbits(need).reshape(TINY.pes, -1, rows).any(axis=(0, 2)))
    assert words.tolist() == sorted(3 + 5 * x + t for x in range(2) for t in range(taps) if t != 1)
