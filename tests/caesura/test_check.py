"""``--check`` on the digits model, executed by the functional model behind a fake SoC."""

import json

import numpy as np
import onnx
import pytest

import caesura
from caesura import api, cli
from caesura.check import CheckResult, LayerCheck, check
from compiler.compile import compile_with_report
from compiler.ir import Reshape
from examples.digits import MODEL, SAMPLES
from tests.support.fake_soc import FakeSoc
from tests.support.golden_check import random_inputs
from tests.support.onnx_models import Net

TINY = caesura.PRESETS["tiny"]


@pytest.fixture(scope="module")
def observing():
    return compile_with_report(MODEL, TINY, observe=True)


@pytest.fixture
def device():
    return caesura.Device(FakeSoc(TINY))


@pytest.fixture(scope="module")
def samples():
    return [{"image": image[np.newaxis]} for image in np.load(SAMPLES)["input"][:2]]


def run(device, image, samples):
    model = device.load(image)
    outputs = [model.run(sample)[0] for sample in samples]
    device.unload(model)
    return outputs


def test_every_layer_of_digits_is_equal(device, observing, samples):
    outputs = run(device, caesura.compile(MODEL, TINY), samples)
    result = check(device, MODEL, observing.image, observing.graph, samples, outputs)
    assert result.ok and result.output_difference == 0
    assert all(layer.verdict() == "equal" for layer in result.layers)
    assert len(result.layers) == sum(not isinstance(op, Reshape) for op in observing.graph.ops)
    assert "all 6 layers equal; final outputs equal (onnxruntime, 2 samples)" in result.summary()


def damaged(image, start):
    weights = bytearray(image.weights)
    for byte in range(start, min(start + 128, len(weights))):  # some are padding
        weights[byte] ^= 0x08
    return type(image)(meta=image.meta, code=image.code, weights=bytes(weights), host_models=[])


@pytest.mark.parametrize("share", [0.02, 0.2, 0.6, 0.97])
def test_the_first_wrong_layer_is_named(device, observing, samples, share):
    bad = damaged(observing.image, int(share * len(observing.image.weights)))
    outputs = run(device, bad, samples)
    result = check(device, MODEL, bad, observing.graph, samples, outputs)
    assert result.first_difference is not None and not result.ok
    assert result.first_difference.name == first_changed(device, observing, bad, samples)
    assert f"the first layer that differs is {result.first_difference.name!r}" in result.summary()


def first_changed(device, observing, bad, samples):
    """The first operator whose output differs between the good and the damaged image."""
    tensors = []
    for image in (observing.image, bad):
        model = device.load(image)
        model.run(samples[0])
        tensors.append({t.name: model.loaded.read_tensor(t.name) for t in image.meta.tensors})
        device.unload(model)
    good, changed = tensors
    ops = [op for op in observing.graph.ops if not isinstance(op, Reshape)]
    return next(op.name for op in ops if not np.array_equal(good[op.output], changed[op.output]))


def test_exit_codes(monkeypatch, capsys):
    monkeypatch.setattr(api, "open", lambda params, *_, **__: caesura.Device(FakeSoc(params)))
    monkeypatch.setattr("sys.argv", ["caesura", "run", str(MODEL), "--check", "--json"])
    cli.app(standalone_mode=False)
    assert json.loads(capsys.readouterr().out)["check"]["ok"]
    monkeypatch.setattr("caesura.check.CheckResult.ok", False)
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 1
    assert not json.loads(capsys.readouterr().out)["check"]["ok"]


@pytest.mark.parametrize(
    "layers, difference, ok, text",
    [
        ([(0, 0, True)], 0.0, True, "all 1 layers equal; final outputs equal"),
        ([(0, 0, True)], 0.5, False, "FAILED: all 1 layers equal; final outputs differ by up to 0.5"),
        ([(1, 1, True)], 0.5, True, "passed: 0 of 1 layers equal, the others within tolerance"),
        ([(0, 0, True), (7, 3, False)], 0.0, False, "layer that differs is 'op1' (conv): DIFFERS: 7 of 9, up to 3 LSB"),
    ],
)
def test_verdicts(layers, difference, ok, text):
    checks = [LayerCheck(f"op{i}", "conv", f"t{i}", 9, *layer) for i, layer in enumerate(layers)]
    result = CheckResult(checks, 1, difference)
    assert result.ok is ok and text in result.summary()
    assert result.to_dict()["ok"] is ok
    assert result.verdict_of("op0", "") == result.verdict_of("", "t0") != ""
    assert result.verdict_of("other", "other") == ""


@pytest.mark.parametrize("fallback", [False, True])
def test_parts_of_a_concatenation_in_dram_are_observed(tmp_path, fallback):
    net = Net()
    x = net.dq(net.input((1, 8, 6, 6)), 0.05, 3)
    parts = [net.dq(net.q(net.conv(x, 0.05, (c, 8, 1, 1)), 0.1, 1), 0.1, 1) for c in (8, 16)]
    joined = net.q(net.node("Concat", parts, axis=1), 0.1, 1)
    if fallback:  # the concatenation is shared with the host instead of an output
        joined = net.q(net.node("Softmax", [net.dq(joined, 0.1, 1)], axis=1), 0.004, -128)
    path = tmp_path / "model.onnx"
    onnx.save(net.model(joined), path)
    observing = compile_with_report(path, TINY, observe=True, fallback=fallback)
    device = caesura.Device(FakeSoc(TINY))
    inputs = random_inputs(observing.graph)
    outputs = run(device, compile_with_report(path, TINY, fallback=fallback).image, [inputs])
    assert check(device, path, observing.image, observing.graph, [inputs], outputs).ok
