"""``caesura serve``: a scenario of one's own models, or models alone, and a table with a line for each."""

import csv
import io
import json
import re
import shutil

import numpy as np
import pytest
import typer

import caesura
from caesura.api import UsageError
from caesura.commands.scenario import scenario as scenario_command
from caesura.scenario import Closed, MachineSpec, ModelSpec, Scenario, ScenarioError, StageSpec, Stream, closed_loops
from sim.backends import MODEL
from sw.runtime.model_data import ModelData
from tests.support.networks import DIGITS
from tests.system.command import caesura_command

SCENARIO = """
name = "tenants"
time_unit = "us"

[machine]
preset = "tiny"
params = { engines = 2 }

[machine.preemption]
mechanisms = ["dump", "kill"]

[models.digits]
onnx = "digits.onnx"
engines = [1]
inputs = "digits.npz"
outputs = "out"

[models.small]
workload = "gemm_1x64x64"
engines = 1

[[streams]]
name = "digits"
stages = [{ model = "digits" }]
arrivals = { kind = "closed", count = 4 }
deadline = 1000

[[streams]]
name = "small"
stages = [{ model = "small" }]
arrivals = { kind = "periodic", period = 5, count = 3 }
"""


@pytest.fixture
def file(tmp_path):
    shutil.copy(DIGITS, tmp_path / "digits.onnx")
    shutil.copy(DIGITS.parent / "digits_samples.npz", tmp_path / "digits.npz")
    path = tmp_path / "tenants.toml"
    path.write_text(SCENARIO)
    return path


def run(*arguments):
    return caesura_command("serve", *arguments)


def test_a_file_is_served_with_a_line_for_each_model(file, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    code, out, err = run(file, "--check", "--chart", "--trace", file.parent / "trace.json")
    assert code == 0, err
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in out.splitlines() if line.startswith("│")]
    assert [row[:3] for row in rows] == [["digits", "4", "1"], ["small", "3", "0"]]
    assert "100.0%" in rows[0] and " met " in out and "killed" not in out
    assert "outputs: 7 of 7 compared with those of the models alone: all equal" in out
    assert re.search(r"engine 1 .*D", out) and (file.parent / "trace.json").stat().st_size
    assert len(list((file.parent / "out").iterdir())) == 4


def test_json_and_csv_say_the_same(file):
    result = json.loads(run(file, "--json")[1])
    rows = list(csv.DictReader(io.StringIO(run(file, "--csv")[1])))
    assert [row["model"] for row in rows] == [one["model"] for one in result["models"]] == ["digits", "small"]
    assert result["models"][0]["engines"] == [1] and rows[0]["engines"] == "1"
    assert float(rows[1]["p99"]) == result["models"][1]["p99"]
    assert result["checked"] < 7 and result["mismatches"] == []  # only the first samples of a file ran alone


def test_models_alone_are_served_in_closed_loops(tmp_path):
    options = caesura.Options(lv2_limit=40_000)
    params = caesura.machine("tiny", changes=["engines=2"])
    caesura.compile(DIGITS, params, engines=1, options=options).save(tmp_path / "other.cimg")
    flags = ("--engines", "1", "--lv2-limit", "50000", "--requests", "3", "--json")
    result = json.loads(run(DIGITS, tmp_path / "other.cimg", *flags)[1])
    assert [(one["model"], one["engines"], one["requests"]) for one in result["models"]] == [
        ("digits", [0], 3), ("other", [1], 3),
    ]  # fmt: skip
    assert 40_000 < result["models"][0]["lv2_bytes"] <= 50_000
    code, _, err = run(DIGITS, tmp_path / "other.cimg", "--preset", "base")
    assert code == 2 and "model 'other': " in err and "not for 'base'" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("tenants.toml", "digits.onnx"), "a scenario file has its models in it: give it alone"),
        (("tenants.toml", "--engines", "2", "--requests", "3"), "leave --engines, --requests out"),
        (("digits.onnx", "digits.onnx"), "two models are called 'digits': give files of different names"),
        (("digits.onnx", "--json", "--chart"), "--chart draws for people"),
        (("digits.onnx", "--backend", "synthetic"), "caesura serve runs models, which backend 'synthetic' has not"),
        (("digits.onnx", "--placed", "--engines", "2"), "is placed on all engines of the machine, and has engines"),
        (("digits.onnx", "--batch", "3"), "model 'digits': batch = 3 is for a dynamic one"),
        (("none.onnx",), "none.onnx"),
        (("layers.toml",), "model 'm' has only layers with durations: caesura scenario runs it"),
        (("tenants.toml", "--policy", "best"), "no policy named 'best'"),
        (("tenants.toml", "--set", "engines=1"), "engines = [1]: tiny has 1, numbered from 0 to 0; name fewer"),
    ],
)
def test_errors_name_the_way_out(file, arguments, message):
    (file.parent / "layers.toml").write_text(
        """name = "x"
[models.m]
layers = [{ compute = 1 }]
[[streams]]
name = "s"
stages = [{ model = "m" }]
arrivals = { kind = "closed", count = 1 }"""
    )
    given = [file.parent / one if "." in one else one for one in arguments]
    code, _, err = run(*given)
    assert code == 2 and message in " ".join(err.split()), err


def test_wrong_outputs_end_with_exit_code_1(file, monkeypatch, capsys):
    fetch, runs = ModelData.fetch, []

    def spoiled(self):
        runs.append(1)
        outputs = {name: value.copy() for name, value in fetch(self).items()}
        outputs[next(iter(outputs))].flat[0] += len(runs) == 5  # two models run alone twice
        return outputs

    monkeypatch.setattr(ModelData, "fetch", spoiled)
    with pytest.raises(typer.Exit) as ended:
        scenario_command(file)
    assert ended.value.exit_code == 1
    assert "outputs are NOT those of the models alone" in capsys.readouterr().out
    runs.clear()
    code, out, _ = run(file)
    assert code == 1 and "1 DIFFER" in out


def test_python_serves_the_same(tmp_path):
    models = {"digits": ModelSpec(onnx=DIGITS, engines=1), "twin": ModelSpec(onnx=DIGITS, engines=1)}
    loops = closed_loops(models, MachineSpec(params={"engines": 2}), requests=2)
    served = caesura.serve(loops, "round_robin", MODEL, check=True)
    assert isinstance(served, caesura.Served) and served.mismatches == []
    assert [(one.model, one.engines, one.requests) for one in served.models] == [("digits", (0,), 2), ("twin", (1,), 2)]
    one = Stream(
        name="s", stages=[StageSpec(model="digits")], arrivals=Closed(kind="closed", count=2), deadline=1.0, late="drop"
    )
    np.savez(tmp_path / "x.npz", input=np.zeros((3, 1, 8, 8), np.float32))
    spec = ModelSpec(onnx=DIGITS, inputs=["x.npz"], outputs="out")
    dropped = caesura.serve(Scenario(name="late", models={"digits": spec}, streams=[one]), folder=tmp_path)
    assert dropped.models[0].dropped == 0 and len(list((tmp_path / "out").iterdir())) == 2  # 1 ms is long
    with pytest.raises(UsageError, match="cannot run scenarios"):
        caesura.serve(loops, backend="fpga")
    with pytest.raises(ScenarioError, match="cannot be read"):
        caesura.serve(tmp_path / "none.toml")
