"""Every unit against the reference: random strides, clips, alignments and stalls."""

import random

import numpy as np
import pytest
from amaranth.back import rtlil

from hw.contract.isa import Insn, Lv0Space, Op
from hw.contract.params import PRESETS, SocParams
from tests.hw.dma.harness import SMALL, UNITS, WIDE, Bench, Segments, command, copy, lv0_bytes, reference

OPERANDS = (Lv0Space.ACT, Lv0Space.WGT, Lv0Space.INT4)
OPS = (Op.LD1, Op.ST1, Op.LD0, Op.LD2, Op.ST2)


def random_stride(rng: random.Random, word: int) -> int:
    return rng.choice([0, 1, word, -word, rng.randrange(-200, 200), rng.randrange(0, 8) * word])


def random_insn(rng: random.Random, op: Op, word: int, pes: int) -> Insn:
    """A copy whose source may lie anywhere and whose destination stays within 12 KiB of itself."""
    length = rng.choice([1, word, rng.randrange(1, 4), rng.randrange(1, 6 * word)])
    fields = {"len": length, "n2": rng.randrange(1, 3), "n1": rng.randrange(1, 4), "n0": rng.randrange(1, 5)}
    for k in (0, 1, 2):
        fields[f"src_s{k}"] = random_stride(rng, word)
        fields[f"dst_s{k}"] = random_stride(rng, word)
    fields["lo"] = rng.choice([0, 0, rng.randrange(0, length + 2)])
    fields["hi"] = rng.choice([length, 0xFFFF, rng.randrange(0, length + 2)])
    fields["lo1"], fields["hi1"] = rng.choice([(0, 0xFFFF), (1, 3), (0, 1)])
    fields["lo0"], fields["hi0"] = rng.choice([(0, 0xFFFF), (1, 3), (2, 2)])
    fields["fill"] = rng.randrange(256)
    if op == Op.LD0:
        fields |= {"pe_mask": rng.randrange(1 << pes), "space": rng.choice(OPERANDS), "view": rng.randrange(2)}
    return Insn(op, fields)


def place(rng: random.Random, insn: Insn, op: Op, params: SocParams) -> tuple[Insn, Segments] | None:
    """Choose ``src`` and ``dst`` so that the copy stays within its limits, with a segment of its own each time."""
    low = {s: sum(min(0, (insn[f"n{k}"] - 1) * insn[f"{s}_s{k}"]) for k in range(3)) for s in ("src", "dst")}
    high = {s: sum(max(0, (insn[f"n{k}"] - 1) * insn[f"{s}_s{k}"]) for k in range(3)) for s in ("src", "dst")}
    sizes = {"src": params.lv1_bytes if op in (Op.ST1, Op.LD0) else 8192, "dst": 8192}
    if op == Op.LD1:
        sizes["dst"] = params.lv1_bytes
    if op == Op.LD0:
        sizes["dst"] = lv0_bytes(params, insn)
    fields = dict(insn.fields)
    for side in ("src", "dst"):
        room = sizes[side] - insn["len"] - high[side]
        if room <= -low[side]:
            return None
        fields[side] = rng.randrange(-low[side], room)
    based = {"src": op in (Op.LD1, Op.LD2, Op.ST2), "dst": op in (Op.ST1, Op.LD2, Op.ST2)}
    segments = Segments(
        src_base=rng.randrange(8000) if based["src"] else 0, src_limit=sizes["src"],
        dst_base=rng.randrange(8000) if based["dst"] else 0, dst_limit=sizes["dst"],
    )  # fmt: skip
    return Insn(op, fields), segments


def random_program(seed: int, op: Op, count: int, params: SocParams = SMALL) -> list[tuple[Insn, Segments]]:
    rng = random.Random(seed)
    word = params.dram_word if op in (Op.LD2, Op.ST2) else params.lv1_word
    program: list[tuple[Insn, Segments]] = []
    while len(program) < count:
        placed = place(rng, random_insn(rng, op, word, params.pes), op, params)
        if placed is not None:
            program.append(placed)
    return program


@pytest.mark.parametrize("stall", [0.0, 0.4])
@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize(
    ("params", "seed"),
    [(SMALL, 0), (WIDE, 2), *(pytest.param(*case, marks=pytest.mark.slow) for case in ((SMALL, 1), (WIDE, 3)))],
)
def test_random_copies(op, stall, params, seed):
    program = random_program(seed, op, 12, params)
    bench = Bench(op, params, seed=seed, src_stall=stall, dst_stall=stall)
    src, dst = np.frombuffer(bench.src, np.uint8).copy(), np.frombuffer(bench.dst, np.uint8).copy()
    total = extent = 0
    for insn, segments in program:
        count, end, beyond = reference(insn, segments, src, dst)
        assert beyond is None
        total, extent = total + count, max(extent, end)
    commands = []
    for pc, (insn, segments) in enumerate(program):
        if op in (Op.ST1, Op.LD0):  # what a unit must ignore
            segments.src_base, segments.src_limit = 77, 1
        if op in (Op.LD1, Op.LD0):
            segments.dst_base, segments.dst_limit = 99, 2
        commands.append(command(insn, segments, pc))
    bench.run(commands)
    assert not bench.faults
    assert bytes(bench.dst) == dst.tobytes()
    assert (bench.bytes, bench.extent) == (total, extent)


@pytest.mark.slow
def test_longest_run():
    """65535 bytes from the last byte of a word to the last byte of a word."""
    insn = copy(Op.LD2, src=7, dst=7, len=65535)
    bench = Bench(Op.LD2, SMALL.replace(lv2_bytes=1 << 17), src_size=1 << 17)
    bench.run([command(insn, Segments(src_limit=1 << 17, dst_limit=1 << 17))])
    assert bench.dst[7 : 7 + 65535] == bench.src[7 : 7 + 65535]
    assert bench.bytes == 65535


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in ("base", "cluster64") else ()) for name in PRESETS]
)
def test_every_preset_elaborates(name):
    for unit in UNITS.values():
        rtlil.convert(unit(PRESETS[name]), emit_src=False)
