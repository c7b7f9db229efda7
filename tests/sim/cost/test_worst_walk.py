"""The compiled walk of the bound on pauses gives the numbers of the one in Python."""

import random

import pytest

from hw.contract.isa import Insn, Op
from hw.contract.params import SocParams, preset
from sim.cost import bound, worst_walk
from sim.cost.bound import Bounds
from sim.cost.rivals import Others
from sim.cost.worst_walk import WorstWalks
from tests.support.cost_oracle import WorstWalkOracle
from tests.support.sampled import sampled

_COPIES = (Op.LD2, Op.ST2, Op.LD1, Op.ST1, Op.LD0)
_FETCHES = ((16_384, 900), (32_768, 1500), (65_536, 2500))


def random_insn(rng: random.Random, most: int = 4) -> Insn:
    """``most``: iterations of a loop of a VEC."""
    op = rng.choice([*_COPIES, Op.MAC, Op.VEC, Op.CANCEL])
    loops = {f"n{k}": rng.randint(1, most if op is Op.VEC else 4) for k in range(3)}
    if op is Op.CANCEL:
        return Insn(op)
    if op is Op.MAC:
        return Insn(op, loops | {"p1": rng.randint(1, 3), "p0": rng.randint(1, 40), "acc_s": rng.randint(0, 40)})
    if op is Op.VEC:
        flags = {name: rng.randint(0, 1) for name in ("src_acc", "b_en", "per_channel", "table")}
        return Insn(op, loops | flags | {"k1": rng.randint(1, 3), "k0": rng.randint(1, 3)})
    size = rng.randint(1, 3000)
    steps = {f"{side}_s{k}": rng.randint(0, 9000) for side in ("src", "dst") for k in range(3)}
    starts = {side: rng.randrange(1 << 16) for side in ("src", "dst")}
    read = {"hi": size, "hi1": 4, "hi0": 4} if rng.random() < 0.8 else {"hi": size}  # or nothing
    return Insn(op, loops | steps | starts | {"len": size} | read)


def random_program(rng: random.Random, most: int = 4) -> list[Insn]:
    """Semaphores that a wait takes have been signalled before; some are left over. ``most``: see
    :func:`random_insn`."""
    program, counts = list[Insn](), [0] * 32
    used = rng.sample(range(32), rng.randint(1, 8))
    for _ in range(rng.randint(20, 120)):
        insn = random_insn(rng, most)
        if insn.op is not Op.CANCEL:
            waits = [number for number in used if counts[number] and rng.random() < 0.4]
            signals = [number for number in used if rng.random() < 0.3]
            for number in waits:
                counts[number] -= 1
            for number in signals:
                counts[number] += 1
            insn = Insn(insn.op, insn.fields | {"wait": mask(waits), "signal": mask(signals)})
        program.append(insn)
    return [*program, Insn(Op.END)]


def mask(numbers: list[int]) -> int:
    return sum(1 << number for number in numbers)


def bounds(program: list[Insn], params: SocParams, others: Others, loading: bool) -> list[Bounds]:
    """By the walk in C, and by the one in Python."""
    return [
        bound.PauseBounds(params, others, walks).of(program, loading)
        for walks in (WorstWalks(params), WorstWalkOracle(params))
    ]


@pytest.mark.parametrize("seed", sampled(range(40), 15))
def test_both_walks_give_the_same_bounds(seed):
    rng = random.Random(seed)
    params = preset(rng.choice(["tiny", "base"]))
    stores, fetches, beats = rng.choice([None, 0, 5]), rng.choice([(), _FETCHES]), rng.choice([None, 3])
    others = Others(rng.randint(0, 3), stores, fetches, rng.randint(1, 40), beats)
    compiled, python = bounds(random_program(rng), params, others, rng.random() < 0.5)
    assert compiled == python, f"seed {seed}"
    assert compiled.end > 0


@pytest.mark.parametrize("walks", [WorstWalks, WorstWalkOracle])
def test_a_signal_that_comes_too_late_is_an_error(walks):
    """Program order cannot run; neither walk may make up a time for it."""
    program = [Insn(Op.MAC, {"wait": 2}), Insn(Op.LD1, {"signal": 2}), Insn(Op.END)]
    with pytest.raises(ValueError, match="semaphore that only an instruction behind it signals"):
        bound.PauseBounds(preset("tiny"), Others(), walks(preset("tiny"))).of(program, False)


@pytest.mark.parametrize("account", range(4))
def test_both_walks_agree_on_each_account(account, monkeypatch):
    """Not on the least of them alone, which may be another one's. VEC waits so often that all words of the others are
    counted, and those of a chain's own steps are spared."""
    spared, real = list[int](), worst_walk.all_counted

    def counted(*arguments):
        spared.append(len(real(*arguments)))
        return real(*arguments)

    monkeypatch.setattr(worst_walk, "all_counted", counted)
    monkeypatch.setattr(bound, "_ACCOUNTS", (bound._ACCOUNTS[account],))
    bound._accounts.cache_clear()
    try:
        for seed in range(20):
            program = random_program(random.Random(seed), 40)
            compiled, python = bounds(program, preset("base"), Others(1, 5), True)
            assert compiled == python, f"seed {seed}"
        assert any(spared)
    finally:
        bound._accounts.cache_clear()
