"""The float ends of a model run on the CPU without being allowed to, through every interface, which tells what does."""

import json

import numpy as np
import onnx
import pytest

import caesura
from caesura import api
from caesura.sweep.measure import measure
from caesura.sweep.spec import load_sweep
from compiler import golden_outputs
from sim.model.bus import ModelBus
from tests.support.onnx_models import Net
from tests.system.command import caesura_command


@pytest.fixture
def model(tmp_path):
    net = Net()
    x = net.node("Mul", [net.input((1, 4, 8, 8), "float32"), net.const(0.5, np.float32)], name="scaled")
    x = net.dq(net.q(x, 0.031), 0.031)
    x = net.dq(net.q(net.conv(x, 0.031, (8, 4, 1, 1)), 0.9), 0.9)
    x = net.node("ReduceMean", [x], name="mean", axes=[2, 3])
    x = net.node("Reshape", [x, net.const([1, 8], np.int64)], name="flat")
    onnx.save(net.model(net.node("Sigmoid", [x], name="chance"), dtype="float32"), tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


@pytest.fixture(autouse=True)
def no_simulator(monkeypatch):
    monkeypatch.setattr(api, "open", lambda params, *_, **__: caesura.Device(ModelBus(api.resolve(params))))


def test_steps_are_told_with_nodes_reason_and_cycles(model):
    head, tail = caesura.cpu_steps(caesura.compile(model))
    assert head.nodes == ("scaled",) and "before the first 8-bit" in head.reason
    assert tail.nodes == ("mean", "flat", "chance")
    assert "behind the last 8-bit" in tail.reason
    assert tail.cycles > 1000 and f"{tail.cycles:,} cycles" in str(tail) and "nodes (" in str(tail)


def test_session_and_run_time(model):
    image = caesura.compile(model)
    sample = caesura.random_samples(image, 1, 0)[0]
    (wanted,) = golden_outputs(model, sample).values()
    with caesura.open("tiny") as device:
        loaded = device.load(image)
        outputs, stats = loaded.run(sample)
        assert stats.host == sum(step.cycles for step in caesura.cpu_steps(image))
        results = caesura.Runtime(device).submit(loaded, sample).result()
    for found in (outputs, results):
        np.testing.assert_allclose(next(iter(found.values())), wanted, rtol=1e-4, atol=1e-6)


def test_commands_name_them(model, tmp_path):
    code, out, _ = caesura_command("compile", model, "-o", tmp_path / "m.cimg")
    told = " ".join(out.split())
    assert code == 0
    assert told.count("on the CPU: ") == 2 and "behind the last 8-bit tensor; 3 nodes (mean, flat, chance), " in told
    _, out, _ = caesura_command("compile", model, "-o", tmp_path / "m.cimg", "--json")
    assert [step["cycles"] > 0 for step in json.loads(out)["cpu_steps"]] == [True, True]
    _, out, _ = caesura_command("run", model, "--json", "--check")
    report = json.loads(out)
    assert report["check"]["ok"] and len(report["host_steps"]) == 2 and "Sigmoid 'chance'" in report["host_steps"][1]
    _, out, _ = caesura_command("info", tmp_path / "m.cimg")
    assert "Sigmoid" in out and "on the" in out


def test_scenarios_and_sweeps(model, tmp_path):
    (tmp_path / "s.toml").write_text(
        'name = "x"\ntime_unit = "cycles"\n[models.ends]\nonnx = "m.onnx"\n[[streams]]\nname = "s"\n'
        'stages = [{model = "ends"}]\narrivals = {kind = "trace", times = [0.0]}\n'
    )
    code, _, err = caesura_command("scenario", tmp_path / "s.toml", "--json")
    assert code == 0, err
    (tmp_path / "sweep.toml").write_text('models = ["m.onnx"]\n[machine]\npreset = "tiny"\n')
    (point,) = load_sweep(tmp_path / "sweep.toml")[1]
    assert measure(point, model.read_bytes())["cycles"] > 0
