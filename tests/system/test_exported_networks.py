"""Networks as exporters write them and onnxruntime quantises them: compiled without a step for the CPU, and run.
Outputs are those of onnxruntime."""

import numpy as np
import pytest
from onnxruntime.quantization import QuantFormat, QuantType

import caesura
from compiler import golden
from compiler.compile import compile_with_report
from compiler.ir import Host
from compiler.plan.options import Options
from sim.model.bus import ModelBus
from tests.support import float_nets

PRESETS = ["tiny", "base"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("name", ["shufflenet_v2", "yolo", "window_attention"])
def test_on_the_fast_model(name, preset, tmp_path):
    path = float_nets.quantised(name, tmp_path, QuantFormat.QDQ, QuantType.QInt8, QuantType.QInt8, True)
    params = caesura.PRESETS[preset]
    compiled = compile_with_report(path, params, options=Options(order="source"), jobs=1, cache=False)
    assert not any(isinstance(op, Host) for op in compiled.graph.ops)
    inputs = {"in": np.random.default_rng(3).normal(0, 1, float_nets.SHAPE).astype(np.float32)}
    found, _ = caesura.Device(ModelBus(params)).load(compiled.image).run(inputs)
    for output, wanted in golden.golden_outputs(path, inputs).items():
        np.testing.assert_array_equal(found[output], wanted)
