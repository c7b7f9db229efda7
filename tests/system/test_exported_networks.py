"""Networks as exporters write them and onnxruntime quantises them: compiled without a step for the CPU, and run.
Outputs are those of onnxruntime."""

import pytest
from onnxruntime.quantization import QuantFormat, QuantType

from tests.support import float_nets
from tests.support.fast_run import equals_onnxruntime


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("preset", ["tiny", "base"])
@pytest.mark.parametrize("name", ["shufflenet_v2", "yolo", "window_attention"])
def test_on_the_fast_model(name, preset, tmp_path):
    path = float_nets.quantised(name, tmp_path, QuantFormat.QDQ, QuantType.QInt8, QuantType.QInt8, True)
    equals_onnxruntime(path, preset)
