"""Random copy instructions that stay within their segments and memories."""

import random

from hw.contract.isa import Insn, Lv0Space, Lv0View, Op
from hw.contract.params import SocParams

SEGMENT = 0x2000  #: bytes of the segments in DRAM and LV2 that they keep to


def random_copy(rng: random.Random, op: Op, params: SocParams) -> Insn:
    """A copy with every feature at random; segments 1 and 5 in DRAM, 6 in LV2.

    Copies from and to DRAM have runs of some words and read all of them.
    """
    word = params.dram_word if op in (Op.LD2, Op.ST2) else params.lv1_word
    while True:
        insn = _try(rng, op, word, params)
        if insn is not None:
            return insn


def _try(rng: random.Random, op: Op, word: int, params: SocParams) -> Insn | None:
    length = rng.choice([1, word, rng.randint(1, 4), rng.randint(1, 6 * word), rng.randint(1, 40) * word])
    bus = op in (Op.LD2, Op.ST2)
    if bus:
        length = rng.randint(4 * word, 40 * word)
    fields = {"len": length, "n2": rng.randint(1, 2), "n1": rng.randint(1, 4), "n0": rng.randint(1, 6)}
    for side in ("src", "dst"):
        for k in range(3):
            stride = rng.choice([0, word, length, rng.randint(-100, 200), rng.randint(0, 8) * word])
            fields[f"{side}_s{k}"] = stride
    fields["lo"] = rng.choice([0, 0, 0, rng.randint(0, length + 1)])
    fields["hi"] = rng.choice([length, length, 0xFFFF, rng.randint(0, length + 1)])
    fields["lo1"], fields["hi1"] = rng.choice([(0, 0xFFFF), (0, 0xFFFF), (1, 3), (0, 1)])
    fields["lo0"], fields["hi0"] = rng.choice([(0, 0xFFFF), (0, 0xFFFF), (1, 3), (2, 2)])
    if bus:
        fields |= {"lo": 0, "hi": length, "lo1": 0, "hi1": fields["n1"], "lo0": 0, "hi0": fields["n0"]}
    if op in (Op.LD2, Op.ST2, Op.LD1):
        fields["src_seg"] = 1 if op is Op.LD2 else 6
    if op in (Op.LD2, Op.ST2, Op.ST1):
        fields["dst_seg"] = 5 if op is Op.ST2 else 6
    if op is Op.LD0:
        fields |= {"pe_mask": rng.randrange(1 << params.pes), "space": rng.choice([Lv0Space.ACT, Lv0Space.WGT])}
        fields["view"] = rng.choice(list(Lv0View))
        if fields["space"] == Lv0Space.WGT and length % 3 == 1:
            fields["space"] = Lv0Space.INT4
    for side, size in (("src", _size(op, params, op in (Op.ST1, Op.LD0))), ("dst", _target(op, fields, params))):
        ends = [(fields[f"n{k}"] - 1) * fields[f"{side}_s{k}"] for k in range(3)]
        low, high = -sum(min(0, end) for end in ends), size - length - sum(max(0, end) for end in ends)
        if low > high:
            return None
        fields[side] = rng.choice([rng.randint(low, high), min(high, -(-low // word) * word)])
    return Insn(op, {name: int(value) for name, value in fields.items()})


def _size(op: Op, params: SocParams, lv1: bool) -> int:
    return min(SEGMENT, params.lv1_bytes) if lv1 else SEGMENT


def _target(op: Op, fields: dict[str, int], params: SocParams) -> int:
    if op is not Op.LD0:
        return _size(op, params, op is Op.LD1)
    size = params.lv0_act_bytes if fields["space"] == Lv0Space.ACT else params.lv0_wgt_bytes
    if fields["space"] == Lv0Space.INT4:
        return size * params.pes // 2
    return size * (params.pes if fields["view"] == Lv0View.INTERLEAVED else 1)
