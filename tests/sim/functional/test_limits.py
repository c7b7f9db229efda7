import random

import numpy as np
import pytest

from hw.contract.formats import COPY_FORMAT
from hw.contract.isa import Insn, Op
from hw.contract.job import Fault
from sim.functional.limits import first_beyond
from sim.functional.machine import FunctionalFault, Machine
from tests.hw.dma.harness import SMALL, Bench, Segments, command, reference

LIMIT = 300


def random_copy(rng: random.Random, op: Op = Op.LD1) -> Insn:
    """A small copy that often leaves its segments, at either end and on either side."""
    f = {name: rng.randint(1, 4) for name in ("n2", "n1", "n0")} | {"len": rng.randint(1, 24)}
    f |= {f"src_s{i}": rng.randint(-60, 60) for i in range(3)}
    f |= {f"dst_s{i}": rng.randint(-60, 60) for i in range(3)}
    f |= {"src": rng.randint(-40, 260) % 2**32, "dst": rng.randint(60, 240), "hi": rng.randint(0, 24)}
    f |= {"lo": rng.randint(0, 3), "lo1": rng.randint(0, 2), "hi1": rng.randint(0, 4), "lo0": rng.randint(0, 2)}
    f |= {"hi0": rng.randint(1, 4), "src_seg": 6 * (op is Op.LD1), "dst_seg": 6 * (op is Op.LD2)}
    return Insn(op, {name: value for name, value in f.items() if value})


def expected(insn: Insn) -> int | None:
    """What walking every byte finds."""
    memory = np.zeros(LIMIT, np.uint8)
    return reference(insn, Segments(src_limit=LIMIT, dst_limit=LIMIT), memory, memory.copy())[2]


def test_first_byte_beyond_equals_a_walk_over_all_bytes():
    rng = random.Random(0)
    found = []
    for _ in range(600):
        insn = random_copy(rng)
        fields = {field.name: insn[field.name] for field in COPY_FORMAT}
        found.append(first_beyond(fields, LIMIT, LIMIT))
        assert found[-1] == expected(insn), insn
    assert 50 < found.count(None) < 550


def model_fault(insn: Insn, segments: list[tuple[int, int]]) -> tuple[Fault, int]:
    machine = Machine(SMALL)
    before = machine.engines[0].lv1.copy(), machine.lv2.copy()
    with pytest.raises(FunctionalFault) as caught:
        machine.execute(insn, segments)
    assert np.array_equal(machine.engines[0].lv1, before[0]) and np.array_equal(machine.lv2, before[1])
    return caught.value.code, caught.value.addr


@pytest.mark.parametrize("op", [Op.LD1, Op.LD2])
@pytest.mark.parametrize("seed", range(4))
def test_hardware_and_model_name_the_same_address(op, seed):
    rng = random.Random(seed)
    dst_limit = SMALL.lv1_bytes if op is Op.LD1 else LIMIT
    segments = [(512, LIMIT)] * 8
    sides = Segments(src_base=512, src_limit=LIMIT, dst_base=0 if op is Op.LD1 else 512, dst_limit=dst_limit)
    while True:
        insn = random_copy(rng, op)
        try:
            Machine(SMALL).execute(insn, segments)
        except FunctionalFault:
            break
    bench = Bench(op)
    bench.run([command(insn, sides)], until=lambda bench: bool(bench.faults))
    assert [(fault["code"], fault["addr"]) for fault in bench.faults] == [model_fault(insn, segments)]


def test_counts_do_not_cost_time():
    insn = Insn(Op.LD1, {"src_seg": 6, "n2": 65535, "n1": 65535, "n0": 65535, "hi": 1, "hi1": 65535, "hi0": 65535,
                         "len": 2, "dst_s2": 1})  # fmt: skip
    assert model_fault(insn, [(0, 64)] * 8) == (Fault.LIMIT, SMALL.lv1_bytes)
