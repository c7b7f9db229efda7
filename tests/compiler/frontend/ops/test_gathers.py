"""Look-ups in constant tables by indices of run time: steps of the CPU whose results go on in 8 bits. And GatherND by
constant indices, on the accelerator."""

import numpy as np
import onnx
import pytest

import caesura
from caesura.index_limits import index_limit
from caesura.samples import random_samples
from compiler import golden, reference
from compiler.compile import compile_with_report
from compiler.frontend import UnsupportedModel, import_model
from compiler.frontend.float_ends import HEAD
from compiler.ir import Graph, Host
from compiler.plan.options import Options
from sim.host import HostStepError
from sim.model.bus import ModelBus
from tests.support.golden_check import check_graph, check_model, kinds
from tests.support.onnx_models import Net

ROWS, WIDTH, WORDS = 50, 16, 6
STORED = (0.031, 7)


def embedded(net: Net, form: str, ids: str, rows: int = ROWS, op: str = "Gather", **attributes) -> str:
    """Real rows of a table by ``ids``, as quantisers write it."""
    if form == "float":
        table = net.const(net.rng.normal(0, 1, (rows, WIDTH)), np.float32)
        return net.node(op, [table, ids], **attributes)
    table = net.const(net.array((rows, WIDTH)))
    if form == "8 bits":
        return net.dq(net.node(op, [table, ids], **attributes), *STORED)
    if form == "columns":
        scale = net.rng.uniform(0.01, 0.03, WIDTH).astype(np.float32)
        return net.node(op, [net.dq(table, scale, np.zeros(WIDTH), axis=1), ids], **attributes)
    return net.node(op, [net.dq(table, *STORED), ids], **attributes)


def product(net: Net, x: str, target=STORED, depth: int = WIDTH) -> str:
    x = net.dq(net.q(x, *target), *target)
    return net.node("Relu", [net.node("MatMul", [x, net.weights((depth, 12), 1)[0]])])


def text_model(form: str = "quantised", dtype: str = "int64", op: str = "Gather", target=STORED) -> onnx.ModelProto:
    net = Net()
    ids = net.input({"Gather": (1, WORDS), "GatherND": (1, WORDS, 1)}[op], dtype, "ids")
    return net.model(net.q(product(net, embedded(net, form, ids, op=op), target), 0.9))


def judge(model: onnx.ModelProto, feed: dict[str, np.ndarray], exact: bool = True) -> Graph:
    """Assert that every operator and the outputs are right for ``feed``."""
    graph = import_model(model)
    for check in check_graph(graph, reference.run_all(graph, feed)):
        assert check.ok, check
    found = reference.run(graph, feed)
    for name, wanted in golden.golden_outputs(model, feed).items():
        assert np.abs(found[name].astype(int) - wanted.astype(int)).max() <= (0 if exact else 1)
    return graph


def ids_of(dtype: str, *more: int) -> np.ndarray:
    return np.array([[0, ROWS - 1, 7, -1, -ROWS, 7]], dtype).reshape(1, WORDS, *more)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("form", ["quantised", "8 bits", "columns", "float"])
def test_words_by_ids(form, dtype):
    graph = judge(text_model(form, dtype), {"ids": ids_of(dtype)})
    assert kinds(graph) == ["host", "conv"]
    step = graph.ops[0]
    assert isinstance(step, Host) and step.reason.startswith("Gather '")
    assert ("constant table by indices of run time" if form in ("quantised", "8 bits") else HEAD) in step.reason


def test_the_cpu_takes_bytes_of_a_quantised_table():
    (step, _) = judge(text_model(), {"ids": ids_of("int64")}).ops
    assert isinstance(step, Host)
    made = onnx.load_from_string(step.model).graph
    assert not {node.op_type for node in made.node} & {"QuantizeLinear", "DequantizeLinear"}


def test_rows_in_other_steps_pass_through_a_table():
    assert kinds(judge(text_model(target=(0.05, -3)), {"ids": ids_of("int64")}, exact=False)) == [
        "host",
        "table",
        "conv",
    ]


def test_tuples_of_indices():
    assert kinds(judge(text_model(op="GatherND"), {"ids": ids_of("int64", 1)})) == ["host", "conv"]


def test_elements_by_indices():
    net = Net()
    ids = net.input((3, WIDTH), "int64", "ids")
    model = net.model(net.q(product(net, embedded(net, "quantised", ids, op="GatherElements", axis=0)), 0.9))
    assert kinds(judge(model, {"ids": net.rng.integers(-ROWS, ROWS, (3, WIDTH))})) == ["host", "conv"]


def test_indices_that_the_cpu_computes():
    """Offsets of categories that share a table, as in DLRM, and a table that other nodes read in float."""
    net = Net()
    ids = net.node("Add", [net.input((1, WORDS), "int64", "ids"), net.const([[0, 5, 10, 15, 20, 25]], np.int64)])
    table = net.dq(net.const(net.array((ROWS, WIDTH))), *STORED)
    x = net.dq(net.q(net.node("Gather", [table, ids]), *STORED), *STORED)
    x = net.node("ReduceSum", [x, net.const([1], np.int64)], keepdims=0)
    x = net.dq(net.q(x, 0.1), 0.1)
    model = net.model(net.q(net.node("Gemm", [x, table], transB=1), 0.9))
    assert kinds(judge(model, {"ids": net.rng.integers(0, 5, (1, WORDS))}, exact=False))[0] == "host"


def dlrm() -> onnx.ModelProto:
    """Dense features beside embeddings of categories, a bag of several among them."""
    net = Net()
    dense = net.dq(net.q(net.input((1, 4), "float32", "dense"), 0.02, 3), 0.02, 3)
    parts = [net.node("MatMul", [dense, net.weights((4, WIDTH), 1)[0]])]
    for number, rows in enumerate((10, 20, 30)):
        parts.append(embedded(net, "quantised", net.input((1,), "int64", f"c{number}"), rows))
    bag = embedded(net, "quantised", net.input((1, 4), "int64", "bag"), 40)
    parts.append(net.node("ReduceMean", [net.dq(net.q(bag, *STORED), *STORED)], axes=[1], keepdims=0))
    parts = [net.dq(net.q(part, *STORED), *STORED) for part in parts]
    x = net.dq(net.q(net.node("Concat", parts, axis=1), *STORED), *STORED)
    return net.model(net.q(net.node("Gemm", [x, net.weights((5 * WIDTH, 8), 1)[0]]), 0.9))


def test_categories_beside_dense_features():
    feed = {"dense": np.ones((1, 4), np.float32), "bag": np.array([[0, 39, -1, 3]])}
    graph = judge(dlrm(), feed | {f"c{n}": np.array([n]) for n in range(3)}, exact=False)
    assert "conv" in kinds(graph) and "pool" in kinds(graph)


@pytest.fixture(scope="module")
def device():
    return caesura.Device(ModelBus(caesura.PRESETS["tiny"]))


def image_of(model: onnx.ModelProto) -> caesura.Image:
    return compile_with_report(
        model, caesura.PRESETS["tiny"], options=Options(order="source"), jobs=1, cache=False
    ).image


@pytest.mark.parametrize("model", [text_model, dlrm])
def test_through_the_system(device, model):
    image = image_of(model())
    for sample in random_samples(image, 3, 0):
        found, stats = device.load(image).run(sample)
        for name, wanted in golden.golden_outputs(model(), sample).items():
            assert np.abs(found[name].astype(int) - wanted.astype(int)).max() <= 1
        assert stats.host == sum(step.cycles for step in caesura.cpu_steps(image))


@pytest.mark.parametrize("bad", [ROWS, -ROWS - 1])
def test_an_index_out_of_range_ends_the_inference_and_no_other(device, bad):
    """As onnxruntime has it, which takes negative ones from the end."""
    loaded = device.load(image_of(text_model()))
    with pytest.raises(HostStepError, match=rf"Gather .*idx={bad} must be within the inclusive range \[-50,49\]"):
        loaded.run({"ids": np.full((1, WORDS), bad)})
    with pytest.raises(caesura.InputError, match="dtype float32, expected int64"):
        loaded.run({"ids": np.zeros((1, WORDS), np.float32)})
    assert loaded.run({"ids": ids_of("int64")})[0]


def test_random_indices_are_rows_of_the_smallest_table():
    image = image_of(dlrm())
    limits = {port.name: index_limit(image, port.tensor) for port in image.meta.inputs}
    assert limits == {"dense": None, "c0": 10, "c1": 20, "c2": 30, "bag": 40}
    drawn = np.concatenate([sample["bag"].reshape(-1) for sample in random_samples(image, 50, 0)])
    assert drawn.min() == 0 and drawn.max() == 39


def refused(model: onnx.ModelProto) -> str:
    with pytest.raises(UnsupportedModel) as error:
        import_model(model)
    return str(error.value)


@pytest.mark.parametrize("op", ["Gather", "GatherND", "GatherElements"])
def test_computed_data_has_constant_indices(op):
    net = Net()
    x = net.dq(net.q(net.conv(net.dq(net.input((1, 5, 6, 6)), *STORED), 0.031, (8, 5, 1, 1)), 0.9), 0.9)
    y = net.node(op, [x, net.input((1, 1, 1, 1), "int64", "ids")])
    assert "and so is its data" in refused(net.model(net.q(y, 0.9)))


POINTS = {
    "pixels": [[0, 1], [0, 3], [0, 4], [0, -1]],
    "one": [[0, 2, 3]],
    "a square": [[[0, 1], [0, 2]], [[0, 4], [0, 5]]],
}


@pytest.mark.parametrize("name", POINTS)
@pytest.mark.parametrize("real", [True, False])
def test_constant_tuples_are_slices(name, real):
    net = Net(13)
    x = net.input((1, 6, 5, 4))
    x = net.dq(x, *STORED) if real else x
    y = net.node("GatherND", [x, net.const(POINTS[name], np.int64)])
    graph = check_model(net.model(net.q(y, *STORED) if real else y), exact=True)
    assert "host" not in kinds(graph)


@pytest.mark.parametrize(
    ("indices", "attributes", "reason"),
    [
        ([[0, 6]], {}, r"indices from 0 to 6 of axes of (1, 6)"),
        ([[0]], {"batch_dims": 1}, "batch_dims 1; the accelerator takes 0"),
        (np.zeros((0, 2)), {}, "no indices, which leave nothing"),
    ],
)
def test_other_tuples_are_refused(indices, attributes, reason):
    net = Net()
    x = net.dq(net.input((1, 6, 5, 4)), *STORED)
    y = net.node("GatherND", [x, net.const(indices, np.int64)], **attributes)
    end = onnx.helper.make_node("QuantizeLinear", [y, net.const(0.031, np.float32), net.const(7, np.int8)], ["y"])
    result = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.INT8, (1,))  # onnxruntime finds no shape
    graph = onnx.helper.make_graph([*net.nodes, end], "net", net.inputs, [result], net.initializers)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)], ir_version=8)
    assert reason in refused(model)
