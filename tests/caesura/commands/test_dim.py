"""Dynamic dimensions beside the batch: ``--dim`` gives one a size, and what has no size is refused with that advice."""

import json

import numpy as np
import onnx
import pytest

import caesura
from caesura import api
from sim.model.bus import ModelBus
from tests.support.float_nets import FloatNet
from tests.support.onnx_models import Net
from tests.system.command import caesura_command


@pytest.fixture(autouse=True)
def no_simulator(monkeypatch):
    monkeypatch.setattr(api, "open", lambda params, *_, **__: caesura.Device(ModelBus(api.resolve(params))))


@pytest.fixture
def model(tmp_path):
    net = Net()
    x = net.dq(net.input((1, 4, 16)), 0.05)
    made = net.model(net.q(net.node("Relu", [net.conv(x, 0.05, (8, 4, 3), pads=[1, 1])]), 0.2))
    for value in (*made.graph.input, *made.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "N"
        value.type.tensor_type.shape.dim[2].dim_param = "seq"
    onnx.save(made, tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


@pytest.mark.parametrize(("options", "shape"), [(["--batch", "3"], [3, 8, 24]), (["--dim", "N=2"], [2, 8, 24])])
def test_run_takes_a_length(model, tmp_path, options, shape):
    code, out, err = caesura_command("run", model, "--dim", "seq=24", *options, "--check", "--json")
    report = json.loads(out)
    assert (code, err) == (0, "") and report["check"]["ok"]
    assert [output["shape"] for output in report["outputs"].values()] == [shape]


@pytest.mark.parametrize("command", [["compile", "-o", "{folder}/m.cimg"], ["info"], ["profile"], ["retime"]])
def test_other_commands_take_it_too(model, tmp_path, command):
    arguments = [one.format(folder=tmp_path) for one in command[1:]]
    code, _, err = caesura_command(command[0], model, *arguments)
    assert code == 2 and "m.onnx: input 'x' has a dynamic dimension 2 ('seq'); give its size, --dim seq=N" in err
    code, out, _ = caesura_command(command[0], model, "--dim", "seq=10", *arguments)
    assert code == 0 and out


def test_the_advice_of_other_interfaces(model, tmp_path):
    with pytest.raises(caesura.CompileError, match=r"give its size, sizes={'seq': N}, or export .*caesura\.dynamic"):
        caesura.compile(model)
    assert caesura.compile(model, sizes={"seq": 5}).meta.inputs[0].shape == [1, 4, 5]
    (tmp_path / "s.toml").write_text(
        'name = "x"\ntime_unit = "cycles"\n[models.m]\nonnx = "m.onnx"\n[[streams]]\nname = "s"\n'
        'stages = [{model = "m"}]\narrivals = {kind = "trace", times = [0.0]}\n'
    )
    _, _, err = caesura_command("scenario", tmp_path / "s.toml")
    assert (
        "model 'm': " in err
        and "('seq'); give its size, sizes = { \"seq\" = N } in [models.m]," in err
        and "--dim" not in err
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--dim", "seq"], "--dim 'seq': must be NAME=SIZE, such as seq=64"),
        (["--dim", "seq=0"], "--dim 'seq=0': must be NAME=SIZE"),
        (["--dim", "sec=4"], "no input has a dynamic dimension 'sec' to give a size to; it has 'N', 'seq'"),
    ],
)
def test_a_dim_that_cannot_be(model, options, message):
    code, out, err = caesura_command("run", model, *options)
    assert (code, out) == (2, "") and message in err


def test_a_batch_for_a_model_that_has_a_fixed_one(tmp_path):
    net = Net()
    onnx.save(
        net.model(net.q(net.conv(net.dq(net.input((1, 4, 6, 6)), 0.05), 0.05, (8, 4, 1, 1)), 0.2)), tmp_path / "m.onnx"
    )
    for command in (["run"], ["compile", "-o", tmp_path / "m.cimg"]):
        code, _, err = caesura_command(command[0], tmp_path / "m.onnx", *command[1:], "--batch", 2)
        assert code == 2 and "--batch 2 is for a dynamic batch, and the model's is fixed" in err


def test_quantise_leaves_it_dynamic(tmp_path):
    net = FloatNet()
    made = net.model(net.conv("in", 3, 4, 3))
    made.graph.input[0].type.tensor_type.shape.dim[3].dim_param = "width"
    made.graph.output[0].type.tensor_type.shape.dim[3].dim_param = "width"
    onnx.save(made, tmp_path / "f.onnx")
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(0, 1, (2, 3, 32, 20)).astype(np.float32))
    arguments = ["quantise", tmp_path / "f.onnx", "--data", tmp_path / "x.npy", "-o", tmp_path / "q.onnx"]
    code, _, err = caesura_command(*arguments)
    assert code == 2 and "--dim width=N" in err
    code, out, err = caesura_command(*arguments, "--dim", "width=20")
    assert code == 0, err
    assert f"--input {tmp_path / 'x.npy'} --dim width=20 --check" in " ".join(out.split())
    assert caesura.compile(tmp_path / "q.onnx", sizes={"width": 24}).meta.inputs[0].shape == [1, 3, 32, 24]


def test_a_model_is_no_image(model, tmp_path):
    for command in (["disasm"], ["export", "-o", tmp_path / "x"]):
        code, _, err = caesura_command(command[0], model, *command[1:])
        assert code == 2 and "m.onnx: not a compiled image; make one with caesura compile" in err
