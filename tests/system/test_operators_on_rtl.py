"""Operators that exporters write, one of each kind, on the compiled RTL: outputs are those of onnxruntime."""

import numpy as np
import pytest

import caesura
from caesura.samples import random_samples
from compiler import golden, quantise
from compiler.compile import compile_with_report
from compiler.plan.options import Options
from tests.compiler.frontend.ops.test_gathers import text_model
from tests.compiler.frontend.test_moved_functions import chain
from tests.compiler.quantise.test_unrolled_cells import Recurrent
from tests.support.onnx_models import sandwich

TINY = caesura.PRESETS["tiny"]
THREE = [((1, 6, 9, 7), *step) for step in ((0.0313, 3), (0.0427, -5), (0.0171, 100))]
WIDE = {"kernel_shape": [3, 3], "dilations": [2, 2], "pads": [2] * 4, "strides": [2, 2]}
CASES = {
    "words by ids": text_model,
    "sum of three": lambda: sandwich("Sum", THREE, (0.06, 7)),
    "mean of three": lambda: sandwich("Mean", THREE, (0.02, 7)),
    "maximum of pixels apart": lambda: sandwich("MaxPool", [((1, 6, 13, 11), 0.05, 7)], (0.05, 7), **WIDE),
    "mean of pixels apart": lambda: sandwich("AveragePool", [((1, 6, 13, 11), 0.05, 7)], (0.037, 7), opset=19, **WIDE),
    "normalised channels": lambda: sandwich(
        "InstanceNormalization", [((1, 6, 8, 7), 0.03, 7)], (0.02, -3),
        constants=[np.ones(6, np.float32), np.zeros(6, np.float32)],
    ),
    "root mean square": lambda: sandwich(
        "RMSNormalization", [((1, 9, 37), 0.03, -60)], (0.02, -3), opset=23, constants=[np.ones(37, np.float32)]
    ),
    "elements of a function": lambda: chain(("HardSwish", "Slice", "Elu"), stored=False),
}  # fmt: skip


@pytest.fixture(scope="module")
def device():
    with caesura.open("tiny") as opened:
        yield opened


def compare(device, model, least: float = 0.99) -> None:
    image = compile_with_report(model, TINY, options=Options(order="source"), jobs=1, cache=False).image
    sample = random_samples(image, 1, 0)[0]
    found, _ = device.load(image).run(sample)
    for name, wanted in golden.golden_outputs(model, sample).items():
        assert np.count_nonzero(found[name] == wanted) >= least * wanted.size


@pytest.mark.parametrize("name", CASES)
def test_one_of_each(device, name):
    compare(device, CASES[name]())


def test_a_recurrent_network(device, tmp_path):
    net = Recurrent("LSTM", steps=3)
    quantise.quantise(quantise.prepared(net.model("result")), [net.feed() for _ in range(4)], tmp_path / "q.onnx")
    compare(device, tmp_path / "q.onnx")
