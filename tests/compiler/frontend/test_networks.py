"""Whole networks: imported without host operators (but softmax), every layer within the contract."""

import os
from pathlib import Path

import numpy as np
import pytest

from compiler import golden, reference
from compiler.frontend import import_model
from compiler.ir import Host

DIGITS = Path(__file__).parents[3] / "examples" / "digits"
MODELS = os.environ.get("CAESURA_MODELS")
NAMES = ["ic_resnet8_int8", "kws_dscnn_int8", "squeezenet_int8_qdq", "resnet50_int8_qdq"]


def _check(model: Path, samples: np.ndarray) -> None:
    graph = import_model(model)
    assert all("softmax" in op.reason for op in graph.ops if isinstance(op, Host))
    port = graph.inputs[0]
    for sample in samples:
        inputs = {port.name: np.ascontiguousarray(sample.reshape(port.shape)).astype(port.dtype)}
        values = reference.run_all(graph, inputs)
        for check in golden.check_graph(graph, values):
            assert check.ok, check
        wanted = golden.golden_outputs(model, inputs)
        for out in graph.outputs:
            given = reference.from_memory(out, values[out.tensor], graph)
            assert given.argmax() == wanted[out.name].argmax()


def test_digits():
    with np.load(DIGITS / "digits_samples.npz") as samples:
        _check(DIGITS / "digits.onnx", samples["input"][:16])


@pytest.mark.skipif(MODELS is None, reason="CAESURA_MODELS is not set")
@pytest.mark.parametrize("name", NAMES)
def test_shared_model(name):
    assert MODELS is not None
    folder = Path(MODELS)
    count = 1 if name in NAMES[2:] else 8
    with np.load(folder / f"{name}_samples.npz") as samples:
        _check(folder / f"{name}.onnx", samples["input"][:count])
