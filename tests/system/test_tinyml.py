"""Networks of MLPerf Tiny on the compiled RTL, every layer of every sample against onnxruntime."""

import pytest

from tests.support.networks import network, samples
from tests.system.command import run_report, wrong_layers

MODELS = ("ic_resnet8_int8", "kws_dscnn_int8")


@pytest.mark.parametrize("count", [2, pytest.param(16, marks=pytest.mark.slow)])
@pytest.mark.parametrize("model", MODELS)
def test_all_layers_equal_onnxruntime(model, count):
    report = run_report(network(model), "--input", samples(model), "--samples", count, "--check")
    verdict = report["check"]
    assert (verdict["ok"], verdict["samples"]) == (True, count)
    assert wrong_layers(report) == []
    assert len({sample["outputs"] for sample in report["samples"]}) > 1
    assert len(verdict["layers"]) >= 10
