"""Encoders against published figures, and small ones through quantisation, compiler and the fast model."""

from dataclasses import replace

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper

import caesura
from benchmarks.workloads import encoders, inputs, registry, workload
from caesura.checks import check
from compiler.compile import compile_with_report
from compiler.ir import Host

SMALL = ["bert_tiny_1x16", "bert_tiny_2x9_masked_erf", "vit_tiny_1x17", "vit_tiny_patches_1x5"]


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def small(name):
    """An encoder of the same form with few features."""
    encoder = encoders.parse(name)
    return replace(
        encoder, width=16 * encoder.heads, hidden=48, layers=1, length=9, features=24 * bool(encoder.features)
    )


def parameter_count(model):
    weights = [tensor for tensor in model.graph.initializer if not tensor.name.endswith("shape")]
    return sum(numpy_helper.to_array(tensor).size for tensor in weights)


@pytest.mark.parametrize(
    ("name", "gmacs", "parameters"),
    [
        ("bert_base_12x128", 11.17, None),  # 22.3 GFLOPs
        ("bert_base_1x128", 0.931, 7.09e6),
        ("bert_tiny", 0.0587, 0.397e6),  # 4.4 million with the embedding of 30,522 words and 512 positions
        ("vit_tiny_patches", 1.25, 5.72e6),
    ],
)
def test_published_figures(name, gmacs, parameters):
    encoder = encoders.parse(name)
    assert encoder.macs / 1e9 == pytest.approx(gmacs, rel=0.01)
    if parameters:
        assert parameter_count(encoders.float_model(encoder, 0)) == pytest.approx(parameters, rel=0.01)


@pytest.mark.parametrize("name", ["bert_base", "bert_tiny_masked_erf", "vit_tiny", "vit_tiny_patches"])
def test_float_model_runs_for_its_inputs(name):
    encoder = small(name)
    model = encoders.float_model(encoder, 1)
    run = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    first, second = (run.run(None, encoders.inputs(encoder, seed))[0] for seed in (1, 2))
    assert first.shape == ((1, 1000) if encoder.classified else (1, 9, encoder.width))
    assert np.isfinite(first).all() and first.std() > 0.1
    assert np.abs(first - second).max() > 0.5, "the output depends on the input"
    assert model == encoders.float_model(encoder, 1) != encoders.float_model(encoder, 2)


def test_mask_hides_keys():
    encoder = replace(small("bert_tiny"), masked=True)
    run = onnxruntime.InferenceSession(encoders.float_model(encoder, 1).SerializeToString())
    feeds = encoders.inputs(encoder, 3)
    feeds["mask"][...] = np.where(np.arange(9) < 6, 0, encoders.MASKED)
    before = run.run(None, feeds)[0]
    feeds["tokens"][:, 6:] += 1
    np.testing.assert_allclose(run.run(None, feeds)[0][:, :6], before[:, :6], atol=1e-3)


def test_both_forms_of_gelu_are_one_function():
    encoder = small("bert_tiny")
    feeds = encoders.inputs(encoder, 4)
    models = [encoders.float_model(replace(encoder, erf=erf), 1) for erf in (False, True)]
    results = [onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds)[0] for model in models]
    np.testing.assert_allclose(*results, atol=1e-5)
    assert "Erf" in {node.op_type for node in models[1].graph.node}


def test_names():
    assert encoders.parse("bert_base_1x384") == replace(
        encoders.ENCODERS["bert_base"], name="bert_base_1x384", layers=1, length=384
    )
    masked = encoders.parse("bert_tiny_masked_erf")
    assert (masked.layers, masked.length, masked.masked, masked.erf) == (2, 128, True, True)
    for other in ("bert_base_", "bert_base_1", "bert_base_x128", "bert", "bert_base_1x128_erf_masked"):
        assert encoders.parse(other) is None
        with pytest.raises(registry.UnknownWorkload):
            workload(other)
    with pytest.raises(registry.UnknownWorkload, match="sizes must be at least 1"):
        inputs("bert_base_1x0")
    with pytest.raises(registry.UnknownWorkload, match="the limit is"):
        inputs("bert_base_99x4096")


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.slow
def test_every_layer_is_within_its_contract(name):
    path = workload(name)
    feeds = inputs(name)
    graph = onnx.load(path).graph
    assert {value.name: value.type.tensor_type.shape.dim[-1].dim_value for value in graph.input} == {
        key: value.shape[-1] for key, value in feeds.items()
    }
    with caesura.open("base", "model") as device:
        image = caesura.compile(path, "base")
        outputs, _ = device.load(image).run(feeds)
        observing = compile_with_report(path, device.params, observe=True, engines=1)
        result = check(device, path, observing.image, observing.graph, [feeds], [outputs])
    assert result.ok, result.summary()
    assert sum(layer.macs for layer in image.meta.layers) == encoders.parse(name).macs
    assert not any(isinstance(op, Host) for op in observing.graph.ops), "something runs on the CPU"
