"""The schedule of jobs by their estimates, against what the fast model takes, and by hand."""

from types import SimpleNamespace

import pytest

from caesura.model_cycles import model_cycles
from compiler.emission.link.job_schedule import scheduled_cycles
from compiler.emission.objects.desk import Desk
from compiler.frontend import import_model
from compiler.pipeline import build, lowered, planned_cycles
from compiler.plan.options import Options
from hw.contract.params import preset
from sim.cost import BODY_TO_BODY, prologue_cycles
from tests.support.networks import network

TINY = preset("tiny")
LOAD = prologue_cycles(4096, TINY, engines=2)


@pytest.mark.parametrize("name", ["digits", "kws_dscnn_int8"])
@pytest.mark.parametrize("limit", [0, 40_000, 24_576])
def test_it_is_near_what_the_model_takes(name, limit):
    graph = import_model(network(name), name=name)
    with Desk(1) as desk:
        image, plan = build(graph, TINY, Options(lv2_limit=limit), desk=desk)
        cycles = planned_cycles(plan, lowered(graph, plan), desk)
    assert cycles == pytest.approx(model_cycles(image), rel=0.08)  # each instruction counts its start, also if it waits


def job(engine, step, cycles, size=0, own=False):
    return SimpleNamespace(engine=engine, step=step, cycles=cycles, window_data=bytes(size), own_loads=own)


def takes(jobs, after):
    return scheduled_cycles(jobs, after, 2, TINY)


def body(cycles):
    return cycles + BODY_TO_BODY


def test_loads_run_ahead_of_bodies():
    jobs = [job(0, 0, 5000, 4096), job(0, 1, 5000, 4096)]
    assert takes(jobs, [0, 0]) == LOAD + 2 * body(5000)


def test_a_load_waits_for_its_window():
    jobs = [job(0, 0, 5000, 4096), job(0, 1, 5000, 4096)]
    assert takes(jobs, [0, 1]) == 2 * (LOAD + body(5000))


def test_a_load_waits_for_a_slot():
    jobs = [job(0, step, 5000, 4096) for step in range(TINY.job_slots + 1)]
    short = [job(0, step, 10, 4096) for step in range(TINY.job_slots + 1)]
    assert takes(jobs, [0] * len(jobs)) == LOAD + len(jobs) * body(5000)
    jobs[0] = job(0, 0, 40 * LOAD, 4096)  # the last load begins when it has ended
    assert takes([jobs[0], *short[1:]], [0] * len(jobs)) == LOAD + body(40 * LOAD) + LOAD + body(10)


def test_engines_share_the_memory():
    jobs = [job(0, 0, 10, 4096), job(1, 0, 10, 4096)]
    assert takes(jobs, [0, 0]) == 2 * LOAD + body(10)


def test_engines_take_turns_at_the_memory():
    """Nobody loads for the layer after next while another engine has nothing for the next."""
    jobs = [job(engine, step, 10_000, 4096) for engine in (0, 1) for step in range(3)]
    assert takes(jobs, [0] * 6) == 2 * LOAD + 3 * body(10_000)


def test_a_layer_waits_for_the_one_before_it_on_all_engines():
    jobs = [job(0, 0, 10), job(1, 0, 5000), job(0, 2, 70)]
    assert takes(jobs, [0, 0, 0]) == body(5000) + body(70)


def test_what_a_body_loads_itself_has_no_prologue():
    assert takes([job(0, 0, 10, 4096, own=True)], [0]) == body(10)


def test_no_jobs_take_no_time():
    assert takes([], []) == 0
