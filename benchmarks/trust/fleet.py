"""Models that storms of requests are about: small networks compiled in all the ways that make them share a device, and
what each has to compute for many inputs."""

import copy
import dataclasses
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

import caesura
from benchmarks.trust.under_test import kept
from compiler import Options
from examples.digits import MODEL, SAMPLES
from examples.digits.evaluate import reference_logits
from hw.contract.params import KIB, preset
from hw.image import Image

PARAMS = preset("tiny").replace(name="tiny2", engines=2)
_INTERVAL = 2000  #: cycles between cancellation points


@dataclass(frozen=True)
class Craft:
    """A network as it was compiled, with ``inputs`` and the ``outputs`` that belong to them."""

    kind: str
    image: Image
    inputs: npt.NDArray
    outputs: npt.NDArray

    @property
    def engines(self) -> int:
        """How many engines of the device it takes."""
        return self.image.meta.parts or 1 + max(job.engine for job in self.image.meta.jobs)

    def named(self, name: str) -> Image:
        """The image under a name of its own, so that errors say which load of it they are about."""
        meta = copy.copy(self.image.meta)
        meta.model = name
        return Image(meta, self.image.code, self.image.weights, self.image.host_models)


@cache
def fleet() -> dict[str, Craft]:
    """All of them, by kind."""
    digits = np.load(SAMPLES)["input"]
    logits = _expected(MODEL, digits)
    make = partial(_craft, MODEL, digits, logits)
    with TemporaryDirectory() as folder:
        on_host = _written(Path(folder), "with a step on the CPU", 3, 6, softmax=True, lv2_limit=24 * KIB)
        long = _written(Path(folder), "with long bodies", 16, 12, softmax=False, lv2_limit=32 * KIB)
    crafts = (
        make("in little LV2", lv2_limit=16 * KIB),  # windows of its jobs share bytes
        make("with weights that stay", lv2_limit=32 * KIB),
        make("in all of LV2"),
        make("without points", lv2_limit=18 * KIB, cancel_interval=0),
        make("on two engines", engines=2, lv2_limit=18 * KIB),
        make("placed", engines=2, placed=True, lv2_limit=48 * KIB),
        on_host,
        long,
    )
    return {craft.kind: craft for craft in crafts}


def _craft(path: Path, inputs: npt.NDArray, outputs: npt.NDArray, kind: str, **options: Any) -> Craft:
    chosen = dataclasses.replace(Options(cancel_interval=_INTERVAL), **options)
    image = partial(caesura.compile, path, PARAMS, engines=chosen.engines, options=chosen)
    raw = kept(f"image {kind}", lambda: image().to_bytes())
    return Craft(kind, Image.from_bytes(raw), inputs, outputs)


def _expected(path: Path, inputs: npt.NDArray) -> npt.NDArray:
    raw = kept(f"outputs of {path.stem}", lambda: reference_logits(path, inputs).tobytes())
    return np.frombuffer(raw, np.float32).reshape(len(inputs), *_shape_of_one(path))


def _shape_of_one(path: Path) -> list[int]:
    return [d.dim_value for d in onnx.load(path).graph.output[0].type.tensor_type.shape.dim[1:]]


def _written(folder: Path, kind: str, channels: int, size: int, *, softmax: bool, **options: Any) -> Craft:
    """Of a network of one convolution, with or without a softmax, which the CPU computes."""
    path = folder / f"{channels}_{size}.onnx"
    path.write_bytes(_convolution(channels, size, softmax=softmax))
    inputs = np.random.default_rng(channels).uniform(-6, 6, (24, channels, size, size)).astype(np.float32)
    return _craft(path, inputs, _expected(path, inputs), kind, **options)


def _convolution(channels: int, size: int, *, softmax: bool) -> bytes:
    weights = np.random.default_rng(size).integers(-100, 100, (channels, channels, 3, 3)).astype(np.int8)
    numbers = {"s": np.array(0.05, "f4"), "t": np.array(0.9, "f4"), "z": np.array(0, "i1"), "w": weights}
    constants = [numpy_helper.from_array(value, name) for name, value in numbers.items()]
    nodes = [
        helper.make_node("QuantizeLinear", ["input", "s", "z"], ["xq"]),
        helper.make_node("DequantizeLinear", ["xq", "s", "z"], ["x"]),
        helper.make_node("DequantizeLinear", ["w", "s", "z"], ["wf"]),
        helper.make_node("Conv", ["x", "wf"], ["y"], pads=[1] * 4, kernel_shape=[3, 3]),
        helper.make_node("QuantizeLinear", ["y", "t", "z"], ["yq"]),
        helper.make_node("DequantizeLinear", ["yq", "t", "z"], ["yf" if softmax else "output"]),
    ]
    if softmax:
        nodes.append(helper.make_node("Softmax", ["yf"], ["output"], axis=-1))
    shape = [1, channels, size, size]
    read, made = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("input", "output"))
    graph = helper.make_graph(nodes, "written", [read], [made], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    return bytes(model.SerializeToString())
