"""Networks quantised by onnxruntime's own tool in both forms: nothing but softmax on the host, every layer judged."""

import numpy as np
import pytest
from onnxruntime.quantization import QuantFormat, QuantType

from compiler import golden, reference
from compiler.frontend import import_model
from compiler.ir import Conv, Host
from tests.support import float_nets

FORMS = {
    "qdq-s8s8-channel": (QuantFormat.QDQ, QuantType.QInt8, QuantType.QInt8, True),
    "qdq-u8s8": (QuantFormat.QDQ, QuantType.QUInt8, QuantType.QInt8, False),
    "qoperator-u8u8": (QuantFormat.QOperator, QuantType.QUInt8, QuantType.QUInt8, False),
    "qoperator-s8s8-channel": (QuantFormat.QOperator, QuantType.QInt8, QuantType.QInt8, True),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", float_nets.NETWORKS)
def test_network(name, form, tmp_path):
    path = float_nets.quantised(name, tmp_path, *FORMS[form])
    graph = import_model(path)
    assert all("softmax" in op.reason for op in graph.ops if isinstance(op, Host))
    x = np.random.default_rng(2).normal(0, 1, float_nets.SHAPE).astype(np.float32)
    values = reference.run_all(graph, {"in": x})
    for op in graph.ops:
        check = golden.check_layer(graph, op, values, values[op.output])
        assert check.ok, check
        if isinstance(op, Conv):
            assert check.exact_required, "onnxruntime used no integer kernel, so this layer proves nothing"
            assert op.nodes
