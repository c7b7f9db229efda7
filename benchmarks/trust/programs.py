"""Random programs, made while a functional model runs them: what they do is known when they are complete."""

import random
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from benchmarks.trust.defined import is_defined
from benchmarks.trust.soc import LAYOUT, PARAMS, segments_of
from benchmarks.trust.words import chained, mutated, raw_word
from hw.contract.isa import INSN_BYTES, LV2_SEGMENTS, STORE_SEGMENTS, Insn, Lv0Space, Op, VecOp
from hw.contract.job import Fault, FaultUnit
from sim.functional import FunctionalFault, Machine

LONGEST = 14  #: instructions of a random program
BIGGEST = 1500  #: steps or words of one instruction: keeps programs short in time
FILL = 2048  #: bytes that :func:`fill_program` repeats in LV1
BLOCKS = 10  #: parameter blocks of VEC at the start of these
_COPIES = (Op.LD2, Op.ST2, Op.LD1, Op.ST1, Op.LD0)
_SPARE = ("wait", "signal")  #: fields that mutations leave alone: the chain sets them

Bytes = npt.NDArray[np.uint8]


@dataclass
class RandomProgram:
    """A body, and what the functional model says of it.

    ``fault``: the fault that ends it, None if it ends well. ``states``: the tenant's LV2 and DRAM before the first
    instruction and after each that ran. ``writes``: for each instruction that ran, and for the one that faults, the
    segment that it stores to (None: none of DRAM or LV2). ``defined``: whether memory means something, rather than
    results of VEC parameters outside their ranges.
    """

    body: list[bytes] = field(default_factory=list)
    fault: FunctionalFault | None = None
    states: list[tuple[Bytes, Bytes]] = field(default_factory=list)
    writes: list[int | None] = field(default_factory=list)
    defined: bool = True


def contents(rng: random.Random) -> bytes:
    """4 KiB for the constants of a tenant: parameter blocks of VEC that mean something, then random bytes."""
    data = np.frombuffer(rng.randbytes(4096), np.uint8).copy()
    head = PARAMS.vec_header_bytes
    for i in range(BLOCKS):
        block = np.zeros(96, np.uint8)
        lo = rng.randint(-128, 100)
        for at, size, value in (
            (0, 2, rng.randint(-128, 255)), (2, 2, rng.randint(-128, 255)), (4, 4, rng.randint(-(1 << 21), 1 << 21)),
            (8, 4, rng.randint(-64, 63)), (12, 2, rng.randint(-128, 255)), (14, 2, lo),
            (16, 2, rng.randint(lo, 255)),
        ):  # fmt: skip
            block[at : at + size] = np.frombuffer((value & (1 << 8 * size) - 1).to_bytes(size, "little"), np.uint8)
        for lane in range(PARAMS.vec_lanes):
            entry = np.array([rng.randint(-(1 << 20), 1 << 20)], "<i4").tobytes()
            entry += np.array([rng.uniform(-1, 1) * 2.0 ** -rng.randint(0, 20)], "<f4").tobytes()
            block[head + 8 * lane : head + 8 * lane + 8] = np.frombuffer(entry, np.uint8)
        data[96 * i : 96 * i + 96] = block
    return data.tobytes()


def fill_program() -> list[Insn]:
    """Bring the first :data:`FILL` bytes of segment 1 to all of LV1, LV0 and the accumulators."""
    p = PARAMS
    whole = {"hi1": 1, "hi0": 1 << 15}
    program = [
        Insn(Op.LD2, {"src_seg": 1, "dst_seg": 6, "len": FILL, "hi": FILL, **whole}),
        Insn(Op.LD1, {"src_seg": 6, "len": FILL, "hi": FILL, "n0": p.lv1_bytes // FILL, "dst_s0": FILL, **whole}),
    ]
    for space, size in (
        (Lv0Space.ACT, p.pes * p.lv0_act_bytes), (Lv0Space.WGT, p.pes * p.lv0_wgt_bytes),
        (Lv0Space.ACC, 4 * p.out_channels * p.lv0_acc_rows),
    ):  # fmt: skip
        run = {"len": min(size, 4096), "hi": min(size, 4096)}
        program.append(Insn(Op.LD0, {"space": int(space), "view": int(space != Lv0Space.ACC), **run, **whole}))
    return program


def chain(program: list[Insn]) -> list[bytes]:
    """The words of ``program``, each instruction behind the one before, and END."""
    words = [
        chained(raw_word(insn.op, insn.fields), insn.op, i, i == len(program) - 1) for i, insn in enumerate(program)
    ]
    return [*words, Insn(Op.END).encode()]


class Author:
    """Writes programs for ``tenant`` and runs them on ``machine``, whose state goes on from program to program.

    ``corpus``: further instructions that programs take now and then, such as those of compiled images.
    """

    def __init__(self, machine: Machine, tenant: int, corpus: list[Insn] | None = None) -> None:
        self.machine, self.tenant = machine, tenant
        self.segments = segments_of(tenant)
        self._corpus = corpus or []

    def state(self) -> tuple[Bytes, Bytes]:
        """Copies of the tenant's part of LV2, and of its DRAM behind the code."""
        low, high = self.lv2_range
        return self.machine.lv2[low:high].copy(), self.machine.dram[slice(*self.dram_range)].copy()

    @property
    def lv2_range(self) -> tuple[int, int]:
        """First byte of LV2 of the tenant, and the first behind it."""
        ends = [self.segments[i] for i in LV2_SEGMENTS]
        return min(base for base, _ in ends), max(base + size for base, size in ends)

    @property
    def dram_range(self) -> tuple[int, int]:
        """The same in DRAM, code left out."""
        ends = [self.segments[i] for i in range(1, 6)]
        return min(base for base, _ in ends), max(base + size for base, size in ends)

    def fill(self) -> list[bytes]:
        """The program of :func:`fill_program`; run on the model."""
        program = fill_program()
        for insn in program:
            self.machine.execute(insn, self.segments, self.tenant)
        return chain(program)

    def write(self, rng: random.Random, *, flawed: bool) -> RandomProgram:
        """A new program. ``flawed``: it holds mutated instructions, and most likely ends with a fault."""
        made = RandomProgram(states=[self.state()])
        length = rng.randint(2, LONGEST)
        flaw = rng.randrange(length) if flawed else -1
        words: list[tuple[bytes, Op]] = []
        for number in range(length):
            word, op = self._next(rng, made, (number >= flaw >= 0 and rng.random() < 0.5) or number == flaw)
            words.append((word, op))
            if made.fault is not None:
                break
        if made.fault is not None:  # what follows never runs
            words += [(raw_word(insn.op, insn.fields), insn.op) for insn in self._legal_tail(rng)]
        made.body = [
            chained(word, op, i, i == len(words) - 1) if op not in (Op.END, Op.CANCEL) else word
            for i, (word, op) in enumerate(words)
        ]
        made.body.append(Insn(Op.END).encode())
        return made

    def _legal_tail(self, rng: random.Random) -> list[Insn]:
        return [candidate(rng, self.tenant) for _ in range(rng.randrange(4))]

    def _next(self, rng: random.Random, made: RandomProgram, flawed: bool) -> tuple[bytes, Op]:
        """An instruction that the model has run or found at fault."""
        while True:
            insn = rng.choice(self._corpus) if self._corpus and rng.random() < 0.3 else candidate(rng, self.tenant)
            if flawed:
                word = mutated(rng, insn, _SPARE)
            elif insn.op in _COPIES or insn.op in (Op.MAC, Op.VEC):
                word = raw_word(insn.op, insn.fields)
            else:
                continue
            try:
                insn = Insn.decode(word).resolve(())
            except ValueError:
                pc = len(made.writes)
                made.fault = FunctionalFault(Fault.ILLEGAL, pc, pc * INSN_BYTES, FaultUnit.EXECUTOR)
                made.writes.append(None)
                return word, _op_of(word, insn.op)
            if insn.op in (Op.END, Op.CANCEL) or _size(insn) > BIGGEST:
                continue
            if self._run(insn, made, may_fault=flawed):
                return word, insn.op

    def _run(self, insn: Insn, made: RandomProgram, may_fault: bool) -> bool:
        defined = is_defined(insn, self.machine.engines[self.tenant].lv1)
        if not (defined or may_fault):
            return False
        try:
            self.machine.execute(insn, self.segments, self.tenant, len(made.writes))
        except FunctionalFault as fault:
            if not may_fault:
                return False
            made.fault = fault
        made.writes.append(_stores_to(insn))
        if made.fault is None:
            made.defined &= defined
            made.states.append(self.state())
        return True


def _op_of(word: bytes, fallback: Op) -> Op:
    try:
        return Op(word[0])
    except ValueError:
        return fallback


def _stores_to(insn: Insn) -> int | None:
    return insn["dst_seg"] if insn.op in (Op.LD2, Op.ST2, Op.ST1) else None


def _size(insn: Insn) -> int:
    """About how many cycles an instruction takes."""
    if insn.op in _COPIES:
        return insn["n2"] * insn["n1"] * insn["n0"] * (1 + insn["len"] // 8)
    counts = ("p1", "p0", "n2", "n1", "n0") if insn.op is Op.MAC else ("n2", "n1", "n0", "k1", "k0")
    size = 1
    for name in counts:
        size *= insn[name]
    return max(size, PARAMS.rows * insn["n2"] * insn["n1"] * insn["n0"])


def candidate(rng: random.Random, tenant: int) -> Insn:
    """An instruction that may well be legal."""
    op = rng.choice((Op.LD2, Op.ST2, Op.LD1, Op.LD1, Op.ST1, Op.ST1, Op.LD0, Op.LD0, Op.MAC, Op.MAC, Op.VEC, Op.VEC))
    make = _random_mac if op is Op.MAC else _random_vec if op is Op.VEC else None
    fields = make(rng) if make else _random_copy(rng, op, tenant)
    return Insn(op, {name: int(value) for name, value in fields.items()})


def _random_copy(rng: random.Random, op: Op, tenant: int) -> dict[str, int]:
    word, layout = PARAMS.lv1_word, LAYOUT[tenant]
    length = rng.choice((1, word, rng.randint(1, 4), rng.randint(1, 6 * word), rng.randint(1, 20) * word))
    f = {"len": length, "n2": rng.randint(1, 2), "n1": rng.randint(1, 4), "n0": rng.randint(1, 5)}
    for side in ("src", "dst"):
        for k in range(3):
            f[f"{side}_s{k}"] = rng.choice((0, word, length, length, rng.randint(-80, 200), rng.randint(0, 8) * word))
    f["lo"] = rng.choice((0, 0, 0, rng.randint(0, length + 1)))
    f["hi"] = rng.choice((length, length, 0xFFFF, rng.randint(0, length + 1)))
    for k in (1, 0):
        f[f"lo{k}"], f[f"hi{k}"] = rng.choice(((0, 0xFFFF), (0, 0xFFFF), (0, 0xFFFF), (1, 3), (0, 1), (2, 2)))
    f["fill"] = rng.randrange(256)
    sizes = {"src": PARAMS.lv1_bytes, "dst": PARAMS.lv1_bytes}
    for side, ops, known in (
        ("src", (Op.LD2, Op.ST2, Op.LD1), (1, 2, 3, 4, 5) if op is Op.LD2 else LV2_SEGMENTS),
        ("dst", (Op.LD2, Op.ST2, Op.ST1), STORE_SEGMENTS if op is Op.ST2 else LV2_SEGMENTS),
    ):
        if op in ops:
            f[f"{side}_seg"] = int(rng.choice(known))
            sizes[side] = layout[f[f"{side}_seg"]][1]
    if op is Op.LD0:
        space = rng.choice((Lv0Space.ACT, Lv0Space.ACT, Lv0Space.WGT, Lv0Space.ACC, Lv0Space.INT4))
        f |= {"space": int(space), "view": rng.randrange(2), "pe_mask": rng.randrange(1 << PARAMS.pes)}
        one = PARAMS.lv0_act_bytes if space is Lv0Space.ACT else PARAMS.lv0_wgt_bytes
        sizes["dst"] = one * (PARAMS.pes if f["view"] else 1)
        if space is Lv0Space.INT4:
            sizes["dst"] = one * PARAMS.pes // 2
        if space is Lv0Space.ACC:
            sizes["dst"] = 4 * PARAMS.out_channels * PARAMS.lv0_acc_rows
            for name in ("len", *(f"{side}_s{k}" for side in ("src", "dst") for k in range(3))):
                f[name] = -(-f[name] // word) * word
            f |= {"lo": 0, "hi": 0xFFFF}
    for side, size in sizes.items():
        ends = [(f[f"n{k}"] - 1) * f[f"{side}_s{k}"] for k in range(3)]
        low, high = -sum(min(0, end) for end in ends), size - f["len"] - sum(max(0, end) for end in ends)
        at = rng.randint(low, max(low, high))
        f[side] = at // word * word if rng.random() < 0.4 or f["space" if "space" in f else "fill"] == 2 else at
    return f


def _random_mac(rng: random.Random) -> dict[str, int]:
    acts = PARAMS.lv0_act_bytes // PARAMS.rows
    wgts = PARAMS.lv0_wgt_bytes // PARAMS.rows
    f = {"n2": rng.randint(1, 2), "n1": rng.randint(1, 3), "n0": rng.randint(1, 3), "p1": rng.randint(1, 4)}
    f |= {"p0": rng.randint(1, 12), "mode": rng.randrange(2), "acc_s": rng.choice((0, 1, 12, rng.randint(0, 16)))}
    f |= {name: rng.randrange(2) for name in ("accumulate", "x_signed", "w_signed", "w_cols")}
    f |= {name: rng.choice((0, 128, rng.randrange(256))) for name in ("x_zp", "w_zp")}
    f |= {name: rng.choice((0, 1, 2, rng.randint(-6, 20))) for name in ("k2_s", "k1_s", "k0_s", "p1_s", "p0_s")}
    blocks = f["n2"] * f["n1"] * f["n0"]
    f["wgt"] = rng.randint(0, max(0, wgts - blocks * PARAMS.rows))
    ends = [
        (f[c] - 1) * f[s] for c, s in (("n2", "k2_s"), ("n1", "k1_s"), ("n0", "k0_s"), ("p1", "p1_s"), ("p0", "p0_s"))
    ]
    low, high = -sum(min(0, end) for end in ends), acts - 2 - sum(max(0, end) for end in ends)
    f["act"] = rng.randint(low, max(low, high))
    f["acc"] = rng.randint(0, max(0, PARAMS.lv0_acc_rows - (f["p1"] - 1) * f["acc_s"] - f["p0"]))
    return f


def _random_vec(rng: random.Random) -> dict[str, int]:
    lanes, lv1 = PARAMS.vec_lanes, PARAMS.lv1_bytes
    op = rng.choice(list(VecOp))
    f: dict[str, int] = {"op": int(op), "n2": rng.randint(1, 3), "n1": rng.randint(1, 4), "n0": 1}
    f |= {"a_signed": rng.randrange(2), "b_signed": rng.randrange(2), "per_channel": rng.randrange(2)}
    f |= {"p": FILL * rng.randrange(lv1 // FILL) + 96 * rng.randrange(BLOCKS), "table": rng.randrange(2)}
    f["t"] = rng.randrange(0, lv1 - 1024, PARAMS.lv1_word)
    across = op is VecOp.MOMENTS or (op in (VecOp.MAX, VecOp.SUM, VecOp.LOOKUP) and rng.random() < 0.5)
    if across:
        f |= {"across": 1, "tail": rng.randint(0, lanes), "per_channel": 0, "table": 0}
    if across or op in (VecOp.MAX, VecOp.SUM, VecOp.WIDE):
        f |= {"k1": rng.randint(1, 3), "k0": rng.randint(1, 3)}
    if op in (VecOp.MUL, VecOp.LOOKUP) or (op is VecOp.LIN and rng.random() < 0.5):
        f["b_en"] = 1
    if op is VecOp.LOOKUP:
        f |= {"row": 1, "table": 0}
    elif op is VecOp.LIN and f.get("b_en"):
        f["row"] = rng.randrange(2)
    elif op is VecOp.LIN and rng.random() < 0.7:
        f["src_acc"] = 1
    if op is VecOp.MOMENTS:
        f["plain"] = rng.randrange(2)
    if op is VecOp.RAW:
        f |= {"src_acc": 1, "n2": 4, "table": 0, "a_signed": 0, "b_signed": 0, "per_channel": 0}
    elif not across and rng.random() < 0.15:
        f |= {"planes": 1, "n2": 3, "table": 0}
    strides = {
        "a": ("a_s2", "a_s1", "a_s0", "a_k1", "a_k0"),
        "b": ("b_s2", "b_s1", "b_s0"),
        "d": ("d_s2", "d_s1", "d_s0"),
    }
    counts = {"s2": f["n2"], "s1": f["n1"], "s0": 1, "k1": f.get("k1", 1), "k0": f.get("k0", 1)}
    for name, fields in strides.items():
        if name == "a" and f.get("src_acc"):
            f |= {"a_s2": rng.randint(0, 6), "a_s1": rng.randint(0, 6)}
            f["a"] = rng.randint(0, PARAMS.lv0_acc_rows - 1 - 6 * 6)
            continue
        f |= {stride: lanes * rng.choice((0, 1, 1, 2, rng.randint(-8, 40))) for stride in fields}
        ends = [(counts[stride[2:]] - 1) * f[stride] for stride in fields]
        low, high = -sum(min(0, end) for end in ends), lv1 - lanes - sum(max(0, end) for end in ends)
        f[name] = rng.randint(low, max(low, high)) // lanes * lanes
    return f
