"""``caesura quantise``, and what ``caesura run`` then keeps and says."""

import json
import re
import tempfile
import time
from unittest import mock

import numpy as np
import onnx
import psutil
import pytest
from onnx import helper, numpy_helper

import caesura
from caesura import api, cli
from caesura.commands.quantise import quantise
from compiler import import_model
from sim.model.bus import ModelBus
from tests.support.float_nets import SHAPE, FloatNet


def float_model() -> onnx.ModelProto:
    """Convolution with batch normalisation behind it, pool and classifier."""
    net = FloatNet()
    x = net.conv("in", 3, 8, 3, 2)
    scale, mean = net.const(net.rng.uniform(0.5, 1, 8)), net.const(net.rng.normal(0, 0.1, 8))
    x = net.node("BatchNormalization", x, scale, mean, mean, scale)
    x = net.node("Flatten", net.node("GlobalAveragePool", net.node("Relu", x)))
    y = net.node("Gemm", x, net.random(10, 8), transB=1)
    ports = [helper.make_tensor_value_info(n, 1, s) for n, s in (("in", ["batch", *SHAPE[1:]]), (y, ["batch", 10]))]
    graph = helper.make_graph(net.nodes, "net", ports[:1], ports[1:], net.initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


@pytest.fixture
def files(tmp_path):
    onnx.save(float_model(), tmp_path / "float.onnx")
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "data.npz", images=rng.normal(0, 1, (4, *SHAPE[1:])).astype(np.float32), label=np.arange(4))
    np.save(tmp_path / "data.npy", rng.normal(0, 1, (4, *SHAPE[1:])).astype(np.float32))
    return tmp_path


@pytest.mark.parametrize("data", ["data.npz", "data.npy"])
def test_the_accelerator_runs_what_it_writes(files, capsys, data):
    quantise(files / "float.onnx", files / data, files / "q.onnx")
    assert "the accelerator runs all of it" in capsys.readouterr().out
    made = onnx.load(files / "q.onnx")
    assert "BatchNormalization" not in {node.op_type for node in made.graph.node}
    kinds = {numpy_helper.to_array(tensor).dtype.name for tensor in made.graph.initializer}
    assert {"int8", "int32"} <= kinds
    quantise(files / "float.onnx", files / data, files / "q.onnx", activations="uint8", samples=2, as_json=True)
    found = json.loads(capsys.readouterr().out)
    assert found["samples"] == 2 and not found["refused"] and min(found["sqnr_db"].values()) > 20


@pytest.mark.parametrize("version", [11, 12])
def test_models_of_older_operator_sets(files, capsys, version):
    """As PyTorch exported them for years: QuantizeLinear had no axis then."""
    model = float_model()
    model.opset_import[0].version = version
    onnx.save(model, files / "old.onnx")
    quantise(files / "old.onnx", files / "data.npz", files / "q.onnx")
    assert "the accelerator runs all of it" in capsys.readouterr().out


@pytest.mark.parametrize("per_tensor", [False, True])
def test_weights_of_products_become_int4(files, capsys, per_tensor):
    model = float_model()
    onnx.save(model, files / "float.onnx")
    given = {"weights": "int4", "per_tensor": per_tensor, "as_json": True}
    quantise(files / "float.onnx", files / "data.npz", files / "q.onnx", **given)
    found = json.loads(capsys.readouterr().out)
    assert not found["refused"] and min(found["sqnr_db"].values()) > 12
    made = onnx.load(files / "q.onnx")
    onnx.checker.check_model(made)
    types = {tuple(one.dims): one.data_type for one in made.graph.initializer if "_quantized" in one.name}
    assert types[10, 8] == onnx.TensorProto.INT4 and types[8, 3, 3, 3] == onnx.TensorProto.INT8
    gemm = import_model(str(files / "q.onnx")).ops[-1]
    assert gemm.int4 and np.abs(gemm.weights.astype(int)).max() in (7, 8)
    assert gemm.requantise.scale.size == (1 if per_tensor else 10)


def test_weights_are_int8_or_int4(files):
    with pytest.raises(api.UsageError, match="--weights must be int8 or int4, not 'int2'"):
        quantise(files / "float.onnx", files / "data.npz", files / "q.onnx", weights="int2")


def test_a_quantised_model_is_not_quantised_again(files):
    quantise(files / "float.onnx", files / "data.npz", files / "q.onnx")
    with pytest.raises(api.UsageError, match="quantised already"):
        quantise(files / "q.onnx", files / "data.npz", files / "again.onnx")


@pytest.fixture
def run(monkeypatch, capsys):
    monkeypatch.setattr(api, "open", lambda params, *_, **__: caesura.Device(ModelBus(params)))

    def run(*arguments) -> str:
        monkeypatch.setattr("sys.argv", ["caesura", "run", *map(str, arguments)])
        cli.app(standalone_mode=False)
        return capsys.readouterr().out

    return run


def test_outputs_are_kept_and_judged_by_labels(files, run):
    quantise(files / "float.onnx", files / "data.npz", files / "q.onnx")
    out = files / "out.npz"
    told = run(files / "q.onnx", "--input", files / "data.npz", "--samples", 4, "--output", out)
    (kept,) = np.load(out).values()
    assert kept.shape == (4, 10)
    correct = int((kept.argmax(axis=1) == np.arange(4)).sum())
    assert f"{correct} of 4 correct" in told
    run(files / "q.onnx", "--input", files / "data.npy", "--output", out)
    (kept,) = np.load(out).values()
    assert kept.shape == (1, 10)


def test_a_model_on_the_cpu_says_so(files, run):
    told = " ".join(run(files / "float.onnx", "--fallback", "--check", "--input", files / "data.npz").split())
    assert "0 of 5 layers on the accelerator, 0 % of MACs" in told
    assert "the check compared onnxruntime with itself" in told and "check passed" in told


@pytest.mark.parametrize(
    ("value", "message"),
    [(np.nan, "values that are no finite"), (np.inf, "values that are no finite"), ("text", "<U4, and numbers are")],
)
def test_samples_must_be_numbers(files, value, message):
    np.save(files / "bad.npy", np.full((2, *SHAPE[1:]), value))
    with pytest.raises(caesura.InputError, match=re.escape(f"bad.npy: input 'in' holds {message}")):
        quantise(files / "float.onnx", files / "bad.npy", files / "q.onnx")
    assert not (files / "q.onnx").exists()


def test_what_onnxruntime_cannot_run_is_told(files):
    ports = [helper.make_tensor_value_info(name, 1, [1, 4]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Odd", ["x"], ["y"], domain="my.ops")], "g", ports[:1], ports[1:])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("my.ops", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), files / "odd.onnx")
    np.save(files / "x.npy", np.ones((1, 4), np.float32))
    with pytest.raises(api.UsageError, match=r"odd\.onnx: onnxruntime cannot quantise it: .*my\.ops:Odd"):
        quantise(files / "odd.onnx", files / "x.npy", files / "q.onnx")


def test_nodes_that_are_refused_have_a_way_out_that_works(files, capsys, caplog):
    net = FloatNet()
    x = net.node("CumSum", net.conv("in", 3, 4, 3), net.const(2, np.int64))
    x = net.node("LayerNormalization", x, net.const(np.ones(32)), net.const(np.zeros(32)), axis=-1)
    model = net.model(net.conv(x, 4, 4, 3))
    model.opset_import[0].version = 17
    onnx.save(model, files / "odd.onnx")
    quantise(files / "odd.onnx", files / "data.npy", files / "q.onnx")
    out = " ".join(capsys.readouterr().out.split())
    assert "cannot run 1 node of it" in out and not caplog.records
    assert f"caesura run {files / 'q.onnx'} --input {files / 'data.npy'} --fallback --check" in out


def looping(path, count: int, cond: str, folded: bool):
    """A convolution and a loop of ``count`` turns; one that is ``folded`` depends on no input, so that onnxruntime
    runs it when it prepares the model."""
    body = helper.make_graph(
        [helper.make_node("Identity", ["c"], ["again"]), helper.make_node("Sin", ["v"], ["w"])], "body",
        [
            helper.make_tensor_value_info("i", 7, ()), helper.make_tensor_value_info("c", 9, ()),
            helper.make_tensor_value_info("v", 1, (1,)),
        ],
        [helper.make_tensor_value_info("again", 9, ()), helper.make_tensor_value_info("w", 1, (1,))],
    )  # fmt: skip
    net = FloatNet()
    x = net.conv("in", 3, 8, 3, 2)
    axes = net.const(np.array([0, 1, 2, 3]), np.int64)
    start = (
        net.const(np.ones(1))
        if folded
        else net.node("Reshape", net.node("ReduceSum", x, axes), net.const([1], np.int64))
    )
    turns, again = net.const(np.array(count), np.int64), net.const(np.array(True), np.bool_)
    y = net.node("Loop", turns, again if cond else "", start, body=body)
    model = net.model(net.node("Add", x, y))
    model.opset_import[0].version = 17
    onnx.save(model, path)


@pytest.mark.parametrize("folded", [pytest.param(False, marks=pytest.mark.slow), True])
def test_a_model_that_never_ends_is_an_error(files, folded, monkeypatch):
    """With its process, and all it left in the folder of temporary files."""
    looping(files / "loop.onnx", 1 << 62, "", folded)
    scratch = files / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    begin, before = time.monotonic(), {one.pid for one in psutil.Process().children(recursive=True)}
    with mock.patch.object(tempfile, "tempdir", str(scratch)):
        with pytest.raises(api.UsageError, match=r"loop\.onnx: not quantised after 8 seconds .*raise --time-limit"):
            quantise(files / "loop.onnx", files / "data.npy", files / "q.onnx", time_limit="8s")
    assert time.monotonic() - begin < 40
    assert {one.pid for one in psutil.Process().children(recursive=True)} <= before
    assert not list(scratch.iterdir()) and not (files / "q.onnx").exists()


def test_a_model_that_takes_all_memory_is_an_error(files):
    net = FloatNet()
    x = net.conv("in", 3, 8, 3, 2)
    large = net.node(
        "Expand",
        net.node("ReduceSum", x, net.const(np.arange(4), np.int64)),
        net.const([1, 1, 1 << 15, 1 << 14], np.int64),
    )
    model = net.model(net.node("Add", x, net.node("ReduceMax", net.node("Cos", large), axes=[0, 1, 2, 3])))
    model.opset_import[0].version = 17
    onnx.save(model, files / "large.onnx")
    with pytest.raises(api.UsageError, match=r"(?s)large\.onnx: .*2,048 MiB of memory.*--memory-limit"):
        quantise(files / "large.onnx", files / "data.npy", files / "q.onnx", memory_limit=2048)


def test_a_loop_that_ends_is_quantised(files, capsys):
    looping(files / "loop.onnx", 3, "true", False)
    quantise(files / "loop.onnx", files / "data.npy", files / "q.onnx")
    assert "signal to quantisation noise" in capsys.readouterr().out


def test_limits_are_times_and_sizes(files):
    with pytest.raises(api.UsageError, match="--time-limit must be a time such as 10s"):
        quantise(files / "float.onnx", files / "data.npy", files / "q.onnx", time_limit="soon")


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_recurrent_nodes_are_unrolled_or_refused_before_they_are_quantised(files, kind, capsys):
    gates = {"LSTM": 4, "GRU": 3}[kind]
    for clip in (0.0, 3.0):
        net = FloatNet()
        x = net.node("Reshape", net.conv("in", 3, 4, 3), net.const([8, 1, -1], np.int64))
        weights = [net.const(net.rng.normal(0, 0.1, (1, gates * 5, size))) for size in (512, 5)]
        x = net.node(kind, x, *weights, hidden_size=5, **({"clip": clip} if clip else {}))
        onnx.save(net.model(net.dense(net.node("Reshape", x, net.const([1, 40], np.int64)), 40, 4)), files / "r.onnx")
        if clip:
            with pytest.raises(
                caesura.UsageError, match=f"r.onnx: it would be .*{kind} '/net.*unrolled: it has clip 3"
            ):
                quantise(files / "r.onnx", files / "data.npy", files / "q.onnx")
        else:
            quantise(files / "r.onnx", files / "data.npy", files / "q.onnx", as_json=True)
            found = json.loads(capsys.readouterr().out)
            assert not found["refused"] and not found["on_cpu"] and min(found["sqnr_db"].values()) > 20


def test_indices_stay_integers(files, capsys):
    """Embeddings of words: the table is quantised, its indices are not, and the CPU looks it up without --fallback."""
    net = FloatNet()
    x = net.node("Gather", net.random(20, 16), "ids")
    x = net.node("Relu", net.node("MatMul", x, net.random(16, 8)))
    ports = [helper.make_tensor_value_info("ids", 7, (1, 5)), helper.make_tensor_value_info(x, 1, (1, 5, 8))]
    graph = helper.make_graph(net.nodes, "net", ports[:1], ports[1:], net.initializers)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), files / "words.onnx")
    np.save(files / "ids.npy", np.arange(20).reshape(4, 1, 5))
    quantise(files / "words.onnx", files / "ids.npy", files / "q.onnx")
    told = " ".join(capsys.readouterr().out.split())
    assert "Gather '/net/Gather_0/node': looks up a constant table by indices of run time" in told
    for bad, message in (
        (np.full((1, 5), 0.5), "holds values that are no int64"),
        (np.full((1, 5), 20), "out of data bounds"),
    ):
        np.save(files / "bad.npy", bad)
        with pytest.raises((caesura.InputError, api.UsageError), match=message):
            quantise(files / "words.onnx", files / "bad.npy", files / "bad.onnx")
