"""The durations of every unit on the RTL: who changes a unit and forgets the model is told which one."""

import random
from itertools import pairwise

import pytest

from hw.contract.isa import Op
from hw.contract.params import preset
from tests.hw.mac.harness import random_insn as random_mac
from tests.hw.vec.test_vec_unit import random_insn as random_vec
from tests.sim.model.bench import record
from tests.support.random_copies import random_copy

TINY = preset("tiny")
#: By instruction: cycles by which one may end earlier or later behind the one before, and all of them in percent.
#: Copies of many short runs hold the planner up in ways that are not followed; in DRAM, a burst may go before another.
TOLERANCE = {
    Op.MAC: (2, 0.1), Op.VEC: (0, 0), Op.LD1: (10, 1), Op.ST1: (10, 1), Op.LD0: (10, 1),
    Op.LD2: (48, 2), Op.ST2: (48, 2),
}  # fmt: skip


def random_insn(rng, op, params):
    if op is Op.MAC:
        return random_mac(rng, params)
    return random_vec(params, rng) if op is Op.VEC else random_copy(rng, op, params)


def check(op, params, seed, shorter=1):
    """``shorter``: by how much copies take fewer steps than on ``tiny``, so that a cycle is more of them."""
    rng = random.Random(seed)
    body = [random_insn(rng, op, params) for _ in range(20)]
    (rtl, _), (model, _) = record(params, [body])
    (real,), (told,) = rtl.values(), model.values()
    cycles, percent = TOLERANCE[op][0], shorter * TOLERANCE[op][1]
    wrong = []
    for insn, (a, b), (c, d) in zip(body[1:], pairwise(real), pairwise(told), strict=True):
        if abs((b[1] - a[1]) - (d[1] - c[1])) > cycles:
            wrong.append(f"{b[1] - a[1]} cycles behind the one before on the RTL, {d[1] - c[1]} by the model: {insn}")
    shown = "\n".join(wrong[:5])
    assert not wrong, f"{op.name} on {params.name}, seed {seed}: {len(wrong)} instructions are off\n{shown}"
    total, estimate = (runs[-1][1] - runs[0][0] for runs in (real, told))
    assert abs(estimate - total) <= total * percent / 100, f"{op.name}, seed {seed}: {total} cycles, not {estimate}"


@pytest.mark.parametrize("op", TOLERANCE, ids=lambda op: op.name)
def test_a_unit_alone(op):
    for seed in range(3):
        check(op, TINY, seed)


@pytest.mark.slow
@pytest.mark.parametrize("op", TOLERANCE, ids=lambda op: op.name)
def test_a_unit_of_a_wide_engine_alone(op):
    for seed in range(3):
        check(op, preset("base").replace(engines=1, name="one engine of base"), seed, shorter=2)
