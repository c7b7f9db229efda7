"""``--csv``: the table of a command as comma-separated values, nothing else on standard output."""

import csv
import io
import json

import pytest

from caesura.views.tables import to_csv
from sim.visible_text import visible
from tests.system.command import caesura_command

DIGITS = "examples/digits/digits.onnx"
PAIR = "examples/scenarios/opposing_pair.toml"


def rows_of(out):
    return list(csv.DictReader(io.StringIO(out)))


def test_layers_of_a_run():
    command = ("run", DIGITS, "--backend", "model", "--check")
    code, out, err = caesura_command(*command, "--csv")
    assert code == 0, err
    layers = json.loads(caesura_command(*command, "--json")[1])["layers"]
    found = rows_of(out)
    assert [(row["layer"], int(row["macs"]), int(row["cycles"])) for row in found] == [
        (layer["name"], layer["macs"], layer["cycles"]) for layer in layers
    ]
    assert {row["check"] for row in found} <= {"equal", ""} and len(found) > 2


def test_streams_of_a_scenario_by_policy():
    code, out, err = caesura_command("scenario", PAIR, "--policy", "fcfs", "--policy", "idle_time", "--csv")
    assert code == 0, err
    found = rows_of(out)
    assert [(row["policy"], row["stream"]) for row in found] == [
        (policy, stream) for policy in ("fcfs", "idle_time") for stream in ("convolutions", "matrices")
    ]
    assert all(float(row["mean"]) > 0 and float(row["antt"]) >= 1 for row in found)


@pytest.mark.parametrize(
    "command", [("run", DIGITS), ("bench", "utilisation"), ("scenario", PAIR), ("sweep", "examples/none.toml")]
)
def test_two_forms_at_once_are_refused(command):
    code, out, err = caesura_command(*command, "--json", "--csv")
    assert code == 2 and "give one" in err and not out


def test_a_profile_is_a_second_table():
    code, _, err = caesura_command("run", DIGITS, "--csv", "--profile")
    assert code == 2 and "--json" in err


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"])
def test_text_is_no_formula(name):
    assert to_csv([{name: name, "b": -1}]).splitlines()[1] == f"{visible(chr(39) + name)},-1"
    assert to_csv([{"a": "plain, with comma", "b": None}]) == 'a,b\n"plain, with comma",\n'
