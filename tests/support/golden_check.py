"""Import a model, run the reference on random inputs, and compare with onnxruntime layer by layer and at the end."""

import numpy as np
import onnx

from compiler import golden, reference
from compiler.frontend import import_model
from compiler.ir import Graph


def random_inputs(graph: Graph, seed: int = 0, narrow: int | None = None) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    values = {}
    for port in graph.inputs:
        if port.dtype == "float32":
            values[port.name] = rng.normal(0, 1, port.shape).astype(np.float32)
        else:
            info = np.iinfo(port.dtype)
            values[port.name] = rng.integers(info.min, info.max + 1, port.shape).astype(port.dtype)
    return values


def check_graph(graph: Graph, values: dict[str, np.ndarray]) -> list[golden.OperatorCheck]:
    """Judge every operator, given the value of every tensor."""
    return [golden.check_layer(graph, op, values, values[op.output]) for op in graph.ops]


def check_model(
    model: onnx.ModelProto, *, exact: bool = False, fallback: bool = False, seed: int = 0, **options
) -> Graph:
    """Assert the contract for every layer and 1 LSB (0 if ``exact``) at the outputs; the graph for more checks."""
    graph = import_model(model, fallback=fallback, **options)
    inputs = random_inputs(graph, seed)
    values = reference.run_all(graph, inputs)
    for check in check_graph(graph, values):
        assert check.ok, check
        assert not (exact and check.mismatches), check
    wanted = golden.golden_outputs(model, inputs)
    for name, value in reference.run(graph, inputs).items():
        assert value.shape == wanted[name].shape
        assert value.dtype == wanted[name].dtype
        difference = np.abs(value.astype(np.float64) - wanted[name].astype(np.float64)).max()
        port = next(port for port in graph.outputs if port.name == name)
        step = graph.tensors[port.tensor].scale if port.quantise else 1
        assert difference <= (0 if exact else step * 1.001), (name, difference)
    return graph


def kinds(graph: Graph) -> list[str]:
    return [op.kind for op in graph.ops]
