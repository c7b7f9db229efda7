"""Windows in the way with which an inference ends first."""

from types import SimpleNamespace

from compiler.emission.link import job_windows
from compiler.emission.link.job_schedule import scheduled_cycles
from compiler.plan.memory.window_space import WAYS
from hw.contract.params import preset

BASE = preset("base")
KIB = 1024


def job(engine, step, cycles, size):
    return SimpleNamespace(
        engine=engine, step=step, cycles=cycles, window_data=bytes(size), own_loads=False, staged=False, ahead=None
    )


def windows(jobs, lv2):
    """Windows of jobs on two engines, without tensors, where each engine has half of ``lv2``."""
    budget = SimpleNamespace(placed=False, engines=2, windows=lv2 // 2, staging_end=0)
    placement = SimpleNamespace(sizes=dict.fromkeys(range(8), 0), by_tensor={})
    found = job_windows.job_windows(jobs, placement, budget, BASE)
    cycles = scheduled_cycles(jobs, [one.after for one in found], 2, BASE)
    return found, cycles, job_windows.linked_cycles(jobs, placement, budget, BASE)


def in_one_way(monkeypatch, jobs, lv2):
    monkeypatch.setattr(job_windows, "WAYS", WAYS[:1])
    found, cycles, _ = windows(jobs, lv2)
    monkeypatch.undo()
    return found, cycles


def test_an_engine_with_more_weights_takes_what_the_other_leaves(monkeypatch):
    """Apart, the second engine's windows wait for each other while a long job runs, though the first needs little."""
    jobs = [
        job(engine, step, 30_000 if step == 0 else 500, (60, 4)[engine == 0] * KIB)
        for step in range(8) for engine in (0, 1)
    ]  # fmt: skip
    usual, slow = in_one_way(monkeypatch, jobs, 240 * KIB)
    found, fast, told = windows(jobs, 240 * KIB)
    assert told == fast < 0.95 * slow
    assert max(one.start for one, of in zip(usual, jobs, strict=True) if of.engine == 0) < 120 * KIB
    assert min(one.start for one, of in zip(found, jobs, strict=True) if of.engine == 1) < 120 * KIB


def test_where_loads_do_not_wait_windows_stay_in_the_usual_way(monkeypatch):
    jobs = [job(engine, step, 90_000, 60 * KIB) for step in range(12) for engine in (0, 1)]
    usual, slow = in_one_way(monkeypatch, jobs, 240 * KIB)
    assert windows(jobs, 240 * KIB)[:2] == (usual, slow)
