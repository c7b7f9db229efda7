import random

import numpy as np
import pytest

from hw.contract.isa import Insn, Lv0Space, Op
from hw.contract.job import Fault
from hw.contract.params import preset
from tests.hw.mac.harness import SMALL, MacBench, random_insn, raw_command
from tests.support.sampled import sampled
from tests.support.streams import simulate

WIDE = preset("ecp5").replace(lv0_act_bytes=1024, lv0_wgt_bytes=1024, lv0_acc_rows=32)
BANKED = SMALL.replace(pes=8, vec_lanes=8)  # more banks than rows


@pytest.mark.parametrize("params", [SMALL, WIDE, BANKED], ids=["small", "wide", "banked"])
@pytest.mark.parametrize("seed", sampled(range(3), 1))
def test_random_commands_equal_the_model(params, seed):
    rng = random.Random(seed)
    insns = [random_insn(rng, params) for _ in range(6)]
    bench = MacBench(params, seed=seed, stall=0.3 * (seed % 2))
    acc = bench.run(insns)
    assert not bench.faults and len(bench.done) == len(insns)
    np.testing.assert_array_equal(acc, bench.expect(insns))


@pytest.mark.parametrize("pixels", [1, 2, 3])
def test_few_pixels_wait_for_the_accumulator(pixels):
    """The same rows come back before their write has landed: within a block, between blocks, between commands."""
    one = Insn(Op.MAC, {"p0": pixels, "n0": 4, "accumulate": 1, "x_zp": 3, "k0_s": 1, "p0_s": 1})
    bench = MacBench(seed=pixels)
    insns = [one] * 4
    np.testing.assert_array_equal(bench.run(insns), bench.expect(insns))


def test_issue_slots_are_used():
    """A tile like that of a matrix product: 32 pixels, 9 blocks, back to back, and blocks of exactly `rows` pixels."""
    fields = {"n0": 9, "p0": 16, "k0_s": 16, "p0_s": 1, "w_signed": 1}
    insns = [Insn(Op.MAC, fields | {"acc": 16 * (i % 2)}) for i in range(8)]
    insns += [Insn(Op.MAC, {"n0": 9, "p0": SMALL.rows, "p0_s": 1, "acc": 8 * (i % 2)}) for i in range(4)]
    bench = MacBench()
    acc = bench.run(insns)
    span = bench.active[-1] - bench.active[0] + 1
    assert len(bench.active) == 8 * 9 * 16 + 4 * 9 * SMALL.rows
    assert len(bench.active) / span >= 0.99
    assert bench.done[-1] - bench.active[-1] <= 9
    np.testing.assert_array_equal(acc, bench.expect(insns))


def test_vec_reads_while_mac_works():
    """One bank drains while the other fills, and a clash on one bank delays VEC only."""
    fields = {"n0": 6, "p0": 16, "p0_s": 1, "k0_s": 4}
    insns = [Insn(Op.MAC, fields | {"acc": 0}), Insn(Op.MAC, fields | {"acc": 16})]
    reads = [(row, 0) for row in range(16)]
    bench = MacBench()
    bench.run(insns, reads=reads, read_after=1)
    expected = bench.expect(insns)
    np.testing.assert_array_equal(np.array(bench.drained), expected[:16])

    clash = MacBench()
    clash.run(insns[:1] * 2, reads=reads)
    assert clash.active[-1] - clash.active[0] + 1 == len(clash.active)


def test_the_last_row_is_there_when_a_command_is_done():
    insn = Insn(Op.MAC, {"n0": 2, "p0": 16, "p0_s": 1, "k0_s": 4})
    bench = MacBench()
    bench.run([insn], reads=[(15, 0)], read_after=1)
    np.testing.assert_array_equal(bench.drained[0], bench.expect([insn])[15][: SMALL.vec_lanes])


@pytest.mark.parametrize(
    ("fields", "code", "addr"),
    [
        ({"mode": 2}, Fault.ILLEGAL, 2),
        ({"p0": 0}, Fault.ILLEGAL, 0),
        ({"act": 256}, Fault.LIMIT, 256),
        ({"act": 255, "mode": 1}, Fault.LIMIT, 255),
        ({"act": 250, "p0": 8, "p0_s": 1}, Fault.LIMIT, 256),
        ({"act": 2, "n0": 4, "k0_s": -1}, Fault.LIMIT, 2**32 - 1),
        ({"wgt": 253}, Fault.LIMIT, 256),
        ({"acc": 31, "p0": 2}, Fault.LIMIT, 32),
    ],
)
def test_faults_stop_the_unit(fields, code, addr):
    good = raw_command(Op.MAC, pc=7, p0=8, p0_s=1)
    bench = MacBench()
    bench.run([good, raw_command(Op.MAC, pc=8, **fields), good], until=3)
    assert bench.faults == [(code, 8, addr)]
    assert len(bench.done) == 1


def test_abort_drops_busy():
    bench = MacBench()
    bench.run([Insn(Op.MAC, {"n0": 20, "p0": 16})] * 2, abort_at=40)
    assert not bench.done and bench.active[-1] <= 41


@pytest.mark.parametrize("params", [SMALL, WIDE, BANKED], ids=["small", "wide", "banked"])
def test_accumulators_are_restored_word_by_word(params):
    """Through the LV0 port: each LV1 word reaches its quarter of its row, and other spaces reach none."""
    bench = MacBench(params, seed=4)
    rng = random.Random(4)
    words = [(rng.randrange(4 * params.lv0_acc_rows), rng.randbytes(params.lv1_word)) for _ in range(40)]
    expected = bytearray(bench.expect([]).astype("<i4").tobytes())
    for number, (at, word) in enumerate(words):
        if number % 4:
            expected[at * params.lv1_word : (at + 1) * params.lv1_word] = word
    found = bytearray()

    async def testbench(ctx):
        port = bench.dut.lv0
        ctx.set(port.valid, 1)
        ctx.set(port.en, -1)
        for number, (at, word) in enumerate(words):
            ctx.set(port.space, Lv0Space.ACC.value if number % 4 else Lv0Space.WGT.value)
            ctx.set(port.addr, at)
            ctx.set(port.data, int.from_bytes(word, "little"))
            await ctx.tick()
        ctx.set(port.valid, 0)
        await ctx.tick()
        for bank in bench.dut.accumulators.data:
            for row in range(params.lv0_acc_rows // 2):
                found.extend(ctx.get(bank[row]).to_bytes(4 * params.out_channels, "little"))

    simulate(bench.dut, testbench)
    assert found == expected
