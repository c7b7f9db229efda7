"""A dynamic batch: ``--batch`` binds it, and 1 is said."""

import json

import numpy as np
import onnx
import pytest

import caesura
from caesura import api, cli
from compiler.frontend import import_model
from sim.model.bus import ModelBus
from tests.support.golden_check import check_model
from tests.support.onnx_models import Net


def dynamic_model() -> onnx.ModelProto:
    net = Net()
    x = net.dq(net.q(net.input((1, 3, 12, 12), "float32"), 0.05, 3), 0.05, 3)
    y = net.dq(net.q(net.conv(x, 0.05, (8, 3, 3, 3)), 0.3, 1), 0.3, 1)
    y = net.node("Flatten", [net.dq(net.q(net.node("GlobalAveragePool", [y]), 0.1), 0.1)])
    model = net.model(net.q(net.node("MatMul", [y, net.weights((8, 10), 1)[0]]), 0.1))
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "batch"
    return model


@pytest.mark.parametrize("batch", [1, 2, 5])
def test_batches_are_bound(batch):
    graph = check_model(dynamic_model(), batch=batch, exact=True)
    assert graph.inputs[0].shape[0] == graph.outputs[0].shape[0] == batch


def test_a_fixed_batch_stays():
    model = dynamic_model()
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 1
    assert import_model(model, batch=4).inputs[0].shape[0] == 1


@pytest.mark.parametrize("options, shape", [((), [1, 10]), (("--batch", "3"), [3, 10])])
def test_run_takes_a_batch(tmp_path, monkeypatch, capsys, options, shape):
    monkeypatch.setattr(api, "open", lambda params, *_, **__: caesura.Device(ModelBus(params)))
    onnx.save(dynamic_model(), tmp_path / "model.onnx")
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(0, 1, (3, 3, 12, 12)).astype(np.float32))
    arguments = [str(tmp_path / "model.onnx"), "--input", str(tmp_path / "x.npy"), "--check", "--json", *options]
    monkeypatch.setattr("sys.argv", ["caesura", "run", *arguments])
    cli.app(standalone_mode=False)
    out, err = capsys.readouterr()
    report = json.loads(out)
    assert report["check"]["ok"]
    assert [output["shape"] for output in report["outputs"].values()] == [shape]
    assert ("--batch N" in err) == (not options)
