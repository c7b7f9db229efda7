"""Steps on the CPU that fail, lie, never end or take all memory: each ends with its error, and the next is exact."""

import os
import socket
import time

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from sim.host import ContainedModels, HostLimits, HostModelError, HostStepError, frames

X = np.arange(6, dtype=np.float32).reshape(2, 3)
OUT = {"y": (np.dtype(np.float32), (2, 3))}


def model(*nodes, constants=(), output="y"):
    graph = helper.make_graph(
        nodes, "step", [helper.make_tensor_value_info("x", TensorProto.FLOAT, (2, 3))],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)], constants,
    )  # fmt: skip
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return made.SerializeToString()


NEGATE = model(helper.make_node("Neg", ["x"], ["y"]))


def endless() -> bytes:
    """A loop whose condition always holds, over a product that takes a moment."""
    body = helper.make_graph(
        [helper.make_node("Identity", ["cond"], ["again"]), helper.make_node("Sin", ["v"], ["w"])], "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, ()),
            helper.make_tensor_value_info("cond", TensorProto.BOOL, ()),
            helper.make_tensor_value_info("v", TensorProto.FLOAT, (2, 3)),
        ],
        [
            helper.make_tensor_value_info("again", TensorProto.BOOL, ()),
            helper.make_tensor_value_info("w", TensorProto.FLOAT, (2, 3)),
        ],
    )  # fmt: skip
    true = helper.make_tensor("true", TensorProto.BOOL, (), [True])
    return model(helper.make_node("Loop", ["", "true", "x"], ["y"], body=body), constants=[true])


def greedy(elements: int) -> bytes:
    """A sum over a tensor of that many elements, which it makes at run time."""
    shape = helper.make_tensor("shape", TensorProto.INT64, (1,), [elements])
    zero = helper.make_tensor("none", TensorProto.FLOAT, (), [0])
    return model(
        helper.make_node("ReduceSum", ["x"], ["s"], keepdims=0), helper.make_node("Mul", ["s", "none"], ["z"]),
        helper.make_node("Expand", ["z", "shape"], ["large"]), helper.make_node("Cos", ["large"], ["c"]),
        helper.make_node("ReduceSum", ["c"], ["t"], keepdims=0), helper.make_node("Add", ["x", "t"], ["y"]),
        constants=[shape, zero],
    )  # fmt: skip


def external() -> bytes:
    parsed = onnx.load_from_string(model(helper.make_node("Add", ["x", "w"], ["y"])))
    tensor = parsed.graph.initializer.add(name="w", data_type=TensorProto.FLOAT, dims=(2, 3))
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="secret.bin")
    return parsed.SerializeToString()


def sparse() -> onnx.SparseTensorProto:
    """With values in a file."""
    tensor = onnx.SparseTensorProto(dims=[6])
    tensor.values.CopyFrom(outside("values"))
    tensor.indices.CopyFrom(helper.make_tensor("indices", TensorProto.INT64, (6,), range(6)))
    return tensor


def outside(name: str) -> TensorProto:
    tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=(6,), data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="secret.bin")
    return tensor


def hidden(where: str) -> bytes:
    """A tensor in a file, in an odd place of a model."""
    parsed = onnx.load_from_string(NEGATE)
    if where == "sparse":
        parsed.graph.sparse_initializer.append(sparse())
    elif where == "sparse attribute":
        parsed.graph.node.append(helper.make_node("Constant", [], ["c"], sparse_value=sparse()))
    elif where == "branch":
        branch = helper.make_graph([], "branch", [], [], [outside("w")])
        parsed.graph.node.append(helper.make_node("If", ["c"], ["d"], then_branch=branch, else_branch=branch))
    else:
        body = [helper.make_node("Constant", [], ["y"], value=outside("w"))]
        parsed.functions.append(helper.make_function("own", "F", [], ["y"], body, [helper.make_opsetid("", 17)]))
    return parsed.SerializeToString()


def test_a_step_runs_elsewhere():
    given = ContainedModels([NEGATE, model(helper.make_node("Abs", ["x"], ["y"]))])
    assert np.array_equal(given.run(0, {"x": X, "more": X}, OUT)["y"], -X)
    assert np.array_equal(given.run(1, {"x": -X}, OUT)["y"], X)
    assert given._process._process._child.pid != os.getpid()


def test_the_process_of_the_same_models_is_kept():
    assert ContainedModels([NEGATE])._process is ContainedModels([NEGATE])._process


@pytest.mark.parametrize(
    ("outputs", "said"),
    [
        ({"y": (np.dtype(np.int8), (2, 3))}, "float32 .2, 3. for tensor 'y', the image says int8"),
        ({"y": (np.dtype(np.float32), (3, 2))}, "the image says float32 .3, 2."),
        ({"z": (np.dtype(np.float32), (2, 3))}, "onnxruntime: .*z"),
    ],
)
def test_what_comes_back_is_looked_at(outputs, said):
    given = ContainedModels([NEGATE])
    with pytest.raises(HostStepError, match=said):
        given.run(0, {"x": X}, outputs)
    assert np.array_equal(given.run(0, {"x": X}, OUT)["y"], -X)


def test_a_missing_input_is_an_error():
    with pytest.raises(HostStepError, match="x"):
        ContainedModels([NEGATE]).run(0, {}, OUT)


def test_a_step_that_never_ends():
    given = ContainedModels([endless(), NEGATE], HostLimits(seconds=0.5))
    with pytest.raises(HostStepError, match=r"no result after 0.5 seconds"):
        given.run(0, {"x": X}, OUT)
    assert np.array_equal(given.run(1, {"x": X}, OUT)["y"], -X)


def test_a_step_that_takes_all_memory():
    given = ContainedModels([greedy(1 << 30), NEGATE], HostLimits(memory=2 << 30))
    with pytest.raises(HostStepError, match=r"onnxruntime|may use 2,048 MiB"):
        given.run(0, {"x": X}, OUT)
    assert np.array_equal(given.run(1, {"x": X}, OUT)["y"], -X)


def test_a_process_that_dies_is_replaced():
    given = ContainedModels([NEGATE])
    given._process._process._child.kill()
    given._process._process._child.wait()
    assert np.array_equal(given.run(0, {"x": X}, OUT)["y"], -X)


def test_external_files_are_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secret.bin").write_bytes(X.tobytes())
    with pytest.raises(HostModelError, match="tensor 'w' names an external file"):
        ContainedModels([NEGATE, external()])


@pytest.mark.parametrize("where", ["sparse", "sparse attribute", "branch", "function"])
def test_external_files_are_found_wherever_they_hide(where):
    with pytest.raises(HostModelError, match="names an external file"):
        ContainedModels([hidden(where)])


def test_more_than_was_asked_for_is_not_read():
    """The answer is looked at before this process makes room for it."""
    shape = helper.make_tensor("shape", TensorProto.INT64, (1,), [1 << 22])
    nodes = helper.make_node("ReduceSum", ["x"], ["s"], keepdims=0), helper.make_node("Expand", ["s", "shape"], ["y"])
    given = ContainedModels([model(*nodes, constants=[shape]), NEGATE])
    with pytest.raises(HostStepError, match=r"16,777,216 bytes of arrays, 1,048,600 at most"):
        given.run(0, {"x": X}, OUT)
    assert np.array_equal(given.run(1, {"x": X}, OUT)["y"], -X)


@pytest.mark.parametrize(
    "header",
    [b"{", b"[]", b"{}", b'{"arrays": 3}', b'{"arrays": [["y", "O", [1]]]}', b'{"arrays": [["y", "<f4", [-1]]]}',
     b'{"arrays": [["y", "<f4", [100000]]]}', b'{"arrays": [["y", "i4,O", [1]]]}'],
)  # fmt: skip
def test_answers_that_are_none(header):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(len(header).to_bytes(4, "little") + header + bytes(24))
        with pytest.raises(frames.FrameError):
            frames.receive(ours, time.monotonic() + 5, 24)


@pytest.mark.parametrize("junk", [b"junk", b"", b"ORTM" * 100])
def test_junk_is_refused(junk):
    with pytest.raises(HostModelError):
        ContainedModels([junk])
