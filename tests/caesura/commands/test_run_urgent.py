"""``caesura run --urgent``: a model, and a more urgent one that arrives meanwhile."""

import json

import numpy as np
import onnx
import pytest

import caesura
from caesura.scenario import urgent
from tests.support.length_nets import conv_net
from tests.support.networks import DIGITS
from tests.support.onnx_models import Net
from tests.system.command import caesura_command


@pytest.fixture(scope="module")
def long(tmp_path_factory):
    """Two convolutions that take more than a switch does."""
    net = Net()
    x = net.dq(net.input((1, 8, 24, 24)), 0.031)
    x = net.dq(net.q(net.conv(x, 0.031, (16, 8, 3, 3), pads=[1] * 4), 0.9), 0.9)
    path = tmp_path_factory.mktemp("long") / "long.onnx"
    onnx.save(net.model(net.q(net.conv(x, 0.9, (16, 16, 3, 3), pads=[1] * 4), 0.9)), path)
    return path


def run(model, *arguments):
    return caesura_command("run", model, "--urgent", DIGITS, "--backend", "model", *arguments)


def test_preemption_serves_the_urgent_model_sooner(long, tmp_path):
    code, out, err = run(long, "--at", "15000", "--json", "-o", tmp_path / "out.npz")
    assert code == 0, err
    found = json.loads(out)
    assert found["arrivals"] == [15000] and found["equal"]
    waiting, preempting = found["waiting"], found["preempting"]
    assert (waiting["switches"], preempting["switches"]) == (0, 1)
    assert preempting["urgent"][0] < waiting["urgent"][0]
    assert preempting["long"] > found["alone"]["long"]
    image = caesura.compile(long)
    with caesura.open("tiny", "model") as device:
        expected, _ = device.load(image).run(caesura.random_samples(image, 1, 0)[0])
    kept = np.load(tmp_path / "out.npz")
    for name, value in expected.items():
        np.testing.assert_array_equal(kept[name], value)


def test_again_and_again(long):
    code, out, err = run(long, "--at", "5000", "--every", "40000", "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["arrivals"] == list(range(5000, found["alone"]["long"], 40000))
    assert len(found["arrivals"]) == len(found["preempting"]["urgent"]) > 1


def test_what_people_read(long, tmp_path):
    code, out, err = run(long, "--trace", tmp_path / "t.json", "--live")
    assert code == 0 and err == "" and "\x1b" not in out  # there is no terminal
    assert "with preemption" in out and "outputs: equal to those of the models alone" in out
    names = {event.get("name") for event in json.loads((tmp_path / "t.json").read_text())["traceEvents"]}
    assert {name.partition(": ")[0] for name in names if name and "long" in name} >= {"dump", "restore", "suspended"}


def test_where_it_is_cheaper_to_wait(tmp_path):
    """A switch takes longer than what is left of the model."""
    code, out, err = run(DIGITS)
    assert code == 0, err
    assert "the long model went on at 1 of 1 arrivals: a switch would not have paid" in " ".join(out.split())


def test_an_image_and_an_image(long, tmp_path):
    for model, name in ((long, "a.cimg"), (DIGITS, "b.cimg")):
        caesura.compile(model).save(tmp_path / name)
    code, out, _ = caesura_command(
        "run", tmp_path / "a.cimg", "--urgent", tmp_path / "b.cimg", "--backend", "model", "--json"
    )
    assert code == 0 and json.loads(out)["equal"]


def test_outputs_that_differ_are_told(monkeypatch):
    monkeypatch.setattr(urgent, "_equal", lambda found, wanted: False)
    code, out, _ = run(DIGITS)
    assert code == 1 and "NOT those of the models alone" in out


@pytest.mark.parametrize(
    "more, told",
    [
        (["--at", "99999999"], "has ended after"),
        (["--at", "0", "--every", "1"], "arrivals in"),
        (["--check", "--samples", "2"], "leave --check, --samples out"),
        (["--urgent", "nothing.onnx"], "nothing.onnx"),
    ],
)
def test_what_cannot_be_is_said(more, told):
    code, _, err = run(DIGITS, *more)
    assert code == 2 and told in " ".join(err.split()) and "Traceback" not in err


def test_a_model_that_the_cpu_computes(tmp_path):
    """No engine runs any of it, and there is nothing to draw."""
    net = Net()
    cumulated = net.node("CumSum", [net.input((1, 4), "float32"), net.const(1, np.int64)])
    onnx.save(net.model(cumulated, dtype="float32"), tmp_path / "cpu.onnx")
    code, out, err = run(tmp_path / "cpu.onnx", "--fallback", "--at", "10")
    assert code == 0, err
    assert "outputs: equal" in out


def test_an_urgent_model_with_an_open_dimension(tmp_path):
    onnx.save(conv_net((1, 1)), tmp_path / "open.onnx")
    code, _, err = run(DIGITS, "--urgent", tmp_path / "open.onnx")
    assert code == 2 and "compile" in err and "give --urgent the image" in " ".join(err.split())


def test_an_arrival_of_nothing():
    code, _, err = caesura_command("run", DIGITS, "--backend", "model", "--at", "5")
    told = "--at, --every and --live are of --urgent MODEL, which arrives meanwhile: name it"
    assert code == 2 and told in " ".join(err.split())


def test_an_image_for_another_machine(tmp_path):
    caesura.compile(DIGITS, "base").save(tmp_path / "b.cimg")
    code, _, err = run(DIGITS, "--urgent", tmp_path / "b.cimg")
    assert code == 2 and "base" in err and "Traceback" not in err


def test_it_says_that_models_take_turns_and_what_mends_it(long):
    code, _, err = run(long, "--lv2-limit", "all", "--json")
    claims = "of the 131,072 bytes of LV2 claims long 131,072, digits 131,072"
    assert code == 0 and f"models take turns: {claims}; compile each of the 2 with --lv2-limit 65536, or without" in err
    assert "take turns" not in run(long, "--json")[2]


def test_it_fits_80_columns(long, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, err = run(long, "--at", "15000")
    assert code == 0, err
    assert "│ not preempted │" in out and "│ preempted " in out and max(map(len, out.splitlines())) <= 80
