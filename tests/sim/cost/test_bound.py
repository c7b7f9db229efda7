"""The bound on pause to HALTED: never below what the RTL does, and not far above."""

import pytest

import caesura
from caesura.latency import halt_bound
from caesura.samples import random_samples
from compiler.compile import compile_model
from compiler.plan.options import Options
from hw.contract.assembly import assemble
from hw.contract.isa import INSN_BYTES, Insn, Op
from hw.contract.params import preset
from hw.contract.timing import UNIT_IN_FLIGHT
from hw.image.image import Image
from sim.cost.bound import worst_intervals
from sim.cost.rivals import Others
from tests.support.networks import DIGITS, network
from tests.support.pauses import random_pauses

TINY, BASE = preset("tiny"), preset("base")
ALONE = Others()
MAC = "MAC p0=16 p1=2 acc_s=16 n0=16"  # 512 cycles


def body(image: Image, job: int) -> list[Insn]:
    pc, insns = image.meta.jobs[job].body_pc, list[Insn]()
    while not insns or insns[-1].op is not Op.END:
        insns.append(Insn.decode(image.code[pc * INSN_BYTES :][:INSN_BYTES]))
        pc += 1
    return insns


def test_one_interval_per_point_and_the_end():
    bounds = worst_intervals(assemble(f"{MAC}\nCANCEL point=0\n{MAC}\nCANCEL point=1\n{MAC}\nEND"), TINY, ALONE)
    assert len(bounds.points) == 2
    # A pause behind point 0 finds its MAC unfinished and lets the next one run as well.
    assert 512 <= bounds.points[0] <= 512 + 900
    assert 1024 <= bounds.points[1] <= 1024 + 900


def test_backlog_is_what_queue_and_unit_hold():
    """Ten MACs before the point: five in the queue, one at work, one known to the unit."""
    bounds = worst_intervals(assemble("\n".join([MAC] * 40) + f"\nCANCEL\n{MAC}\nEND"), TINY, ALONE)
    assert 8 * 512 <= bounds.end <= 8 * 512 + 1500


def test_semaphores_tell_what_has_ended():
    """Loads of 3 buffers wait for their readers: once five loads wait in the queue, few MACs can be unfinished."""
    load, mac = "LD0 len=64 hi=64 wait={} signal=1", f"{MAC} wait=1 signal=2"
    pairs = [f"{load.format('' if i < 3 else '2')}\n{mac}".replace("wait= ", "") for i in range(30)]
    chained = worst_intervals(assemble("\n".join(pairs) + f"\nCANCEL\n{MAC}\nEND"), TINY, ALONE)
    free = worst_intervals(assemble("\n".join([MAC] * 30) + f"\nCANCEL\n{MAC}\nEND"), TINY, ALONE)
    assert chained.end <= free.end + 400


def test_wait_for_nothing():
    with pytest.raises(ValueError, match=r"instruction 1 \(MAC\) waits for semaphore 3 in vain"):
        worst_intervals(assemble(f"{MAC} signal=2\n{MAC} wait=3\nEND"), TINY, ALONE)


def test_what_is_added_never_lowers_the_bound():
    short = worst_intervals(assemble(f"LD1 src_seg=6 len=64 hi=64 signal=0\n{MAC} wait=0\nEND"), TINY, ALONE).end
    beside = worst_intervals(
        assemble(f"LD1 src_seg=6 len=64 hi=64 signal=0\n{MAC} wait=0\nLD1 src_seg=6 len=64 hi=64\nEND"), TINY, ALONE
    ).end
    crowded = worst_intervals(assemble(f"LD1 src_seg=6 len=64 hi=64 signal=0\n{MAC} wait=0\nEND"), TINY, Others(3)).end
    loading = worst_intervals(
        assemble(f"LD1 src_seg=6 len=64 hi=64 signal=0\n{MAC} wait=0\nEND"), TINY, ALONE, loading=True
    ).end
    assert short <= beside and short < crowded and short < loading


def test_a_load_waits_for_the_abandoned_ones():
    """As many bursts as can be outstanding, a round trip, and the reset of the unit."""
    program = assemble("LD2 dst_seg=6 len=64 hi=64\nCANCEL\nEND")  # the load waits in its queue when the pause comes
    alone, behind = (worst_intervals(program, BASE, ALONE, loading).end for loading in (False, True))
    bursts = BASE.axi_outstanding * (BASE.axi_burst_beats + BASE.dram_row_miss)
    assert bursts + BASE.dram_latency < behind - alone < 4 * bursts


def test_loads_of_prologues_and_of_the_body_are_not_in_the_unit_at_once():
    """Nine loads of the body may be owed, or abandoned ones and the five of the queue."""
    program = assemble("\n".join(["LD2 dst_seg=6 len=8192 hi=8192"] * 20) + "\nCANCEL\nEND")
    alone, behind = (worst_intervals(program, BASE, ALONE, loading).end for loading in (False, True))
    assert alone == behind


def test_loads_of_nothing_show_that_those_before_have_ended():
    """They end soon, but not before the loads ahead of them; and a pause behind them waits for no more than them."""
    held = BASE.unit_queue_depth + 1 + UNIT_IN_FLIGHT
    loads, nothing = ["LD2 dst_seg=6 len=8192 hi=8192"] * 20, ["LD2 dst_seg=6"] * held
    ends = [
        worst_intervals(assemble("\n".join([*loads, *rest, "CANCEL", *after, "CANCEL", "END"])), BASE, ALONE).points
        for rest, after in (([], []), ([], nothing), (nothing, []))
    ]
    plain, beside, after = (points[-1] for points in ends)
    assert plain <= beside <= plain + 300  # their fetches take turns with the loads
    assert after < plain / 4


def test_bounded_stores_cost_less():
    program = assemble("LD2 dst_seg=6 len=4096 hi=4096\nEND")
    few, any_number = (worst_intervals(program, BASE, Others(1, stores)).end for stores in (4, None))
    assert few < any_number


def test_jobs_of_digits_end_within_their_bound():
    image = caesura.compile(DIGITS, TINY)
    with caesura.open(TINY) as device:
        model = device.load(image)
        _, stats = model.run(random_samples(image, 1, 0)[0])
    for result in stats.jobs:
        insns = [insn for insn in body(image, result.job) if insn.op is not Op.CANCEL]
        bound = worst_intervals(insns, TINY, ALONE).end
        assert result.end - result.start <= bound <= 8 * (result.end - result.start) + 1000


@pytest.mark.parametrize(
    ("name", "interval"),
    [
        ("digits", 500),
        pytest.param("kws_dscnn_int8", 5000, marks=pytest.mark.slow),
        pytest.param("ic_resnet8_int8", 10_000, marks=pytest.mark.slow),
    ],
)
def test_no_pause_takes_longer_than_its_bound(name, interval):
    image = compile_model(network(name), TINY, options=Options(cancel_interval=interval, lv2_limit="all"))
    seed = 20
    halts = random_pauses(image, random_samples(image, 20 if name == "digits" else 4, seed), seed, interval)
    points = image.meta.cancel_points
    assert len([halt for halt in halts if halt.point is not None]) > 20
    for halt in halts:
        bound = halt_bound(image) if halt.point is None else points[halt.point].worst_interval
        assert halt.cycles <= bound, f"seed {seed}: {halt}"
    assert halt_bound(image) <= 24 * max(halt.cycles for halt in halts)
