"""``caesura admit``: accepted, refused with what mends it, and what no certificate is given for."""

import json

import onnx
import pytest
from typer.testing import CliRunner

import caesura
from caesura.certificate.dump_room import check_dump_room
from caesura.cli import app
from caesura.scenario.file_table import ScenarioError
from tests.caesura.certificate.scenario_file import scenario_file
from tests.caesura.certificate.two_digits import DIGITS, scenario
from tests.support.small_step import small_step


@pytest.fixture(scope="module")
def certificate():
    return caesura.admit(scenario())


def run(tmp_path, *args, **changes):
    return CliRunner().invoke(app, ["admit", str(scenario_file(tmp_path, **changes)), *args])


def test_both_streams_are_accepted(certificate):
    urgent, steady = certificate.responses
    assert certificate.accepted and certificate.refused == []
    assert urgent.response == urgent.blocking + urgent.own + 500
    assert [(part.urgent.name, part.count) for part in steady.interference] == [("urgent", 1)]
    assert steady.blocking == certificate.section > 0
    assert certificate.of("urgent") is urgent


def test_a_storm_comes_near_and_stays_below(certificate):
    for response in certificate.responses:
        found = certificate.storm(response.stream.name, 60)
        assert response.response / 1.5 <= found.response <= response.response


def test_an_early_deadline_is_refused_and_each_remedy_mends_it(certificate):
    late = certificate.of("urgent").response
    found = caesura.admit(scenario(deadline=late - 1_000))
    assert not found.accepted and [one.stream.name for one in found.refused] == ["urgent"]
    assert found.breaking_term("urgent").startswith("its own time, ")
    first, second, *_ = found.remedies("urgent")
    assert first == f"a deadline of {late:,} cycles"
    assert (
        second.startswith(f"blocking of {found.of('urgent').blocking - 1_000:,} cycles at the most")
        and "steady" in second
    )
    assert caesura.admit(scenario(deadline=late)).accepted


def test_a_period_that_is_too_short_is_refused_and_the_one_named_is_enough():
    """So often, the urgent stream leaves nothing for the other."""
    found = caesura.admit(scenario(arrivals={"kind": "periodic", "period": 60_000, "count": 5}))
    assert [one.stream.name for one in found.refused] == ["steady"]
    (remedy,) = [one for one in found.remedies("steady") if one.endswith("for urgent")]
    period = int(remedy.split()[3].replace(",", ""))
    assert period > 60_000
    for change, accepted in ((0, True), (-1, False)):
        arrivals = {"kind": "periodic", "period": period + change, "count": 5}
        assert caesura.admit(scenario(arrivals=arrivals)).accepted == accepted


def test_priorities_are_searched_for():
    """The steady stream has the earlier deadline and the lower priority."""
    given = {"streams__1__deadline": 75_000, "deadline": 180_000}
    assert not caesura.admit(scenario(**given)).accepted
    found = caesura.admit(scenario(**given, certificate__priorities="search"))
    assert found.accepted and found.of("steady").stream.priority > found.of("urgent").stream.priority


def test_dumps_have_room_in_dram_or_nothing_is_promised():
    """What the refusal names is enough, and half of it is not."""
    with pytest.raises(ScenarioError, match="dumps of all of them may need") as refused:
        caesura.admit(scenario(machine__params={"dram_bytes": 512 * 1024}))
    enough = int(str(refused.value).split("dram_bytes = ")[1].split()[0])
    assert enough == 1024 * 1024
    assert caesura.admit(scenario(machine__params={"dram_bytes": enough})).accepted
    params = caesura.resolve("tiny").replace(dram_bytes=128 * 1024)
    image = caesura.compile(DIGITS, params)
    with pytest.raises(ScenarioError, match="the models do not fit in DRAM together"):
        check_dump_room(params, [image] * 3)


# -- the command -------------------------------------------------------------------------------------------------------
def test_the_command_accepts(tmp_path, certificate):
    result = run(tmp_path, "--why", "steady", "--storm", "20")
    assert result.exit_code == 0
    for text in ("accepted", f"{certificate.of('urgent').response:,}", "interference of urgent", "No engine fails"):
        assert text in result.stdout


def test_the_command_refuses_with_exit_code_1(tmp_path):
    result = run(tmp_path, deadline=20_000)
    assert result.exit_code == 1
    assert "urgent is refused: its own time" in result.stdout and "mended by a deadline of" in result.stdout


def test_json_has_everything(tmp_path, certificate):
    result = run(tmp_path, "--json", deadline=20_000)
    found = json.loads(result.stdout)
    assert result.exit_code == 1 and not found["accepted"]
    assert [line["response"] for line in found["streams"]] == [one.response for one in certificate.responses]
    assert found["refused"][0]["stream"] == "urgent" and len(found["refused"][0]["mended_by"]) >= 1
    assert found["section"] == certificate.section


def test_a_stream_that_does_not_exist_is_an_error(tmp_path):
    result = run(tmp_path, "--why", "nobody")
    assert "--why nobody: is no stream with a promise; there are urgent, steady" in str(result.exception)


# -- what no certificate is given for ----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"promise": "none", "streams__1__promise": "none"}, "no stream is promised anything; add promise = 'hard'"),
        ({"machine__preemption": None}, r"\[machine.preemption\] is missing"),
        ({"deadline": None}, "'urgent' is promised its deadline and has none; add deadline"),
        ({"arrivals": {"kind": "poisson", "interval": 9, "count": 5}}, r"poisson\) have no least distance; add police"),
        ({"arrivals": {"kind": "closed", "count": 5}}, r"\(closed\) have no least distance"),
        ({"stages": [{"model": "short"}, {"cpu": "parse", "duration": 5}]}, "has 2 stages; give each model a stream"),
        ({"stages": [{"model": "short", "tokens": 6}]}, "'urgent' has 6 tokens a request; a certificate is"),
        ({"stages": [{"model": "long"}]}, "'urgent' and 'steady' run one model, 'long'.*give it twice"),
        ({"models__short__copies": 2}, "'short' is loaded 2 times; add copies = 1"),
        ({"machine__placed": True, "models__short__engines": 1, "models__long__engines": 1}, "machine.placed lets"),
        ({"machine__devices": 2}, "machine.devices = 2: a certificate is for one device; leave devices out"),
        ({"arrivals": {"kind": "periodic", "period": 0.5, "count": 5}}, "a period of 0.5 is less than a cycle"),
    ],
)  # fmt: skip
def test_what_cannot_be_answered_for_is_refused(changes, told):
    with pytest.raises(ScenarioError, match=told):
        caesura.admit(scenario(**changes))


def test_a_model_that_keeps_a_state_is_refused(tmp_path):
    """Without tokens, too: to begin and to end a conversation takes time that is not in the analysis."""
    onnx.save(small_step(), tmp_path / "step.onnx")
    model = {"onnx": str(tmp_path / "step.onnx"), "sizes": {"past": 7}}
    with pytest.raises(ScenarioError, match="'short' keeps a state, so its requests are conversations"):
        caesura.admit(scenario(models__short=model))


def test_a_model_that_may_run_on_any_engine_is_refused():
    machine = {"machine__preset": "base", "models__long__engines": 1}
    with pytest.raises(ScenarioError, match=r"'long' runs on 1 of 2 engines.*engines = \[0\] in \[models.long\]"):
        caesura.admit(scenario(**machine))


def test_a_stream_without_a_promise_only_stands_in_the_way(certificate):
    found = caesura.admit(scenario(streams__1__promise="none", streams__1__arrivals={"kind": "closed", "count": 5}))
    assert [one.stream.name for one in found.responses] == ["urgent"]
    assert found.of("urgent").response == certificate.of("urgent").response


def test_one_that_is_as_urgent_must_be_policed():
    closed = {"streams__1__promise": "none", "streams__1__arrivals": {"kind": "closed", "count": 5}, "priority": 0}
    found = caesura.admit(scenario(**closed))
    assert not found.accepted and "steady is as urgent or more so" in found.breaking_term("urgent")
    assert caesura.admit(scenario(**closed, streams__1__police={"period": 300_000})).accepted


def test_the_example_is_admitted():
    done = CliRunner().invoke(app, ["admit", "examples/scenarios/certified.toml"], terminal_width=200)
    assert done.exit_code == 0, done.output
    assert "certified on tiny: accepted" in done.output


@pytest.mark.parametrize("more", [(), ("--storm", "3")], ids=["verdicts", "storms"])
def test_eighty_columns_have_room_for_all_tables(more, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    told = run(tmp_path, *more)
    assert told.exit_code == 0 and "…" not in told.output
    for head in ("verdict", "interference", *(["bound over worst"] if more else [])):
        assert head in told.output
