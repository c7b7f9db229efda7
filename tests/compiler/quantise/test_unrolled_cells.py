"""Recurrent nodes as single cells: the same numbers in float, and in 8 bits all of it on the accelerator."""

import re

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from compiler import quantise
from compiler.golden import golden_outputs
from compiler.quantise.unrolled_cells import MOST_STEPS, RECURRENT, unrolled, why_rolled
from sim.host import session
from tests.support.fast_run import equals_onnxruntime
from tests.support.golden_check import check_model, kinds

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
STEPS, BATCH, WIDTH, HIDDEN = 6, 2, 12, 8


class Recurrent:
    """A model with one recurrent node, and a product in front of it and behind."""

    def __init__(self, kind: str, steps: int = STEPS, direction: str = "forward", states: str = "", **attributes):
        self.rng, self.constants, self.kind = np.random.default_rng(1), list[onnx.TensorProto](), kind
        ways, rows = 1 + (direction == "bidirectional"), GATES[kind] * HIDDEN
        self.inputs = [helper.make_tensor_value_info("x", 1, (steps, BATCH, WIDTH))]
        given = ["wide", *(self.const(name, (ways, rows, size)) for name, size in (("W", WIDTH), ("R", HIDDEN)))]
        given += [self.const("B", (ways, 2 * rows)), ""]
        if states == "inputs":
            names = ["h", "c"][: 1 + (kind == "LSTM")]
            self.inputs += [helper.make_tensor_value_info(name, 1, (ways, BATCH, HIDDEN)) for name in names]
            given += names
        elif states:
            given.append(self.const("h", (ways, BATCH, HIDDEN), 0.0 if states == "zeros" else 0.3))
        count = 3 if kind == "LSTM" else 2
        last = self.const("out", (ways * HIDDEN, 5))
        shape = numpy_helper.from_array(np.array([0, 0, -1]), "shape")
        self.nodes = [
            helper.make_node("MatMul", ["x", self.const("in", (WIDTH, WIDTH))], ["wide"]),
            helper.make_node(
                kind, given, ["y", "yh", "yc"][:count], "cells", hidden_size=HIDDEN, direction=direction, **attributes
            ),
            helper.make_node("Transpose", ["y"], ["turned"], perm=[0, 2, 1, 3]),
            helper.make_node("Reshape", ["turned", "shape"], ["rows"]),
            helper.make_node("MatMul", ["rows", last], ["result"]),
        ]  # fmt: skip
        self.constants.append(shape)
        self.outputs = ["result", *(["yh", "yc"][: count - 1])]

    def const(self, name: str, shape: tuple[int, ...], spread: float = 0.3) -> str:
        self.constants.append(numpy_helper.from_array(self.rng.normal(0, spread, shape).astype(np.float32), name))
        return name

    def model(self, *outputs: str) -> onnx.ModelProto:
        ends = [helper.make_tensor_value_info(name, 1, None) for name in outputs or self.outputs]
        graph = helper.make_graph(self.nodes, "net", self.inputs, ends, self.constants)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        for end, value in zip(made.graph.output, session(made).get_outputs(), strict=True):
            end.CopyFrom(helper.make_tensor_value_info(end.name, 1, value.shape))
        return made

    def feed(self) -> dict[str, np.ndarray]:
        shapes = {one.name: [dim.dim_value for dim in one.type.tensor_type.shape.dim] for one in self.inputs}
        return {name: self.rng.normal(0, 1, shape).astype(np.float32) for name, shape in shapes.items()}


FORMS = {
    "forward": {},
    "backwards": {"direction": "reverse"},
    "both ways": {"direction": "bidirectional"},
    "from zeros": {"states": "zeros"},
    "from constants": {"states": "constants"},
    "from inputs": {"states": "inputs", "direction": "bidirectional"},
    "one step": {"steps": 1},
}


@pytest.mark.parametrize("kind", RECURRENT)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("reset", [0, 1])
def test_the_same_numbers_in_float(kind, form, reset):
    if reset and kind != "GRU":
        pytest.skip("only a GRU has linear_before_reset")
    net = Recurrent(kind, **FORMS[form], **({"linear_before_reset": reset} if kind == "GRU" else {}))
    model, feed = net.model(), net.feed()
    made = unrolled(model)
    onnx.checker.check_model(made)
    assert kind not in {node.op_type for node in made.graph.node}
    for wanted, found in zip(*(session(one).run(None, feed) for one in (model, made)), strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_activations_of_other_kinds():
    net = Recurrent("RNN", activations=["Relu"])
    feed = net.feed()
    wanted, found = (session(one).run(None, feed)[0] for one in (net.model(), unrolled(net.model())))
    np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_the_weights_of_the_state_are_there_once():
    made = unrolled(Recurrent("LSTM").model())
    sizes = [tensor.dims for tensor in made.graph.initializer if list(tensor.dims) == [HIDDEN, 4 * HIDDEN]]
    assert len(sizes) == 1


@pytest.fixture(scope="module", params=[(kind, way) for kind in RECURRENT for way in ("forward", "bidirectional")])
def quantised(request, tmp_path_factory):
    kind, direction = request.param
    net = Recurrent(kind, direction=direction, **({"linear_before_reset": 1} if kind == "GRU" else {}))
    path, feeds = tmp_path_factory.mktemp("cells") / "q.onnx", [net.feed() for _ in range(8)]
    quantise.quantise(quantise.prepared(net.model("result")), feeds, path)
    return net, path, feeds


def test_quantised_cells_are_near_the_float_ones(quantised):
    net, path, feeds = quantised
    (float_model,) = [session(net.model("result"))]
    wanted = np.concatenate([float_model.run(None, feed)[0] for feed in feeds])
    found = np.concatenate([golden_outputs(path, feed)["result"] for feed in feeds])
    assert 10 * np.log10(np.square(wanted).sum() / np.square(wanted - found).sum()) > 25


def test_the_accelerator_runs_all_of_them(quantised):
    _, path, _ = quantised
    assert "host" not in kinds(check_model(onnx.load(path)))


@pytest.mark.parametrize("preset", ["tiny", pytest.param("base", marks=pytest.mark.slow)])
def test_through_the_system(quantised, preset):
    _, path, _ = quantised
    equals_onnxruntime(path, preset, least=0.95)


@pytest.mark.parametrize(
    ("net", "reason"),
    [
        (Recurrent("LSTM", clip=2.0), "it has clip 2"),
        (Recurrent("LSTM", input_forget=1), "it has input_forget 1"),
        (Recurrent("GRU", activations=["HardSigmoid", "Tanh"]), "it has activations ['HardSigmoid']"),
        (Recurrent("RNN", steps=MOST_STEPS + 1), f"it has {MOST_STEPS + 1} steps, of {MOST_STEPS} at most"),
    ],
)
def test_others_stay_as_they_are(net, reason):
    model = net.model()
    assert re.match(re.escape(reason), why_rolled(model, model.graph.node[1]) or "")
    assert net.kind in {node.op_type for node in unrolled(model).graph.node}


def test_a_number_of_steps_that_is_not_known():
    net = Recurrent("LSTM")
    net.inputs[0].type.tensor_type.shape.dim[0].dim_param = "steps"
    model = net.model()
    assert "give sizes of dynamic dimensions" in (why_rolled(model, model.graph.node[1]) or "")
