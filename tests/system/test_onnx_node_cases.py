"""The test cases of ONNX for single operators, of those the front end registers, quantised by their own values: each is
within the contract, or refused by name. Refusals name the node, or no onnxruntime runs the quantised case either."""

import random
import warnings
from collections import Counter
from functools import cache

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.backend.test.case.node import collect_testcases

from compiler import golden, reference
from compiler.frontend import UnsupportedModel, import_model
from compiler.frontend.draft import HANDLERS
from sim.host import session
from tests.support.golden_check import check_graph

SEED, SAMPLE = 2026, 60


@cache
def cases():
    """Cases of one node with a float tensor among their inputs, in the order of their names."""
    registered = {name for _, name in HANDLERS} - {"QuantizeLinear", "DequantizeLinear"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [case for case in collect_testcases(None) if case.model is not None]
    single = [case for case in found if len(case.model.graph.node) == 1]
    return sorted(
        (
            case
            for case in single
            if case.model.graph.node[0].op_type in registered and any(map(is_data, inputs_of(case)))
        ),
        key=lambda case: case.name,
    )


def inputs_of(case) -> list[np.ndarray]:
    return [np.asarray(value) for value in case.data_sets[0][0]]


def is_data(value: np.ndarray) -> bool:
    """Whether an input is a tensor of reals; the others become constants."""
    return value.dtype == np.float32 and value.ndim > 0 and value.size > 1


class Quantised:
    """A case with its float tensors in 8 bits. ``feed``: values of its inputs."""

    def __init__(self, case) -> None:
        self.model, self.feed = onnx.ModelProto(), dict[str, np.ndarray]()
        self.model.CopyFrom(case.model)
        graph = self.model.graph
        node, before, after, inputs, outputs = graph.node[0], [], [], [], []
        for info, value in zip(graph.input, inputs_of(case), strict=True):
            if not is_data(value):
                graph.initializer.append(numpy_helper.from_array(value, info.name))
                continue
            scale, zero = self.parameters(info.name, value)
            node.input[:] = [f"{name}/real" if name == info.name else name for name in node.input]
            before.append(self.convert("DequantizeLinear", info.name, f"{info.name}/real", info.name))
            inputs.append(helper.make_tensor_value_info(info.name, TensorProto.INT8, value.shape))
            self.feed[info.name] = np.clip(np.rint(value / scale) + zero, -128, 127).astype(np.int8)
        for info, value in zip(graph.output, map(np.asarray, case.data_sets[0][1]), strict=True):
            if value.dtype != np.float32:
                outputs.append(info)
                continue
            self.parameters(f"{info.name}/out", value)
            node.output[:] = [f"{name}/real" if name == info.name else name for name in node.output]
            after.append(self.convert("QuantizeLinear", f"{info.name}/real", info.name, f"{info.name}/out"))
            outputs.append(helper.make_tensor_value_info(info.name, TensorProto.INT8, value.shape))
        only = onnx.NodeProto()
        only.CopyFrom(node)
        for field, values in ((graph.input, inputs), (graph.output, outputs), (graph.node, [*before, only, *after])):
            del field[:]
            field.extend(values)
        for entry in self.model.opset_import:
            entry.version = min(max(entry.version, 13), 21) if not entry.domain else entry.version
        self.model.ir_version = min(self.model.ir_version, 10)

    def parameters(self, name: str, value: np.ndarray) -> tuple[np.float32, int]:
        """Add a scale and a zero point that hold the values and zero."""
        low, high = float(np.min(value, initial=0)), float(np.max(value, initial=0))
        scale = np.float32(max(high - low, 1e-3) / 255)
        zero = int(np.clip(round(-128 - low / scale), -128, 127))
        constants = (np.asarray(scale), f"{name}/scale"), (np.array(zero, np.int8), f"{name}/zero")
        self.model.graph.initializer.extend(numpy_helper.from_array(*each) for each in constants)
        return scale, zero

    def convert(self, kind: str, x: str, y: str, by: str) -> onnx.NodeProto:
        return helper.make_node(kind, [x, f"{by}/scale", f"{by}/zero"], [y])


def judged(case) -> str:
    """Assert that a case is right; how it went."""
    try:
        quantised = Quantised(case)
        session(quantised.model)
    except Exception:  # onnxruntime's exceptions have no common base class; infinite values have no scale
        return "no quantised form"
    try:
        graph = import_model(quantised.model)
    except UnsupportedModel as refusal:
        assert refusal.nodes and all(node.reason for node in refusal.nodes)
        assert "do not fit together" not in str(refusal), (case.name, refusal)
        return "refused"
    values = reference.run_all(graph, quantised.feed)
    for check in check_graph(graph, values):
        assert check.ok, (case.name, check)
    found = reference.run(graph, quantised.feed)
    for name, value in golden.golden_outputs(quantised.model, quantised.feed).items():
        assert found[name].shape == value.shape, case.name
        assert np.abs(found[name].astype(np.float64) - value.astype(np.float64)).max(initial=0) <= 1, case.name
    return "right"


def test_a_sample():
    went = Counter(judged(case) for case in random.Random(SEED).sample(cases(), SAMPLE))
    assert went["right"] >= SAMPLE // 3, went


@pytest.mark.slow
def test_all():
    went = Counter(map(judged, cases()))
    assert went["right"] >= 200, went
