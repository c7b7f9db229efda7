"""Networks of MLPerf Tiny on the compiled RTL, every layer of every sample against onnxruntime.

The models are not part of the repository: CAESURA_MODELS names the folder that holds them.
"""

import os
from pathlib import Path

import pytest

from tests.system.command import run_report, wrong_layers

FOLDER = Path(os.environ.get("CAESURA_MODELS", "models"))
MODELS = ("ic_resnet8_int8", "kws_dscnn_int8")


@pytest.mark.parametrize("samples", [2, pytest.param(16, marks=pytest.mark.slow)])
@pytest.mark.parametrize("model", MODELS)
def test_all_layers_equal_onnxruntime(model, samples):
    path = FOLDER / f"{model}.onnx"
    if not path.exists():
        pytest.skip(f"no {path.name} in {FOLDER}: set CAESURA_MODELS to the folder of the models")
    inputs = FOLDER / f"{model}_samples.npz"
    report = run_report(path, "--input", inputs, "--samples", samples, "--backend", "cxxrtl", "--check")
    verdict = report["check"]
    assert (verdict["ok"], verdict["samples"]) == (True, samples)
    assert wrong_layers(report) == []
    assert len({sample["outputs"] for sample in report["samples"]}) > 1
    assert len(verdict["layers"]) >= 10
