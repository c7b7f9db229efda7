"""The schedule of jobs by their estimates, against what the fast model takes, and by hand."""

from types import SimpleNamespace

import pytest

from caesura.model_cycles import model_cycles
from compiler.emission.link import job_schedule
from compiler.emission.link.job_schedule import scheduled_cycles
from compiler.emission.objects.desk import Desk
from compiler.frontend import import_model
from compiler.pipeline import build, lowered, planned_cycles
from compiler.plan.options import Options
from hw.contract.params import preset
from sim.cost import BODY_TO_BODY, prologue_cycles
from tests.support.networks import network

TINY = preset("tiny")
BUDGET = SimpleNamespace(engines=2)
LOAD = prologue_cycles(4096, TINY)


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


def takes(monkeypatch, jobs, after):
    places = [SimpleNamespace(after=one) for one in after]
    monkeypatch.setattr(job_schedule, "job_places", lambda *_: places)
    return scheduled_cycles(jobs, SimpleNamespace(constants=b""), BUDGET, TINY)


def body(cycles):
    return cycles + BODY_TO_BODY


def test_loads_run_ahead_of_bodies(monkeypatch):
    jobs = [job(0, 0, 5000, 4096), job(0, 1, 5000, 4096)]
    assert takes(monkeypatch, jobs, [0, 0]) == LOAD + 2 * body(5000)


def test_a_load_waits_for_its_window(monkeypatch):
    jobs = [job(0, 0, 5000, 4096), job(0, 1, 5000, 4096)]
    assert takes(monkeypatch, jobs, [0, 1]) == 2 * (LOAD + body(5000))


def test_engines_share_the_memory(monkeypatch):
    jobs = [job(0, 0, 10, 4096), job(1, 0, 10, 4096)]
    assert takes(monkeypatch, jobs, [0, 0]) == 2 * LOAD + body(10)


def test_engines_take_turns_at_the_memory(monkeypatch):
    """Nobody loads for the layer after next while another engine has nothing for the next."""
    jobs = [job(engine, step, 10_000, 4096) for engine in (0, 1) for step in range(3)]
    assert takes(monkeypatch, jobs, [0] * 6) == 2 * LOAD + 3 * body(10_000)


def test_a_layer_waits_for_the_one_before_it_on_all_engines(monkeypatch):
    jobs = [job(0, 0, 10), job(1, 0, 5000), job(0, 2, 70)]
    assert takes(monkeypatch, jobs, [0, 0, 0]) == body(5000) + body(70)


def test_what_a_body_loads_itself_has_no_prologue(monkeypatch):
    assert takes(monkeypatch, [job(0, 0, 10, 4096, own=True)], [0]) == body(10)


def test_no_jobs_take_no_time(monkeypatch):
    assert takes(monkeypatch, [], []) == 0
