"""Libraries and networks that ``caesura bench kernels`` measures."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from benchmarks.workloads import workload
from compiler import DynamicDimension
from hw.image import KernelAttributes
from sw.kernels import KernelDemand, KernelLibrary, KernelOperation, LibraryKernel, Quotient, demands_of

KERNELS = 10_000
LENGTHS = range(1, 385)
_CHANNELS, _SCALE, _ZERO = 16, 0.06, -5
_WEIGHTS = 0.0123456789  #: their scale: of so many digits that no result lies half-way between two integers


def example() -> tuple[KernelDemand, KernelLibrary[None]]:
    """Return the worked example of **Run-time kernel matching**: what attention asks for in a model with 160 in two
    heads, and the kernels a (512), b (1024), c (128 to 1024)."""
    attention = KernelOperation(
        "attention", {"head_size": Quotient("total_head_size", "heads")}, ("sequence", "length")
    )
    (demand,) = demands_of([attention], {"total_head_size": 160, "heads": 2})
    covered: dict[str, int | str] = {"a": 512, "b": 1024, "c": "128..1024"}
    return demand, KernelLibrary([_kernel(name, 80, each) for name, each in covered.items()])


def mixed_library() -> tuple[KernelLibrary[None], list[KernelDemand]]:
    """Of 100 head sizes each: 64 exact kernels for every second length, 36 ranges that overlap."""
    kernels, demands = [], []
    for head in range(8, 808, 8):
        for number in range(64):
            kernels.append(_kernel("exact", head, 2 * number + 2))
        for number in range(36):
            kernels.append(_kernel("range", head, f"{number + 1}..{129 + 7 * number}"))
        demands.append(KernelDemand("attention", {"head_size": head}, "sequence"))
    return KernelLibrary(kernels), demands


def causal_network() -> onnx.ModelProto:
    """Convolutions over a length that look back only, so that a sequence may be padded at its end."""
    return _network((2, 0))


def same_network() -> onnx.ModelProto:
    """The same with padding on both sides."""
    return _network((1, 1))


def dynamic_encoder(workload_name: str) -> DynamicDimension:
    """Return an encoder of the workloads with a length that is not fixed: its weights and scales are the same for
    each."""
    proto = onnx.load(workload(workload_name))
    for value in (*proto.graph.input, *proto.graph.output):
        value.type.tensor_type.shape.dim[1].dim_param = "length"
    del proto.graph.value_info[:]
    return DynamicDimension.of(proto, name=workload_name)


def _kernel(name: str, head: int, covered: int | str) -> LibraryKernel[None]:
    return LibraryKernel(name, KernelAttributes.of({"head_size": head}, "sequence", covered), None)


def _network(pads: tuple[int, int], layers: int = 4) -> onnx.ModelProto:
    """int8 (1, 16, L) in and out, QDQ, seeded weights."""
    rng = np.random.default_rng(0)
    values = {"s": np.float32(_SCALE), "z": np.int8(_ZERO), "ws": np.float32(_WEIGHTS), "wz": np.int8(0)}
    values |= {"bs": np.float32(_SCALE) * np.float32(_WEIGHTS), "bz": np.int32(0)}
    constants = [numpy_helper.from_array(np.asarray(value), name) for name, value in values.items()]
    nodes = [helper.make_node("DequantizeLinear", ["x", "s", "z"], ["d0"])]
    for i in range(layers):
        weights = rng.integers(-127, 128, (_CHANNELS, _CHANNELS, 3)).astype(np.int8)
        constants.append(numpy_helper.from_array(weights, f"w{i}"))
        constants.append(numpy_helper.from_array(rng.integers(-2000, 2000, _CHANNELS).astype(np.int32), f"b{i}"))
        nodes += [
            helper.make_node("DequantizeLinear", [f"w{i}", "ws", "wz"], [f"wd{i}"]),
            helper.make_node("DequantizeLinear", [f"b{i}", "bs", "bz"], [f"bd{i}"]),
            helper.make_node("Conv", [f"d{i}", f"wd{i}", f"bd{i}"], [f"c{i}"], pads=list(pads)),
            helper.make_node("Relu", [f"c{i}"], [f"r{i}"]),
            helper.make_node("QuantizeLinear", [f"r{i}", "s", "z"], [f"q{i}"]),
            helper.make_node("DequantizeLinear", [f"q{i}", "s", "z"], [f"d{i + 1}"]),
        ]
    ports = [
        helper.make_tensor_value_info(name, TensorProto.INT8, [1, _CHANNELS, "L"]) for name in ("x", f"q{layers - 1}")
    ]
    graph = helper.make_graph(nodes, "network", ports[:1], ports[1:], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
