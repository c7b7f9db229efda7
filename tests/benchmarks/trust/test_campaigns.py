"""A sample of each campaign. ``caesura bench trust`` runs more, and says with which seed to see a failure again."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from benchmarks.trust.campaign import ProgressFile, Tally, round_seed
from benchmarks.trust.campaigns import KINDS, CampaignKind, run_campaigns
from benchmarks.trust.differential import Mismatch
from benchmarks.trust.front_door import FrontDoorCampaign
from benchmarks.trust.round_process import Asked, run_rounds

SAMPLE = {
    "edges": 1,
    "edges_second": 1,
    "neighbours": 8,
    "hostile": 20,
    "differential": 20,
    "frontdoor": 80,
    "faults": 12,
    "storms": 6,
    "late": 4,
    "residue": 3,
    "exchange": 5,
    "urgent": 6,
    "images": 20,
}
LONGER = {
    "edges": 10,
    "edges_second": 10,
    "neighbours": 200,
    "hostile": 500,
    "differential": 500,
    "frontdoor": 1500,
    "faults": 300,
    "storms": 150,
    "late": 150,
    "residue": 60,
    "exchange": 200,
    "urgent": 200,
    "images": 2000,
}
OWN_SIMULATOR = {"edges_second"}  #: that takes half a minute to compile, for one round
FAILING = "tests.benchmarks.trust.failing:"


def run(name: str, rounds: int, first: int, backend: str = "native") -> Tally:
    return run_rounds(KINDS[name].asked(name, backend), Tally(first), rounds=rounds, seconds=1e9)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in OWN_SIMULATOR else ()) for name in SAMPLE]
)
def test_a_sample(name):
    tally = run(name, SAMPLE[name], 10_000_000)
    assert (tally.broken, tally.failures) == ("", [])
    assert (tally.ran, sum(tally.kinds.values())) == (SAMPLE[name], SAMPLE[name])
    assert KINDS[name].missed(tally, SAMPLE[name]) == []


def test_faults_of_the_fast_model_end_as_those_of_the_rtl():
    rtl, model = (run("faults", 12, 30_000_000, backend) for backend in ("native", "model"))
    assert rtl.failures == model.failures == []
    assert model.kinds == rtl.kinds


@pytest.mark.slow
@pytest.mark.parametrize("name", LONGER)
def test_a_longer_one(name):
    assert run(name, LONGER[name], 20_000_000).failures == []


def failing(what: str, **asked) -> Asked:
    return Asked("x", FAILING + what, "native", 1 << 30, 20.0, **asked)


def test_a_campaign_goes_on_after_failures_and_where_it_stopped(tmp_path):
    path = tmp_path / "progress.json"
    for rounds in (7, 12):
        known = ProgressFile(path)
        run_rounds(failing("fifth"), known.tally("x", 3), rounds=rounds, seconds=1e9, save=known.save)
    tally = ProgressFile(path).tally("x", 3)
    assert (tally.ran, tally.failed, tally.kinds, tally.reached) == (12, 2, {"fine": 10}, {"rounds": 12})
    assert [(one.number, one.kind, one.message) for one in tally.failures] == [
        (number, "check", f"AssertionError: seed {round_seed('x', number)}") for number in (5, 10)
    ]
    assert ProgressFile(path).tally("x", 4).ran == 0


def test_progress_of_other_sources_is_forgotten(tmp_path, monkeypatch):
    path = tmp_path / "progress.json"
    ProgressFile(path).save("x", Tally(3, ran=7))
    assert ProgressFile(path).tally("x", 3).ran == 7
    monkeypatch.setattr("benchmarks.trust.campaign.sources", lambda: "others")
    assert ProgressFile(path).tally("x", 3).ran == 0


def test_a_failure_that_needs_rounds_before_it_names_the_first_of_them():
    alone, not_alone = (
        run_rounds(failing(what), Tally(3), rounds=9, seconds=1e9) for what in ("fifth", "third_in_row")
    )
    assert [one.began for one in alone.failures] == [5, 10]
    assert [(one.number, one.began) for one in not_alone.failures] == [(5, 3), (7, 5), (9, 7), (11, 9)]


@pytest.mark.parametrize(
    ("what", "kind", "said"),
    [
        ("dies", "died", "the process of the round died (exit code -9"),
        ("eats", "died", "MemoryError"),
        ("hangs", "stuck", "the round has not ended after 2 s"),
        ("raises", "error", "KeyError"),
    ],
)
def test_whatever_ends_a_round_is_told_with_its_number(what, kind, said):
    asked = Asked("x", FAILING + what, "native", 1 << 30, 2.0)
    tally = run_rounds(asked, Tally(4), rounds=3, seconds=1e9)
    (one,) = tally.failures
    assert (tally.ran, tally.kinds, one.number, one.kind) == (3, {"fine": 2}, 5, kind)
    assert said in one.message


def test_what_cannot_begin_is_no_success():
    tally = run_rounds(failing("nothing_of_this_name"), Tally(0), rounds=3, seconds=1e9)
    assert tally.ran == 0 and "nothing_of_this_name" in tally.broken


def test_too_many_failures_end_it():
    assert run_rounds(failing("fifth", failures=1), Tally(3), rounds=100, seconds=1e9).ran == 3


def test_the_budget_ends_it():
    assert run_rounds(failing("fifth"), Tally(1), rounds=5, seconds=0).ran == 0


def test_builds_are_part_of_the_budget():
    """The build is completed, as other campaigns need it, too, and no time is left for rounds."""
    began = time.monotonic()
    tally = run_rounds(failing("built_slowly"), Tally(1), rounds=3, seconds=0.3)
    assert (tally.ran, tally.broken, tally.seconds) == (0, "", 0) and time.monotonic() - began >= 0.6
    assert run_rounds(failing("built_slowly"), Tally(1), rounds=3, seconds=1e9).ran == 3


@pytest.mark.parametrize(
    ("must_hit", "rounds", "said"),
    [
        ({}, 4, ""),
        ({"rounds": 4}, 4, ""),
        ({"neighbours": 1}, 4, "did not reach 'neighbours' 1 times, but 0"),
        ({"neighbours": 1}, 3, ""),  # a sample
    ],
)
def test_a_run_that_reached_too_little_fails(monkeypatch, must_hit, rounds, said):
    monkeypatch.setitem(KINDS, "x", CampaignKind(FAILING + "fifth", 4, 4, 4, must_hit))
    (row,) = run_campaigns("native", only=["x"], first=6, rounds=rounds)
    assert row.ok is (not said) and said in row.detail["explanation"]


def test_one_round_does_not_pass(monkeypatch):
    monkeypatch.setitem(KINDS, "x", CampaignKind(FAILING + "slow", 100, 4, 4))
    (row,) = run_campaigns("native", only=["x"], first=6, seconds=0.5)
    assert not row.ok and row.value == 0 and "did not reach 100 rounds" in row.detail["explanation"]


def test_the_command():
    command = [sys.executable, "-m", "caesura", "bench", "trust", "--campaign", "storms", "--budget", "8s", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    (row,) = json.loads(done.stdout)["rows"]
    assert row["name"] == "storms" and row["value"] == 0 and row["detail"]["ran"] < 100
    assert done.returncode == 1 and "did not reach 100 rounds" in row["detail"]["explanation"]
    wrong = subprocess.run([*command, "--campaign", "x"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 2 and "no campaign named 'x'" in wrong.stderr


def test_a_file_that_hangs_or_kills_the_process_is_told(monkeypatch):
    campaign = FrontDoorCampaign("native")
    try:
        campaign.round(1)
        first = campaign.process_id
        assert first is not None
        os.kill(first, signal.SIGSTOP)  # as a file that never ends
        monkeypatch.setattr("benchmarks.trust.front_door.PATIENCE", 0.2)
        with pytest.raises(Mismatch, match="died, or took too long"):
            campaign.round(2)
        monkeypatch.undo()
        campaign.round(2)  # by a new process
        second = campaign.process_id
        assert second is not None and second != first
        os.kill(second, signal.SIGKILL)  # as a file that takes the interpreter down
        with pytest.raises(Mismatch, match="died, or took too long"):
            campaign.round(3)
    finally:
        campaign.close()
