"""A sample of each campaign. ``caesura bench trust`` runs more, and says with which seed to see a failure again."""

import json
import os
import signal
import subprocess
import sys

import pytest

from benchmarks.trust.campaign import ProgressFile, Tally, run_campaign
from benchmarks.trust.campaigns import KINDS
from benchmarks.trust.differential import Mismatch
from benchmarks.trust.front_door import FrontDoorCampaign

SAMPLE = {"hostile": 150, "differential": 150, "frontdoor": 80, "faults": 12, "storms": 8}
LONGER = {"hostile": 3000, "differential": 3000, "frontdoor": 1500, "faults": 300, "storms": 150}


def run(name: str, rounds: int, seed: int, backend: str = "native") -> Tally:
    print(f"campaign {name}, seed {seed}")
    return run_campaign(name, lambda: KINDS[name].make(backend), Tally(seed), seconds=1e9, rounds=rounds)


@pytest.mark.parametrize("name", SAMPLE)
def test_a_sample(name):
    tally = run(name, SAMPLE[name], 10_000_000)
    assert tally.failures == []
    assert (tally.ran, sum(tally.kinds.values())) == (SAMPLE[name], SAMPLE[name])


def test_faults_of_the_fast_model_end_as_those_of_the_rtl():
    rtl, model = (run("faults", 12, 30_000_000, backend) for backend in ("native", "model"))
    assert rtl.failures == model.failures == []
    assert model.kinds == rtl.kinds


@pytest.mark.slow
@pytest.mark.parametrize("name", LONGER)
def test_a_longer_one(name):
    assert run(name, LONGER[name], 20_000_000).failures == []


class Failing:
    """Fails in every fifth round."""

    made = 0

    def __init__(self) -> None:
        Failing.made += 1

    def round(self, seed: int) -> str:
        if seed % 5 == 0:
            raise AssertionError(f"seed {seed}")
        return "fine"

    def close(self) -> None: ...


def test_a_campaign_goes_on_after_failures_and_where_it_stopped(tmp_path):
    path, Failing.made = tmp_path / "progress.json", 0
    for rounds in (7, 12):
        known = ProgressFile(path)
        run_campaign("x", Failing, known.tally("x", 3), seconds=1e9, rounds=rounds, save=known.save)
    tally = ProgressFile(path).tally("x", 3)
    assert (tally.ran, tally.failed, tally.kinds) == (12, 2, {"fine": 10})
    assert tally.failures == [(5, 3, "AssertionError: seed 5"), (10, 10, "AssertionError: seed 10")]
    assert ProgressFile(path).tally("x", 4).ran == 0


def test_the_budget_ends_it():
    assert run_campaign("x", Failing, Tally(1), seconds=0).ran == 0


def test_the_command():
    command = [sys.executable, "-m", "caesura", "bench", "trust", "--campaign", "storms", "--budget", "3s", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    (row,) = json.loads(done.stdout)["rows"]
    assert row["ok"] and row["name"] == "storms" and row["detail"]["ran"] >= 1
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
