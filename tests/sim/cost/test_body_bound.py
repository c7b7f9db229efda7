"""Bounds on whole bodies, and on what programs ask of the DRAM."""

import caesura
from hw.contract.assembly import assemble
from hw.contract.isa import Op
from hw.contract.params import preset
from sim.cost.body_bound import completion_cycles, dram_service, stretches, whole_bodies
from sim.cost.bound import worst_intervals
from sim.cost.dram import WorstDram
from sim.cost.rivals import CountedOthers, Others, Rivals
from tests.sim.cost.test_bound import body
from tests.support.networks import DIGITS

TINY, BASE = preset("tiny"), preset("base")
MAC = "MAC p0=16 p1=2 acc_s=16 n0=16"  # 512 cycles
LOAD = "LD2 dst_seg=6 len=1024 hi=1024 n0={n} hi0={n} src_s0=1024 dst_s0=1024"


def test_points_cost_their_issue_slots_alone():
    plain, points = (assemble(f"\n{between}".join([MAC] * 40) + "\nEND") for between in ("", "CANCEL\n"))
    (alone,), (stopped,) = (whole_bodies([one], TINY, Others()) for one in (plain, points))
    assert 40 * 512 <= alone < stopped <= alone + 39 * 10
    (split,) = stretches([points], TINY, Others(), loading=False)
    assert sum(split.points) + split.end > 3 * stopped


def test_a_body_is_bounded_as_a_pause_at_its_beginning_is():
    program = assemble("\n".join([MAC] * 10) + "\nEND")
    whole, pause = whole_bodies([program], BASE, Others(1))[0], worst_intervals(program, BASE, Others(1)).end
    assert 0 < pause - whole < completion_cycles(BASE, Others(1))


def test_bodies_of_a_network_are_served_within_the_bounds_beside_a_busy_engine():
    image = caesura.compile(DIGITS, BASE, engines=1)
    bodies = [body(image, job) for job in range(len(image.meta.jobs))]
    alone, counted, always = (whole_bodies(bodies, BASE, one) for one in (Others(), CountedOthers(1), Others(1)))
    assert all(one <= two <= three for one, two, three in zip(alone, counted, always, strict=True))
    assert sum(counted) < sum(always)


def test_counted_engines_take_no_turns_at_the_dram_and_use_lv2_as_others_do():
    alone, counted, always = (Rivals(one) for one in (Others(), CountedOthers(2), Others(2)))
    turns = [WorstDram(BASE, one).between(Op.LD2) for one in (alone, counted, always)]
    assert turns[0] <= turns[1] < turns[2]  # a burst may wait for LV2
    assert alone.lv2_writes(Op.LD2) < counted.lv2_writes(Op.LD2) == always.lv2_writes(Op.LD2)
    copies = [WorstDram(BASE, Rivals(one, frozenset({Op.LD2}), fetched=0)) for one in (Others(), CountedOthers(2))]
    alone_rows, counted_rows = (copy.transfer(Op.LD2, 64, 1, 1024) for copy in copies)
    assert alone_rows < counted_rows  # each burst opens its row again


def test_service_grows_with_what_is_loaded():
    one, two = (dram_service([assemble(LOAD.format(n=n) + "\nEND")], BASE) for n in (4, 8))
    assert two - one >= 4 * 1024 // BASE.dram_bytes_per_cycle
    assert dram_service([], BASE) <= 1
