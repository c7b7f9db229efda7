"""A model that needs the CPU is refused with the way out that the interface has, and runs where that is taken."""

import json

import numpy as np
import onnx
import pytest

import caesura
from benchmarks.figures import Figure, Target
from caesura import api
from caesura.sweep.measure import measure
from caesura.sweep.spec import load_sweep
from sim.model.bus import ModelBus
from tests.support.onnx_models import Net
from tests.system.command import caesura_command

RUN = "to run them on the CPU"


@pytest.fixture
def model(tmp_path):
    net = Net()
    x = net.dq(net.q(net.conv(net.dq(net.input((1, 4, 4, 4)), 0.031), 0.031, (8, 4, 1, 1)), 0.9), 0.9)
    onnx.save(
        net.model(net.q(net.node("CumSum", [x, net.const(2, np.int64)], name="running"), 3.0)), tmp_path / "m.onnx"
    )
    return tmp_path / "m.onnx"


@pytest.fixture(autouse=True)
def no_simulator(monkeypatch):
    monkeypatch.setattr(api, "open", lambda params, *_, **__: caesura.Device(ModelBus(api.resolve(params))))


@pytest.mark.parametrize("command", [["run"], ["compile", "-o", "x.cimg"], ["info"], ["profile"], ["retime"]])
def test_commands_have_an_option(model, command):
    code, out, err = caesura_command(command[0], model, *command[1:])
    assert (code, out) == (2, "") and f"Give --fallback {RUN}" in err
    code, out, err = caesura_command(command[0], "--help")
    assert "--fallback" in out


def test_python_has_an_argument(model):
    with pytest.raises(caesura.CompileError, match=f"Give fallback=True {RUN}"):
        caesura.compile(model)
    with caesura.open("tiny") as device:
        device.load(caesura.compile(model, fallback=True))


def test_scenarios_have_a_key(model, tmp_path):
    text = """name = "x"
time_unit = "cycles"
[models.odd]
onnx = "m.onnx"
[[streams]]
name = "s"
stages = [{model = "odd"}]
arrivals = {kind = "trace", times = [0.0]}
"""
    file = tmp_path / "s.toml"
    file.write_text(text)
    code, _, err = caesura_command("scenario", file)
    assert code == 2 and f"Give fallback = true in [models.odd] {RUN}" in err and "--fallback" not in err
    file.write_text(text.replace('"m.onnx"', '"m.onnx"\nfallback = true'))
    code, out, _ = caesura_command("scenario", file, "--json")
    assert code == 0 and json.loads(out)["preemptions"] == 0


def test_sweeps_have_a_key(model, tmp_path):
    file = tmp_path / "s.toml"
    for told in ("", "fallback = true\n"):
        file.write_text(f'{told}models = ["m.onnx"]\n[machine]\npreset = "tiny"\n')
        (point,) = load_sweep(file)[1]
        figures = measure(point, model.read_bytes())
        if told:
            assert figures["cycles"] > 0
        else:
            assert f"Give fallback = true in the sweep's file {RUN}" in figures["error"]
    file.write_text('fallback = true\nscenarios = ["m.onnx"]\n')
    with pytest.raises(caesura.UsageError, match="scenarios' own files"):
        load_sweep(file)


def test_benchmarks_have_neither(model):
    figure = Figure("f", Target(1, 1), lambda lab: caesura.compile(model))
    assert "fallback" not in figure.row(None).detail["error"]
