"""Units that are faster or slower than ours: the fast model with other durations."""

from itertools import pairwise

import numpy as np
import pytest

import caesura
from caesura import samples as inputs
from hw.contract.bus import HostCosts
from hw.contract.isa import INSN_BYTES, UNIT_OF, Insn, Op, Unit
from hw.contract.params import preset
from sim.cost.exact.copies import BurstTable, BusCopy, CopySteps
from sim.cost.exact.pipelines import MacBlocks, VecSteps
from sim.cost.exact.program import PIECE, ProgramTable
from sim.model.bus import ModelBus
from sim.model.stretched import StretchedBus, StretchedPrograms, stretched
from tests.hw.soc_bench import END, SocBench, copy
from tests.support.networks import network

TINY, BASE = preset("tiny"), preset("base")
NETWORKS = (("digits", TINY), ("digits", BASE), ("ic_resnet8_int8", BASE), ("kws_dscnn_int8", TINY))
#: So far apart that it does not matter which burst then meets a refresh: that is some 30 cycles, either way.
FACTORS = (0, 0.5, 1, 2, 4)
EVERY = dict.fromkeys(Unit, 1.0)


def inference(image, bus):
    """Outputs, and cycles from the first job to the last."""
    with caesura.Device(bus) as device:
        outputs, stats = device.load(image).run(inputs.random_samples(image, 1, 0)[0])
    return outputs, stats.cycles


@pytest.fixture(scope="module", params=NETWORKS, ids=lambda case: f"{case[0]}-{case[1].name}")
def image(request):
    name, params = request.param
    found = caesura.compile(network(name), params)
    for job in found.meta.jobs:
        job.worst_cycles = 0  # units that take four times as long exceed it
    return found


def test_factors_of_one_change_nothing(image):
    outputs, cycles = inference(image, ModelBus(image.params))
    same, unchanged = inference(image, StretchedBus(image.params, EVERY))
    assert unchanged == cycles == inference(image, StretchedBus(image.params, {}, data=False))[1]
    assert all((same[name] == outputs[name]).all() for name in outputs)


@pytest.mark.parametrize("unit", Unit, ids=lambda unit: unit.name)
def test_cycles_grow_with_the_durations_of_a_unit(image, unit):
    cycles = [inference(image, StretchedBus(image.params, {unit: factor}, data=False))[1] for factor in FACTORS]
    # A store that comes sooner may meet another at a memory: on base, digits with faster ones take 10 cycles more.
    late = 10 if unit is Unit.ST1 and image.params.name == "base" else 0
    assert all(later >= sooner - late for sooner, later in pairwise(cycles)) and cycles[0] > 0
    if unit in (Unit.MAC, Unit.LD1, Unit.LD0, Unit.VEC):
        assert cycles[0] < cycles[FACTORS.index(1)] < cycles[-1]


@pytest.mark.parametrize("op", [Op.LD2, Op.ST2, Op.LD1, Op.ST1, Op.LD0], ids=lambda op: op.name)
def test_a_body_of_copies_takes_about_as_many_times_as_long(op):
    took = []
    for factor in (1.0, 6.0):
        with StretchedBus(TINY, {UNIT_OF[op]: factor}, costs=HostCosts.free(), data=False) as bus:
            bench = SocBench(TINY, bus=bus)
            bench.setup()
            bench.job([*[copy(op, len=2048)] * 8, END])
            bench.ring()
            bench.wait(1, limit=100_000)
            took.append(bench.completion(0)["end"] - bench.completion(0)["start"])
    stretched_copies = 7 if op is Op.ST2 else 8  # a slow store holds up the next, and the last has none behind it
    assert 5 * stretched_copies / 8 < took[1] / took[0] < 6


def test_units_that_take_no_time_leave_what_is_not_theirs(image):
    plain = inference(image, ModelBus(image.params, data=False))[1]
    nothing = inference(image, StretchedBus(image.params, dict.fromkeys(Unit, 0.0), data=False))[1]
    assert 0 < nothing < plain


def test_what_is_computed_does_not_depend_on_durations(image):
    outputs, _ = inference(image, ModelBus(image.params))
    changed, cycles = inference(image, StretchedBus(image.params, {Unit.MAC: 2.0, Unit.LD2: 3.0}))
    assert all((changed[name] == outputs[name]).all() for name in outputs)
    assert cycles == inference(image, StretchedBus(image.params, {Unit.MAC: 2.0, Unit.LD2: 3.0}, data=False))[1]


@pytest.mark.parametrize("change", [{"dram_latency": 200}, {"dram_bandwidth": 30, "dram_row_miss": 90}])
def test_another_dram_is_that_of_a_machine_that_has_it(image, change):
    params = image.params.replace(**change)
    bus = StretchedBus(image.params, {}, data=False)
    bus.set_dram_timing(params)
    assert inference(image, bus)[1] == inference(image, ModelBus(params, data=False))[1]


def test_what_is_stretched():
    assert stretched(MacBlocks(3, 64, 50, 150), 0.5) == MacBlocks(3, 32, 25, 150)
    assert stretched(VecSteps(7, 100, 14, 100), 2.0) == VecSteps(14, 200, 14, 100)
    assert stretched(CopySteps(4, 40, 0, -2, (1, 2)), 0.25) == CopySteps(1, 10, 0, -2, (1, 2))
    assert stretched(CopySteps(4, 40, 39, 8), 0.0) == CopySteps(1, 1, 1, 1)  # at least one cycle is left
    assert stretched(CopySteps(3, 3, 3, 3), 0.5) == CopySteps(2, 2, 2, 2)


def bus_copy(rows, count):
    beats = sum(rows[number % len(rows)][1] for number in range(count))
    steps = beats + sum(rows[number % len(rows)][2] for number in range(count)) + 5
    return BusCopy(CopySteps(4, steps, 20, 10), BurstTable(np.array(rows, np.int64), count), 1, 5)


def test_a_slow_load_holds_up_the_words_behind_each_burst():
    rows = [(0, 16, 0, 0), (256, 16, 3, 256), (512, 4, 0, 512)]
    slow = stretched(bus_copy(rows, 3), 2.0)
    assert [burst.pause for burst in slow.bursts] == [0, 16 + 6, 16] and slow.trail == 10 + 4
    moved = sum(burst.beats + burst.pause for burst in slow.bursts) + slow.trail
    assert moved == slow.steps.steps == 2 * bus_copy(rows, 3).steps.steps
    fast = stretched(bus_copy(rows, 3), 0.5)
    assert [burst.pause for burst in fast.bursts] == [0, 2, 0] and fast.trail == 2
    over = stretched(bus_copy(rows, 7), 2.0)  # rows that are repeated wait for the last of them
    assert [burst.pause for burst in over.bursts] == [4, 22, 16, 4, 22, 16, 4] and len(over.bursts) == 7
    nothing = stretched(BusCopy(CopySteps(4, 40, 0, 10), BurstTable(np.zeros((0, 4), np.int64), 0), 0, 40), 3.0)
    assert (len(nothing.bursts), nothing.trail, nothing.steps.steps) == (0, 120, 120)


def test_each_instruction_is_stretched_once_whatever_is_decoded_first():
    length = 4 * TINY.lv1_word
    code = np.frombuffer(copy(Op.LD1, len=length, src_seg=6).encode() * (2 * PIECE + 5), np.uint8)
    programs, plain = StretchedPrograms(TINY, code.copy(), {Unit.LD1: 3.0}), ProgramTable(code, TINY)
    table = programs.at(0, len(code))
    assert programs.at(0, INSN_BYTES) is table
    plain.decode(0, 1)
    for first in (2 * PIECE, 0, PIECE):
        table.decode(first, first + 1)
    assert {table.measured(pc).steps for pc in range(0, 2 * PIECE + 5, 7)} == {3 * plain.measured(0).steps}
    programs.changed(0, INSN_BYTES)
    assert programs.at(0, len(code)) is not table


def test_what_takes_long_to_work_out_is_stretched_when_it_is_asked_for():
    fields = {"src_seg": 6, "len": 64, "hi": 64, "n0": 5000, "hi0": 5000, "hi1": 1, "src_s0": 64}
    insn = Insn(Op.LD1, fields)
    code = np.frombuffer(insn.encode(), np.uint8)
    plain, table = ProgramTable(code, TINY), StretchedPrograms(TINY, code, {Unit.LD1: 2.0}).at(0, INSN_BYTES)
    for one in (plain, table):
        one.decode(0, 1)
        assert one.work == [None]
    assert table.measured(0).steps == 2 * plain.measured(0).steps


@pytest.mark.parametrize("factor", [-1.0, float("nan"), float("inf")])
def test_factors_that_mean_nothing_are_refused(factor):
    with pytest.raises(ValueError, match="durations of MAC change by a factor of at least 0"):
        StretchedBus(TINY, {Unit.MAC: factor})
