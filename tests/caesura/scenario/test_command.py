"""``caesura scenario``: policies of one's own, several at once, and the backend that models need."""

import json
import shutil
from pathlib import Path

import pytest

from caesura.api import UsageError
from caesura.commands.scenario import scenario
from caesura.scenario import load_scenario
from caesura.scenario.backends import backend_of

ROOT = Path(__file__).parents[3]
SCENARIOS = ROOT / "examples" / "scenarios"


@pytest.mark.slow
def test_a_policy_of_ones_own_beside_others(tmp_path, capsys):
    mine = shutil.copy(ROOT / "examples" / "policies" / "least_memory.py", tmp_path / "mine.py")
    policies = ["fcfs", f"{mine}:LeastMemory", "idle_time"]
    file = SCENARIOS / "mixed_reality.toml"
    scenario(file, policies, as_json=True)
    results = json.loads(capsys.readouterr().out)
    assert [one["policy"] for one in results] == policies
    scenario(file, policies)
    assert "mory" in capsys.readouterr().out  # the end of the name: its middle may have no room
    with pytest.raises(UsageError, match="one --policy"):
        scenario(file, policies, trace=tmp_path / "trace.json")


@pytest.mark.parametrize(
    "content, message",
    [(None, "no such Python file"), ("class A: pass", "classes are A"), ("1/0", "ZeroDivisionError")],
)
def test_a_file_without_the_policy(tmp_path, content, message):
    path = tmp_path / "mine.py"
    if content is not None:
        path.write_text(content)
    with pytest.raises(UsageError, match=message):
        scenario(SCENARIOS / "driving.toml", [f"{path}:Edf"], as_json=True)


def test_the_backend_follows_from_the_models():
    backends = {name: backend_of(load_scenario(SCENARIOS / f"{name}.toml")) for name in ("driving", "small_models")}
    assert backends == {"driving": "synthetic", "small_models": "model"}
