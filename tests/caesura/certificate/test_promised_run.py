"""Scenarios run under their certificates: clients are policed, promises reported, and what contradicts is refused."""

import json

import pytest
from typer.testing import CliRunner

import caesura
from caesura.api import UsageError
from caesura.cli import app
from caesura.scenario import rtl
from caesura.scenario.file_table import ScenarioError
from sw.admission import TokenBucket
from sw.runtime import RequestRunner
from tests.caesura.certificate.scenario_file import scenario_file
from tests.caesura.certificate.two_digits import scenario

#: A client that sends 20 times as often as it may, while the other stream has a request.
STORM = {
    "arrivals": {"kind": "trace", "times": [3_000 + 1_000 * number for number in range(20)]},
    "police": {"period": 150_000},
    "streams__1__arrivals": {"kind": "periodic", "period": 300_000, "count": 1},
}
FEW = {"arrivals": {"kind": "sporadic", "period": 150_000, "jitter": 500, "count": 2, "start": 3_000}} | {
    "streams__1__arrivals": {"kind": "periodic", "period": 300_000, "count": 1}
}


def served(**changes):
    return caesura.serve(scenario(**changes), certified=True)


def run(tmp_path, *args, **changes):
    return CliRunner().invoke(
        app, ["scenario", str(scenario_file(tmp_path, **changes)), "--certified", *args], terminal_width=200
    )


def without_policing(patch):
    patch.setattr(TokenBucket, "admit", lambda self, cycle: cycle)


@pytest.fixture(scope="module")
def few():
    return served(**FEW)


# -- policing ----------------------------------------------------------------------------------------------------------
def test_a_client_that_sends_too_often_costs_its_own_stream_alone():
    urgent, steady = served(**STORM).promises
    assert urgent.deferred == 19 and steady.deferred == 0
    assert urgent.kept and steady.kept
    assert urgent.worst <= urgent.bound < 2_000_000 < urgent.worst_from_arrival
    assert steady.worst == steady.worst_from_arrival <= steady.bound


def test_without_policing_the_storm_breaks_the_promise_of_the_other_stream(monkeypatch):
    without_policing(monkeypatch)
    _, steady = served(**STORM).promises
    assert steady.violated == 1 and steady.worst > steady.bound and not steady.kept


def test_who_keeps_to_its_rate_is_not_deferred(few):
    assert [(one.requests, one.deferred, one.violated) for one in few.promises] == [(2, 0, 0), (1, 0, 0)]
    assert few.result["policy"] == "fcfs" and few.outcome.preemptions == 1
    rows = few.result["promises"]
    assert [row["stream"] for row in rows] == ["urgent", "steady"] and all(row["kept"] for row in rows)
    assert all(0 < row["worst_over_bound"] == round(row["worst"] / row["bound"], 3) <= 1 for row in rows)


def test_bounds_are_those_of_the_certificate(few):
    certificate = caesura.admit(scenario(**FEW))
    assert [one.bound for one in few.promises] == [one.response for one in certificate.responses]


def test_bodies_may_take_as_long_as_their_bounds(monkeypatch):
    found, loaded, load = caesura.admit(scenario(**FEW)), [], rtl.load_models

    def loading(*args):
        loaded.append(load(*args))
        return loaded[-1]

    monkeypatch.setattr(rtl, "load_models", loading)
    served(**FEW)
    for stream, model in (("urgent", "short"), ("steady", "long")):
        limits = [one[model].loaded(0).cycle_limits for one in loaded if model in one]
        assert limits and all(each == list(found.body_limits[stream]) for each in limits)


def test_a_stream_without_a_promise_is_best_effort():
    (urgent,) = served(
        **FEW | {"streams__1__promise": "none", "streams__1__arrivals": {"kind": "closed", "count": 4}}
    ).promises
    assert urgent.stream == "urgent" and urgent.kept


def test_priorities_that_were_searched_for_are_those_of_the_run():
    """The steady stream has the earlier deadline; by the file it has the lower priority."""
    changes = {"streams__1__deadline": 75_000, "deadline": 180_000, "certificate__priorities": "search"}
    changes |= {"arrivals": FEW["arrivals"] | {"start": 0, "jitter": 0, "count": 1}}
    changes |= {"streams__1__arrivals": {"kind": "periodic", "period": 300_000, "count": 1, "start": 2_000}}
    found = served(**changes)
    assert all(one.kept for one in found.promises)
    assert {run.stream: run.suspended for run in found.outcome.requests} == {"urgent": 1, "steady": 0}


def test_a_stream_of_which_a_request_fails_is_best_effort_and_others_go_on(monkeypatch):
    make_way = RequestRunner._make_way

    def failing(self, request):
        if request.stream == "urgent" and request.number == 1:
            raise RuntimeError("its inputs are no arrays")
        make_way(self, request)

    monkeypatch.setattr(RequestRunner, "_make_way", failing)
    found = served(**FEW | {"arrivals": FEW["arrivals"] | {"count": 3}})
    urgent, steady = found.promises
    assert (urgent.requests, urgent.failed, urgent.demoted) == (3, 1, "its inputs are no arrays")
    assert not urgent.kept and steady.kept and urgent.worst > 0
    assert found.result["dropped"] == 1


# -- what is refused ---------------------------------------------------------------------------------------------------
def test_a_scenario_that_is_refused_does_not_run():
    with pytest.raises(caesura.PromiseRefused, match="urgent is refused: its own time, ") as error:
        served(**FEW | {"deadline": 20_000})
    assert [one.stream.name for one in error.value.certificate.refused] == ["urgent"]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"machine__preemption": {"mechanisms": ["dump", "kill"]}}, r"mechanisms = \['dump', 'kill'\]: certificates"),
        ({"machine__preemption": {"mechanisms": ["wait"]}}, "with a dump of who is in the way, and with nothing else"),
        (
            {"machine__layers_per_decision": 2},
            "layers_per_decision = 2: certificates count with decisions on one",
        ),
        ({"late": "drop"}, "stream 'urgent': late = 'drop' aborts requests, at the cost of others"),
    ],
)
def test_what_the_scenario_has_that_contradicts_is_refused(changes, told):
    with pytest.raises(ScenarioError, match=told):
        served(**changes)


@pytest.mark.parametrize(
    ("policy", "backend", "told"),
    [("idle_time", "model", "'idle_time' is not covered by certificates"), (None, "synthetic", "choose a backend")],
)
def test_what_the_caller_asks_for_that_contradicts_is_refused(policy, backend, told):
    with pytest.raises(UsageError, match=told):
        caesura.serve(scenario(), policy, backend, certified=True)


# -- the command -------------------------------------------------------------------------------------------------------
def test_the_command_tells_how_promises_were_kept(tmp_path):
    result = run(tmp_path, **FEW)
    assert result.exit_code == 0, result.output
    assert "two digits under fcfs" in result.stdout and "they hold until an engine fails" in result.stdout
    for head in ("bound", "worst", "worst over bound", "worst from arrival", "deferred", "violated"):
        assert all(word in result.stdout for word in head.split())  # headings take several lines in 80 columns


def test_the_command_ends_with_1_if_a_promise_was_not_kept(tmp_path, monkeypatch):
    without_policing(monkeypatch)
    result = run(tmp_path, "--json", **STORM)
    steady = json.loads(result.stdout)["promises"][1]
    assert result.exit_code == 1 and steady["violated"] == 1 and not steady["kept"]
    assert f"steady: 1 of 1 requests took longer than their bound of {steady['bound']:,} cycles" in result.stderr


@pytest.mark.parametrize("form", [[], ["--json"]], ids=["table", "json"])
def test_the_command_tells_what_admit_tells_of_a_scenario_that_is_refused(tmp_path, form):
    result = run(tmp_path, *form, **FEW | {"deadline": 20_000})
    assert result.exit_code == 1
    if form:
        assert json.loads(result.stdout)["refused"][0]["stream"] == "urgent"
    else:
        assert "urgent is refused: its own time" in result.stdout and "mended by a deadline of" in result.stdout


def test_the_command_takes_one_policy(tmp_path):
    result = run(tmp_path, "--policy", "fcfs", "--policy", "idle_time")
    assert "certificates are for fcfs: leave --policy out" in str(result.exception)
