"""Whole networks: imported without host operators (but softmax), every layer within the contract."""

import numpy as np
import pytest

from compiler import golden, reference
from compiler.frontend import import_model
from compiler.ir import Host
from tests.support.golden_check import check_graph
from tests.support.networks import network, samples

NAMES = ["ic_resnet8_int8", "kws_dscnn_int8", "squeezenet_int8_qdq", "resnet50_int8_qdq"]


def _check(name: str, count: int) -> None:
    model = network(name)
    with np.load(samples(name)) as file:
        given = file["input"][:count]
    graph = import_model(model)
    assert all("softmax" in op.reason for op in graph.ops if isinstance(op, Host))
    port = graph.inputs[0]
    for sample in given:
        inputs = {port.name: np.ascontiguousarray(sample.reshape(port.shape)).astype(port.dtype)}
        values = reference.run_all(graph, inputs)
        for check in check_graph(graph, values):
            assert check.ok, check
        wanted = golden.golden_outputs(model, inputs)
        for out in graph.outputs:
            given = reference.from_memory(out, values[out.tensor], graph)
            assert given.argmax() == wanted[out.name].argmax()


def test_digits():
    _check("digits", 16)


@pytest.mark.parametrize("name", NAMES)
def test_shared_model(name):
    _check(name, 1 if name in NAMES[2:] else 8)
