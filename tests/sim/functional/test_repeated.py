"""Instructions that are executed again do what they did at first, checks of their segments included."""

import random

import numpy as np
import pytest

from hw.contract.isa import Insn, Lv0View, Op
from hw.contract.job import Fault
from hw.contract.params import preset
from sim.functional import repeated
from sim.functional.repeated import RepeatedUnits
from sim.functional.state import FunctionalFault
from sim.functional.units import COPIES, Units
from tests.hw.mac.harness import random_insn as random_mac
from tests.hw.vec.test_vec_unit import random_insn as random_vec
from tests.support.random_copies import random_copy

PARAMS = preset("tiny").replace(engines=2, name="two engines")
SEGMENTS = [(0, 0x2000)] * 6 + [(0x4000, 0x2000)] * 2
MOVED = [(0x2000, 0x2000)] * 6 + [(0x8000, 0x2000)] * 2
LOAD = Insn(Op.LD2, {"src_seg": 2, "dst_seg": 6, "len": 64, "hi": 64, "hi1": 1, "hi0": 1})
MASKED = Insn(Op.LD0, {"len": 20, "lo": 3, "hi": 9, "hi1": 1, "hi0": 1, "fill": 5, "view": int(Lv0View.INTERLEAVED)})


@pytest.fixture
def units():
    return blank(RepeatedUnits)


def blank(kind):
    """Units with random bytes in their memories, small enough for factors that do not overflow."""
    made, rng = kind(PARAMS, np.zeros(0x4000, np.uint8)), np.random.default_rng(0)
    for memory in memories(made):
        memory[...] = rng.integers(0, 64, memory.shape)
    return made


def memories(units):
    return [units.dram, units.lv2, *(m for e in units.engines for m in (e.lv1, e.act, e.wgt, e.acc))]


def programs(seed):
    rng = random.Random(seed)
    copies = [random_copy(rng, op, PARAMS) for op in COPIES for _ in range(4)]
    return [*copies, MASKED, *(made for _ in range(4) for made in (random_mac(rng, PARAMS), random_vec(PARAMS, rng)))]


@pytest.mark.parametrize("kept", [7, repeated.KEPT])
@pytest.mark.parametrize("seed", range(4))
def test_repeated_units_are_units(monkeypatch, kept, seed):
    """Whatever memories hold then, on either engine, wherever segments have moved, however few are kept."""
    monkeypatch.setattr(repeated, "KEPT", kept)
    units, expected = blank(RepeatedUnits), blank(Units)
    program, rng = programs(seed), random.Random(seed)
    for _ in range(300):
        insn, engine, segments = rng.choice(program), rng.randrange(2), rng.choice([SEGMENTS, MOVED])
        only_checks = rng.random() < 0.2
        for each in (units, expected):
            each.execute(insn, segments, engine, only_checks=only_checks)
        assert all(np.array_equal(*pair) for pair in zip(memories(units), memories(expected), strict=True)), insn
        assert units.accesses == expected.accesses and units.bytes_read == expected.bytes_read


def test_a_segment_that_has_become_smaller_faults(units):
    units.execute(LOAD, SEGMENTS)
    smaller = [*SEGMENTS]
    smaller[LOAD["src_seg"]] = (0, 63)
    for _ in range(2):
        with pytest.raises(FunctionalFault) as caught:
            units.execute(LOAD, smaller, pc=7)
        assert (caught.value.code, caught.value.addr, caught.value.pc) == (Fault.LIMIT, 63, 7)
    units.execute(LOAD, SEGMENTS)


def test_instructions_that_were_only_checked_are_carried_out_later(units):
    before = units.lv2.copy()
    units.execute(LOAD, SEGMENTS, only_checks=True)
    assert np.array_equal(units.lv2, before)
    units.execute(LOAD, SEGMENTS)
    assert np.array_equal(units.lv2[0x4000:0x4040], units.dram[:64])


def test_no_more_are_kept_than_may_be(units, monkeypatch):
    """Those that are used again are checked once."""
    monkeypatch.setattr(repeated, "KEPT", 3)
    checked, prepare = [], units.prepare
    monkeypatch.setattr(units, "prepare", lambda insn, *at, **how: checked.append(insn) or prepare(insn, *at, **how))
    program = [Insn(Op.LD2, dict(LOAD.fields)) for _ in range(4)]
    for insn in (*program[:3], *program[:3], program[3], program[0]):
        units.execute(insn, SEGMENTS)
    assert checked == [*program, program[0]]
