"""The operator Attention: refused with a way out, and on the CPU where that is allowed."""

import numpy as np
import pytest

from compiler.frontend import import_model
from compiler.frontend.problems import UnsupportedModel
from tests.support.golden_check import check_model, kinds
from tests.support.onnx_models import Net


def _attention(rank: int, mask: str | None = None, scale: float | None = None):
    """Three heads of 8 values between quantised values, with a projection behind."""
    net = Net(opset=23)
    shape = (1, 3, 10, 8) if rank == 4 else (1, 10, 24)
    inputs = [net.dq(net.input(shape, "int8", name), 0.03, 5) for name in "qkv"]
    if mask == "constant":
        inputs.append(net.const(np.tril(np.ones((10, 10), bool))))
    elif mask == "quantised":
        inputs.append(net.dq(net.input((10, 10), "int8", "mask"), 0.1, 127))
    given = {} if rank == 4 else {"q_num_heads": 3, "kv_num_heads": 3}
    given |= {} if scale is None else {"scale": scale}
    mixed = net.node("Attention", inputs, name="attention", **given)
    mixed = net.dq(net.q(mixed, 0.02), 0.02)
    weights, _ = net.weights((shape[-1], 12), None)
    return net.model(net.q(net.node("MatMul", [mixed, weights]), 0.1))


@pytest.mark.parametrize("rank", [3, 4])
def test_it_is_refused_with_a_way_out(rank):
    with pytest.raises(UnsupportedModel, match="export with opset 22 or earlier") as error:
        import_model(_attention(rank))
    assert [node.name for node in error.value.nodes] == ["attention"] and "Give fallback=True" in str(error.value)


@pytest.mark.parametrize("scale", [None, 0.5])
@pytest.mark.parametrize("mask", [None, "constant", "quantised"])
@pytest.mark.parametrize("rank", [3, 4])
def test_the_cpu_computes_it_where_that_is_allowed(rank, mask, scale):
    graph = check_model(_attention(rank, mask, scale), fallback=True)
    (host,) = (op for op in graph.ops if op.kind == "host")
    assert "attention" in host.nodes and "conv" in kinds(graph)
