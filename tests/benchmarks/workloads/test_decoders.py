"""Linear layers of decoders against published sizes, and a small one through compiler and fast model."""

from dataclasses import replace

import numpy as np
import onnxruntime
import pytest
from onnx import numpy_helper

from benchmarks.workloads import decoders, inputs, registry, workload
from compiler import golden, import_model
from compiler.ir import Host
from tests.support.fast_run import equals_onnxruntime


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


@pytest.mark.parametrize(
    ("name", "weights"),
    [
        ("linear_stories15m", 15_187_968),  # 15.19 million parameters less norms; the embedding is the head
        ("linear_stories42m", 41_680_896),
        ("linear_smollm2_135m", 134_479_872),  # 134.5 million
        ("linear_stories15m_1", 995_328),
        ("linear_smollm2_135m_1", 3_538_944),
    ],
)
def test_published_sizes(name, weights):
    assert decoders.parse(name).macs == weights


def test_names():
    assert decoders.parse("linear_stories15m_2_head").head and not decoders.parse("linear_stories15m_2").head
    assert decoders.parse("linear_stories15m_2").layers == 2 and decoders.parse("linear_stories15m").layers == 6
    narrow = decoders.parse("linear_stories15m_2_head_int4")
    assert narrow.int4 and narrow.head and narrow.layers == 2 and decoders.parse("linear_stories15m_int4").head
    assert narrow.weight_bytes == narrow.macs // 2 and not decoders.parse("linear_stories15m").int4
    assert decoders.parse("linear_stories15m_head") is None and decoders.parse("stories15m") is None
    assert set(decoders.DECODERS) <= set(registry.names())
    with pytest.raises(registry.UnknownWorkload, match="there must be a layer"):
        workload("linear_stories15m_0")


@pytest.mark.parametrize("name", ["linear_stories15m_2", "linear_stories15m_2_int4"])
def test_the_model_has_the_weights_that_it_says_and_hardly_saturates(name):
    decoder = decoders.parse(name)
    model = decoders.model(decoder, 1)
    weights = [numpy_helper.to_array(one) for one in model.graph.initializer if one.name.endswith(".weight")]
    assert sum(one.size for one in weights) == decoder.macs and len(weights) == 7 * 2
    run = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for value in run.run(None, decoders.inputs(decoder, 2)):
        assert 10 < value.std() < 90 and np.mean(np.abs(value.astype(int)) >= 127) < 0.05


@pytest.mark.parametrize("int4", [False, True])
def test_a_small_one_runs_on_the_accelerator_alone_and_equals_onnxruntime(int4):
    small = replace(decoders.parse("linear_smollm2_135m_2"), width=48, heads=6, key_heads=2, hidden=80, vocabulary=100)
    model = decoders.model(replace(small, head=True, int4=int4), 3)
    assert not any(isinstance(op, Host) for op in import_model(model).ops)
    for preset in ("tiny", "base"):
        equals_onnxruntime(model, preset)
    assert golden.golden_outputs(model, decoders.inputs(small, 4)).keys() >= {"layer0.key", "layer1.value", "logits"}


def test_inputs_are_always_the_same():
    first, again = inputs("linear_stories15m_1"), inputs("linear_stories15m_1")
    assert np.array_equal(first["token"], again["token"]) and first["token"].shape == (1, 288)
    assert not np.array_equal(first["token"], inputs("linear_stories15m_1", 1)["token"])
