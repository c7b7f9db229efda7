"""Files that no honest tool writes: models, images, inputs and machines with flaws."""

import hashlib
import io
import json
import math
import random
import struct
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from hw.contract.params import SocParams
from hw.image import MAGIC, VERSION

_HEADER = struct.Struct("<4sHHIIIIQ32s")
_NUMBERS = (0, 1, -1, 2, 3, 255, -128, 65536, 1 << 24, (1 << 31) - 1, 1 << 31, 1 << 40, (1 << 62) + 1, -(1 << 63))
_MOST_ZEROS = 1 << 26  #: bytes that a file of zeros unpacks to, at most
_TEXTS = ("", "\0", "../../etc/passwd", "a" * 5000, "\u202e", "{}", "nan", "x\ny", "input", "conv1")


def hostile_model(rng: random.Random, model: bytes) -> bytes:
    """``model``, a serialised ONNX model, with flaws in its bytes or in its structure."""
    if rng.random() < 0.3:
        return _noise(rng, model)
    proto = onnx.load_model_from_string(model)
    for _ in range(rng.randint(1, 3)):
        rng.choice(_MODEL_FLAWS)(rng, proto)
    return proto.SerializeToString()


def small_model(rng: random.Random) -> bytes:
    """A model of one quantised operator, which takes little time to compile."""
    channels, size, kernel = rng.choice((1, 3, 4, 8)), rng.randint(3, 9), rng.choice((1, 3))
    weights = np.random.default_rng(rng.randrange(1 << 30)).integers(-100, 100, (4, channels, kernel, kernel))
    scale, zero = _scalar(0.05, "f4", "s"), _scalar(0, "i1", "z")
    constants = [scale, zero, numpy_helper.from_array(weights.astype(np.int8), "w")]
    nodes = [
        helper.make_node("QuantizeLinear", ["input", "s", "z"], ["xq"]),
        helper.make_node("DequantizeLinear", ["xq", "s", "z"], ["x"]),
        helper.make_node("DequantizeLinear", ["w", "s", "z"], ["wf"]),
        helper.make_node("Conv", ["x", "wf"], ["y"], pads=[kernel // 2] * 4, kernel_shape=[kernel, kernel]),
        helper.make_node("QuantizeLinear", ["y", "s", "z"], ["yq"]),
        helper.make_node("DequantizeLinear", ["yq", "s", "z"], ["output"]),
    ]
    read = helper.make_tensor_value_info("input", TensorProto.FLOAT, [1, channels, size, size])
    made = helper.make_tensor_value_info("output", TensorProto.FLOAT, [1, 4, size, size])
    graph = helper.make_graph(nodes, "small", [read], [made], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8).SerializeToString()


def hostile_image(rng: random.Random, image: bytes) -> bytes:
    """``image`` with flaws in its bytes, with or without a digest that fits, or in its metadata."""
    if rng.random() < 0.15:
        return _noise(rng, image)
    fields = list(_HEADER.unpack_from(image))
    body = image[_HEADER.size :]
    sizes = [fields[3], fields[4], fields[5], fields[6]]
    parts, at = [], 0
    for size in sizes:
        parts.append(body[at : at + size])
        at += size
    if rng.random() < 0.25:
        number = rng.randrange(4)
        parts[number] = _noise(rng, parts[number])
    else:
        meta = json.loads(parts[0])
        for _ in range(rng.randint(1, 3)):
            _spoil(rng, meta)
        parts[0] = json.dumps(meta).encode("utf-8", "surrogatepass")
    body = b"".join(parts)
    return _HEADER.pack(MAGIC, VERSION, 0, *(len(part) for part in parts), 0, hashlib.sha256(body).digest()) + body


def hostile_inputs(rng: random.Random, samples: bytes) -> bytes:
    """A file of inputs: noise, headers that lie, types that nobody asked for, and much in little."""
    what = rng.random()
    if what < 0.4:
        return _noise(rng, samples)
    if what < 0.6:
        shape = [rng.choice((*_NUMBERS, 8, 10)) for _ in range(rng.randrange(5))]
        kind = rng.choice(("<f4", "|O", "<i8", "|V9", "<U5", "|S3", "<c16", "<M8[s]", "f9", ">f8", "|b1"))
        head = repr({"descr": kind, "fortran_order": rng.choice((True, False, 3)), "shape": tuple(shape)}).encode()
        array = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + rng.randbytes(rng.randrange(2000))
    elif what < 0.75:
        shape = [rng.choice((0, 1, 2, 8, 64, 500)) for _ in range(rng.randrange(6))]
        while math.prod(shape) > _MOST_ZEROS:
            shape.pop()
        array = _saved(np.zeros(shape, np.int8))
    elif what < 0.8:
        array = bytes(1 << rng.choice((20, 26)))
    else:
        kind, count = rng.choice(("f2", "f4", "f8")), rng.choice((64, 60))
        numbers = np.array(([np.nan, np.inf, -np.inf, 6e4, -0.0] * 13)[:count], kind)
        array = _saved(numbers.reshape((1, 1, 8, 8) if numbers.size == 64 else -1))
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
        for _ in range(rng.choice((1, 1, 1, 2))):
            archive.writestr(rng.choice(("input.npy", "input", "../input.npy", "x.npy", "input.npy")), array)
    return file.getvalue()


def hostile_machine(rng: random.Random) -> bytes:
    """A TOML file of parameters."""
    names = [*SocParams().to_dict(), "preset", "nonsense"]
    values = ["4", "-1", "0", "1.5", "nan", "true", '"4MiB"', '"tiny"', '"\\u0000"', "[1]", "{a = 1}", "1979-05-27",
              "99999999999999999999999", '"9999999999999999GiB"', "0x10", '"' + "x" * 3000 + '"']  # fmt: skip
    lines = [f"{rng.choice(names)} = {rng.choice(values)}" for _ in range(rng.randrange(5))]
    raw = "\n".join(lines).encode()
    return _noise(rng, raw or b"x") if rng.random() < 0.2 else raw


def _scalar(value: float, kind: str, name: str) -> TensorProto:
    return numpy_helper.from_array(np.array(value, kind), name)


def _saved(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def _noise(rng: random.Random, data: bytes) -> bytes:
    """Bytes turned over, taken out, put in, or cut off."""
    raw = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        at, what = rng.randrange(len(raw) + 1), rng.randrange(5)
        if what == 0:
            del raw[at:]
        elif what == 1:
            raw[at:at] = rng.randbytes(rng.randint(1, 20))
        elif what == 2:
            del raw[at : at + rng.randint(1, 50)]
        elif at < len(raw):
            raw[at] = rng.randrange(256) if what == 3 else raw[at] ^ 1 << rng.randrange(8)
    return bytes(raw)


def _spoil(rng: random.Random, tree: Any) -> None:
    """Change one leaf, or one branch, of JSON data."""
    while True:
        keys = list(tree) if isinstance(tree, dict) else list(range(len(tree)))
        if not keys:
            return
        key = rng.choice(keys)
        if isinstance(tree[key], (dict, list)) and tree[key] and rng.random() < 0.9:
            tree = tree[key]
            continue
        old = tree[key]
        near = [old + 1, old - 1, -old, old * 2, old + 64] if isinstance(old, int) else []
        odd: list[Any] = [*near, *near, rng.choice(_NUMBERS), rng.choice(_TEXTS), None, [], {}, True, 0.5, 1e308]
        odd += [float("nan"), float("inf"), [old], rng.choice(_NUMBERS)]
        what = rng.random()
        if what < 0.1:
            del tree[key]
        elif what < 0.2 and isinstance(tree, list):
            tree.insert(key, old)
        else:
            tree[key] = rng.choice(odd)
        return


def _wrong_dimension(rng: random.Random, proto: onnx.ModelProto) -> None:
    tensors = [*proto.graph.input, *proto.graph.output]
    dims = rng.choice(tensors).type.tensor_type.shape.dim
    if not dims or rng.random() < 0.2:
        dims.add().dim_value = rng.choice(_NUMBERS)
    else:
        rng.choice(dims).dim_value = rng.choice(_NUMBERS)


def _wrong_attribute(rng: random.Random, proto: onnx.ModelProto) -> None:
    found = [attribute for node in proto.graph.node for attribute in node.attribute]
    if not found:
        return
    attribute = rng.choice(found)
    if attribute.ints and rng.random() < 0.8:
        attribute.ints[rng.randrange(len(attribute.ints))] = rng.choice(_NUMBERS)
    elif attribute.ints:
        attribute.ints.append(rng.choice(_NUMBERS))
    else:
        attribute.i, attribute.f = rng.choice(_NUMBERS), rng.choice((float("nan"), float("inf"), -1.0))


def _wrong_node(rng: random.Random, proto: onnx.ModelProto) -> None:
    node = rng.choice(proto.graph.node)
    names = [name for each in proto.graph.node for name in (*each.input, *each.output)]
    what = rng.randrange(5)
    if what == 0:
        node.op_type = rng.choice(("Conv", "Add", "Reshape", "Loop", "If", "Gather", "Softmax", *_TEXTS[:4]))
    elif what == 1 and node.input:
        node.input[rng.randrange(len(node.input))] = rng.choice((*names, "", "nowhere"))
    elif what == 2 and node.output:
        node.output[rng.randrange(len(node.output))] = rng.choice((*names, "", "elsewhere"))
    elif what == 3:
        del proto.graph.node[rng.randrange(len(proto.graph.node))]
    else:
        node.domain = rng.choice(("ai.onnx.ml", "com.microsoft", *_TEXTS[:3]))


def _wrong_constant(rng: random.Random, proto: onnx.ModelProto) -> None:
    if not proto.graph.initializer:
        return
    tensor = rng.choice(proto.graph.initializer)
    what = rng.randrange(6)
    if what == 0 and tensor.dims:
        tensor.dims[rng.randrange(len(tensor.dims))] = rng.choice(_NUMBERS)
    elif what == 1:
        tensor.data_type = rng.randrange(30)
    elif what == 2:
        tensor.raw_data = tensor.raw_data[: rng.randrange(len(tensor.raw_data) + 1)]
    elif what == 3:
        tensor.data_location = TensorProto.EXTERNAL
        entry = tensor.external_data.add()
        entry.key, entry.value = "location", rng.choice(("/etc/hostname", "../x", "", "pyproject.toml"))
    elif what == 4 and tensor.raw_data:
        tensor.raw_data = rng.randbytes(len(tensor.raw_data))
    else:
        tensor.name = rng.choice(_TEXTS)


def _wrong_version(rng: random.Random, proto: onnx.ModelProto) -> None:
    if proto.opset_import and rng.random() < 0.8:
        proto.opset_import[0].version = rng.choice(_NUMBERS)
    else:
        proto.ir_version = rng.choice(_NUMBERS)


_MODEL_FLAWS: list[Callable[[random.Random, onnx.ModelProto], None]] = [
    _wrong_dimension, _wrong_attribute, _wrong_node, _wrong_constant, _wrong_node, _wrong_constant, _wrong_version,
]  # fmt: skip
