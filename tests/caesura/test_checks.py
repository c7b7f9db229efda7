"""``--check`` on the digits model, executed by the functional model behind a fake SoC."""

import json

import numpy as np
import onnx
import pytest

import caesura
from caesura import api, checks as check_module, cli
from caesura.checks import CheckResult, LayerCheck, check
from compiler.compile import compile_with_report
from compiler.ir import Reshape
from examples.digits import MODEL, SAMPLES
from sim.model.bus import ModelBus
from tests.support.golden_check import random_inputs
from tests.support.onnx_models import Net

TINY = caesura.PRESETS["tiny"]


@pytest.fixture(scope="module")
def observing():
    return compile_with_report(MODEL, TINY, observe=True)


@pytest.fixture
def device():
    return caesura.Device(ModelBus(TINY))


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
    monkeypatch.setattr(api, "open", lambda params, *_, **__: caesura.Device(ModelBus(params)))
    monkeypatch.setattr("sys.argv", ["caesura", "run", str(MODEL), "--check", "--json"])
    cli.app(standalone_mode=False)
    assert json.loads(capsys.readouterr().out)["check"]["ok"]
    monkeypatch.setattr("caesura.checks.CheckResult.ok", False)
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
    device = caesura.Device(ModelBus(TINY))
    inputs = random_inputs(observing.graph)
    outputs = run(device, compile_with_report(path, TINY, fallback=fallback).image, [inputs])
    assert check(device, path, observing.image, observing.graph, [inputs], outputs).ok


def float_between_steps(path, *, last):
    """Two steps on the CPU exchange floats: the second reads what a convolution made of the first, too."""
    net = Net()
    x = net.dq(net.input((1, 4, 6, 6)), 0.05, 3)
    x = net.dq(net.q(net.conv(x, 0.05, (4, 4, 1, 1)), 0.1), 0.1)
    first = net.node("CumSum", [x, net.const(2, np.int64)])
    beside = net.dq(net.q(net.conv(net.dq(net.q(first, 0.3), 0.3), 0.3, (4, 4, 1, 1)), 0.4), 0.4)
    second = net.node("CumSum", [net.node("Mul", [first, beside]), net.const(3, np.int64)])
    if last == "float32":
        onnx.save(net.model(second, dtype="float32"), path)
        return 0.0
    second = net.q(second, 0.25)
    if last == "int8":
        onnx.save(net.model(second), path)
        return 1.0
    onnx.save(net.model(net.dq(second, 0.25), dtype="float32"), path)
    return 0.25


@pytest.mark.parametrize("last", ["float32", "int8", "step"])
def test_floats_between_steps_excuse_what_rounding_explains_and_no_more(device, tmp_path, monkeypatch, last):
    step = float_between_steps(tmp_path / "m.onnx", last=last)
    observing = compile_with_report(tmp_path / "m.onnx", TINY, observe=True, fallback=True)
    inputs = random_inputs(observing.graph)
    image = compile_with_report(tmp_path / "m.onnx", TINY, fallback=True).image
    outputs = run(device, image, [inputs])
    golden_outputs = check_module.golden.golden_outputs
    largest = max(float(np.abs(value.astype(np.float64)).max()) for value in outputs[0].values())
    allowed = step or 1e-5 * largest

    def verdict(change):
        def changed(path, sample):
            found = golden_outputs(path, sample)
            for value in found.values():
                value.flat[np.abs(value).argmin()] += np.asarray(change).astype(value.dtype)
            return found

        monkeypatch.setattr(check_module.golden, "golden_outputs", changed)
        result = check(device, tmp_path / "m.onnx", observing.image, observing.graph, [inputs], outputs)
        assert any(layer.float_in for layer in result.layers) and result.first_difference is None
        return result.ok

    assert verdict(0) and verdict(allowed if step else allowed / 2) and not verdict(2 * allowed)
    if last != "int8":
        assert not verdict(np.nan)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_no_number_equals_itself_only(value):
    odd, plain = {"y": np.float32([1, value])}, {"y": np.float32([1, 2])}
    assert check_module._difference(odd, odd) == 0
    assert check_module._difference(odd, plain) == check_module._difference(plain, odd) == np.inf


def test_the_verdict_on_a_layer_is_that_of_all_its_operators():
    checks = [
        LayerCheck("conv", "conv", "t0", 9, nodes=("a", "b")),
        LayerCheck("add", "eltwise", "t1", 9, 1, 1, nodes=("c",)),
        LayerCheck("pool", "pool", "t2", 4, 2, 3, ok=False, nodes=("d",)),
        LayerCheck("other", "pool", "t3", 4, 4, 5, ok=False, nodes=("e",)),
    ]
    result = CheckResult(checks, 1, 0.0)
    assert result.verdict_of("conv", "t1", ["a", "b", "c"]) == "within tolerance: 1 of 9, up to 1 LSB"
    assert result.verdict_of("conv + pool", "t2", ["a", "b", "c", "d"]) == "DIFFERS: 2 of 4, up to 3 LSB"
    assert result.verdict_of("conv", "t0", ["a", "b"]) == "equal"
    assert result.verdict_of("none", "none", ["x"]) == ""
    assert result.to_dict()["layers"][0]["nodes"] == ["a", "b"]
