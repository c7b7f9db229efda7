"""The worked example with 70 orders as a graph that compiles: operators in the form that this machine has for them.

relu -> {conv1 -> matmul -> mean -> add1, conv2 -> apxy -> sub -> add2} -> softmax. conv1, matmul, conv2 and the mean
over windows run on the arrays, the others on the vector unit. Sums, difference and product take relu's result as
their second operand. Softmax is a sum of both branches and a table of exponentials, without the division.
"""

import numpy as np

from compiler import ir

SIZE, CHANNELS, SEED = 20, 16, 70


def seventy_layers() -> ir.Graph:
    """Return the graph, with random weights."""
    graph, rng = ir.Graph("seventy"), np.random.default_rng(SEED)
    shape = (1, SIZE, SIZE, CHANNELS)

    def tensor(name: str) -> str:
        graph.tensors[name] = ir.Tensor(name, shape, "int8", 0.05, 0)
        return name

    def scaled(scale: float, count: int = 1, table: np.ndarray | None = None) -> ir.Requantisation:
        return ir.Requantisation(np.full(count, scale, np.float32), 0, -128, 127, table)

    def conv(name: str, source: str) -> None:
        weights = rng.integers(-127, 128, (CHANNELS, 1, 1, CHANNELS)).astype(np.int8)
        graph.ops.append(
            ir.Conv(
                name, [source], tensor(name), weights=weights, weight_zero_point=0,
                bias=np.zeros(CHANNELS, np.int32), requantise=scaled(1 / 300, CHANNELS), strides=(1, 1),
                pads=(0, 0, 0, 0), dilations=(1, 1), groups=1,
            )
        )  # fmt: skip

    def eltwise(name: str, kind: str, one: str, other: str, mb: int = 1, table: np.ndarray | None = None) -> None:
        scale = 1 / 64 if kind == "mul" else 0.5
        graph.ops.append(ir.Eltwise(name, [one, other], tensor(name), kind, scaled(scale, table=table), 1, mb))

    x = tensor("x")
    graph.inputs.append(ir.Port(x, "int8", shape, x, (0, 1, 2, 3), False))
    signed = np.arange(256, dtype=np.uint8).view(np.int8)
    graph.ops.append(ir.Table("relu", [x], tensor("relu"), np.maximum(signed, 0).view(np.uint8)))
    conv("conv1", "relu")
    conv("matmul", "conv1")
    graph.ops.append(
        ir.Pool("mean", ["matmul"], tensor("mean"), "avg", (3, 3), (1, 1), (1, 1, 1, 1), scaled(1.0))
    )  # fmt: skip
    eltwise("add1", "add", "mean", "relu")
    conv("conv2", "relu")
    eltwise("apxy", "mul", "conv2", "relu")
    eltwise("sub", "add", "apxy", "relu", mb=-1)
    eltwise("add2", "add", "sub", "relu")
    exponentials = np.clip(np.round(np.exp(signed / 32.0)), 0, 127).astype(np.uint8)
    eltwise("softmax", "add", "add1", "add2", table=exponentials)
    graph.outputs.append(ir.Port("y", "int8", shape, "softmax", (0, 1, 2, 3), False))
    return graph
