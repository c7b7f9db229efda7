"""What becomes of requests that are late, and of those that more urgent ones push aside."""

import pytest

from caesura.scenario import ScenarioError, parse_scenario, run_scenario, serve
from sim.backends import MODEL
from tests.caesura.scenario.test_real_models import content, stream

LONG, SHORT = "conv_32x16x16_32_k3_s1_p1", "gemm_1x64x64"
MODELS = {"long": {"workload": LONG}, "short": {"workload": SHORT}}
COSTS = {"dump": 1, "restore": 1, "interval": 1}


def served(*streams, mechanisms=None, **how):
    preemption = None if mechanisms is None else {"mechanisms": mechanisms}
    told = content(MODELS, *streams, params={}, preemption=preemption)
    result = serve(parse_scenario(told, "x.toml"), "fcfs", MODEL, check=True, **how)
    assert result.mismatches == []
    return result


def urgent(*arrivals):
    return stream("short", *arrivals, priority=1)


@pytest.mark.parametrize(
    ("mechanisms", "suspended", "killed"),
    [(["wait"], 0, 0), (["dump"], 1, 0), (["kill"], 0, 1), (["wait", "dump"], 1, 0)],
)
def test_a_more_urgent_request_does_what_the_scenario_allows(mechanisms, suspended, killed):
    found = served(stream("long"), urgent(30_000), mechanisms=mechanisms)
    long, short = found.models
    assert (long.suspended, long.killed, long.started_over) == (suspended, killed, killed)
    assert found.outcome.preemptions == suspended + killed
    assert found.result["killed"] == killed and found.result["suspended"] == suspended
    assert found.outcome.checked == 2
    alone = next(one["alone"] for one in found.result["streams"] if one["name"] == "long")
    if killed:
        assert long.mean > alone + 30_000  # all that it had done
    elif suspended:
        assert alone < long.mean < alone + 30_000
    assert (short.mean < 10_000) == (mechanisms != ["wait"])


def test_the_cheapest_is_a_kill_early_and_a_dump_late():
    kills = [
        served(stream("long"), urgent(at), mechanisms=["wait", "dump", "kill"]).models[0].killed for at in (900, 90_000)
    ]
    assert kills == [1, 0]


def test_without_a_table_nothing_is_pushed_aside():
    assert served(stream("long"), urgent(30_000)).outcome.preemptions == 0


def test_late_requests_go_on_or_are_dropped():
    late = {"deadline": 40_000}
    kept = served(stream("long", 0, 1000, **late))
    assert [frame.dropped for frame in kept.outcome.frames] == [None, None]
    assert kept.models[0].met == 0 and kept.models[0].dropped == 0
    dropped = served(stream("long", 0, 1000, **late, late="drop"), stream("short", 90_000))
    assert [frame.dropped is None for frame in dropped.outcome.frames] == [False, False, True]
    assert dropped.result["dropped"] == 2 and dropped.models[0].dropped == 2 and dropped.models[0].mean is None
    assert all(40_000 < frame.dropped < 45_000 for frame in dropped.outcome.frames[:2])
    assert dropped.outcome.checked == 1 and dropped.result["antt"] == pytest.approx(1, abs=0.1)
    assert [one["dropped"] for one in dropped.result["streams"]] == [2, 0]
    assert served(stream("long", **late, late="drop")).result["fairness"] is None  # nothing ended


def test_a_dropped_request_has_no_further_stages(tmp_path):
    """Neither after a model that was aborted, nor after work on the CPU that ended too late."""
    cascade = {
        "name": "c",
        "stages": [{"cpu": "parse", "duration": 1000}, {"model": "long"}, {"cpu": "write", "duration": 50_000}],
        "arrivals": {"kind": "trace", "times": [0]},
        "late": "drop",
    }
    both = ["parse", "write"]
    cases = [(500, ["parse"], False), (30_000, ["parse"], False), (100_000, both, False), (400_000, both, True)]
    for deadline, stages, ends in cases:
        page = tmp_path / "page.html" if deadline == 500 else None
        found = served({**cascade, "deadline": deadline}, stream("short", 90_000), page=page)
        assert [run.stage for run in found.outcome.cpu] == stages
        assert (found.outcome.frames[0].dropped is None) == ends
    assert (tmp_path / "page.html").stat().st_size > 1000


def test_a_closed_loop_goes_on_behind_a_dropped_request():
    loop = {**stream("long", deadline=30_000, late="drop"), "arrivals": {"kind": "closed", "count": 3}}
    found = served(loop)
    assert [round(frame.arrival, -4) for frame in found.outcome.frames] == [0, 30_000, 60_000]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"machine": {"preemption": {}}}, "the synthetic machine needs dump, restore and interval: add them"),
        ({"machine": {"preemption": {**COSTS, "mechanisms": ["kill"]}}}, "kills nothing: leave 'kill' out"),
        ({"streams": [stream("m", deadline=1, late="drop")]}, "stream 'm': the synthetic machine drops nothing"),
    ],
)
def test_the_synthetic_machine_refuses_what_it_cannot(tmp_path, changes, message):
    told = {**content({"m": {"layers": [{"compute": 1}]}}), **changes}
    with pytest.raises(ScenarioError, match=message):
        serve(parse_scenario(told, "x"))
    with pytest.raises(ScenarioError, match="cannot be read"):
        run_scenario(tmp_path / "none.toml")
