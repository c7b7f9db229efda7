"""Random VEC instructions, those on rows among them, on a whole SoC: LV1 afterwards is that of the functional model."""

import random

import numpy as np
import pytest

from hw.contract.bus import HostCosts
from hw.contract.isa import Insn, Op
from hw.contract.params import preset
from sim.rtl import open_bus
from tests.hw.soc_bench import DATA_BYTES, END, SocBench, copy
from tests.hw.vec.test_vec_unit import SEGMENTS, Bench, random_insn
from tests.support.row_programs import layer_norm, softmax

TINY = preset("tiny")
LOADED, WORKED, STORED = 1, 2, 4  #: semaphores


def run(bus, lv1: bytes, insns) -> bytes:
    """LV1 after ``insns``, which began with ``lv1``."""
    bench = SocBench(TINY, bus=bus)
    bench.setup()
    bus.write_mem(bench.data(), lv1)
    moved = {"len": len(lv1)}
    body = [copy(Op.LD2, signal=LOADED, **moved), copy(Op.LD1, wait=LOADED, signal=STORED, **moved)]
    first, *between, last = insns
    body += [Insn(Op.VEC, first.fields | {"wait": STORED}), *between]
    body += [Insn(Op.VEC, last.fields | {"signal": WORKED})]
    body += [copy(Op.ST1, wait=WORKED, signal=STORED, **moved), copy(Op.ST2, wait=STORED, **moved)]
    bench.job([*body, END], limit6=DATA_BYTES)
    bench.ring()
    bench.wait(1, limit=100_000)
    assert bench.completion(0)["status"] == 0
    return bus.read_mem(bench.data(), len(lv1))


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 12))])
def test_random_instructions(seed):
    rand, model = random.Random(seed), Bench(TINY, seed)
    model.block(0, TINY.out_channels)
    model.row_block()
    model.machine.engines[0].acc[:] = 0  # as after a reset
    before, insns = bytes(model.lv1), [random_insn(TINY, rand) for _ in range(25)]
    for insn in insns:
        model.machine.execute(insn, SEGMENTS)
    with open_bus(TINY, costs=HostCosts.free()) as bus:
        after = run(bus, before, insns)
    wrong = np.flatnonzero(np.frombuffer(after, np.uint8) != model.machine.engines[0].lv1)
    assert not len(wrong), f"seed {seed}: {len(wrong)} bytes differ, first at {wrong[0]:#x}"


def test_softmax_and_layer_normalisation():
    rng = np.random.default_rng(2)
    scores, x = rng.integers(-128, 128, (30, 61)).astype(np.int8), rng.integers(0, 256, (40, 64)).astype(np.uint8)
    gain, shift = rng.uniform(0.2, 1.5, 64), rng.uniform(-1, 1, 64)
    powers = np.exp(0.07 * scores.astype(np.float64))
    normal = (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + 0.01)
    for program, shape, wanted in (
        (softmax(TINY, scores, 0.07), scores.shape, np.minimum(256 * powers / powers.sum(axis=1, keepdims=True), 255)),
        (layer_norm(TINY, x, gain, shift, 1 / 32, 0.01), x.shape, np.clip((normal * gain + shift) * 32, -128, 127)),
    ):
        lv1 = bytearray(TINY.lv1_bytes)
        for at, raw in program.memory.items():
            lv1[at : at + len(raw)] = raw
        with open_bus(TINY, costs=HostCosts.free()) as bus:
            after = np.frombuffer(run(bus, bytes(lv1), program.insns), np.uint8)
        found = program.result(after, *shape)
        found = found.view(np.int8) if wanted.min() < 0 else found
        assert np.abs(found.astype(np.float64) - wanted).max() < 0.52
