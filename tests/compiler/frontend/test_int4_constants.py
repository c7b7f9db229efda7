"""Weights of four bits: imported as int8 of the same values, and known as int4 where they are symmetric."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from compiler import golden, ir, reference
from compiler.frontend import UnsupportedModel, import_model
from sim.host import session
from tests.support.golden_check import check_model, random_inputs
from tests.support.onnx_models import Net

INT4, UINT4 = map(helper.tensor_dtype_to_np_dtype, (TensorProto.INT4, TensorProto.UINT4))


def weights(net: Net, shape, dtype, zero_point: int, axis: int | None = None, constant: bool = False) -> str:
    """Dequantised weights over their whole range, of an initialiser or a node."""
    data = net.rng.integers(*((-8, 8) if dtype is INT4 else (0, 16)), shape)
    count = () if axis is None else (shape[axis],)
    scale, stored = net.const(net.rng.uniform(0.05, 0.1, count), np.float32), net.const(data, dtype)
    if constant:
        stored = net.node("Constant", [], value=net.initializers.pop())
    zero = net.const(np.full(count, zero_point), dtype)
    return net.node("DequantizeLinear", [stored, scale, zero], **({} if axis is None else {"axis": axis}))


def product(op: str, shape, dtype, zero_point: int, axis: int | None = None, constant: bool = False, **attributes):
    net = Net(21)
    wide = weights(net, shape, dtype, zero_point, axis, constant)
    x = net.dq(net.input((3, 20)), 0.04, -9)
    return net.model(net.q(net.node(op, [x, wide], **attributes), 0.5, 5))


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("axis", [None, 1])
@pytest.mark.parametrize(("dtype", "zero_point", "int4"), [(INT4, 0, True), (UINT4, 8, True), (UINT4, 3, False)])
def test_products(dtype, zero_point, int4, axis, constant):
    model = product("MatMul", (20, 7), dtype, zero_point, axis, constant)
    graph = check_model(model, exact=True)
    (conv,) = graph.ops
    assert isinstance(conv, ir.Conv) and conv.int4 == int4
    assert conv.weights.dtype == (np.int8 if int4 else np.uint8) and (conv.weight_zero_point == 0) == int4
    inputs = random_inputs(graph)
    (found,) = reference.run(graph, inputs).values()
    (wanted,) = session(model, as_written=True).run(None, inputs)  # as int4, in float32
    assert np.abs(found.astype(int) - wanted).max() <= 1 and (found != wanted).mean() < 0.05
    (wanted,) = golden.golden_outputs(model, inputs).values()
    assert np.array_equal(found, wanted)


def test_gemm_with_transposed_weights():
    graph = check_model(product("Gemm", (7, 20), INT4, 0, 0, transB=1), exact=True)
    assert graph.ops[0].int4


def test_weights_that_are_not_int4_by_type_are_not_taken_for_it():
    net = Net(21)
    small = net.dq(net.const(net.array((20, 7), limit=3)), 0.05)
    x = net.dq(net.input((3, 20)), 0.04, -9)
    graph = import_model(net.model(net.q(net.node("MatMul", [x, small]), 0.5, 5)))
    assert not graph.ops[0].int4


def test_convolutions_take_them_as_int8():
    net = Net(21)
    wide = weights(net, (4, 3, 3, 3), INT4, 0, 0)
    x = net.dq(net.input((1, 3, 8, 8)), 0.04, -9)
    graph = check_model(net.model(net.q(net.node("Conv", [x, wide]), 0.5, 5)), exact=True)
    assert not graph.ops[-1].int4 and graph.ops[-1].weights.dtype == np.int8


def test_blocks_are_refused_by_name():
    net = Net(21)
    data, scale = net.const(net.rng.integers(-8, 8, (32, 7)), INT4), net.const(np.full((2, 7), 0.05), np.float32)
    x = net.dq(net.input((3, 32)), 0.04, -9)
    wide = net.node("DequantizeLinear", [data, scale], axis=0, block_size=16, name="blocked")
    with pytest.raises(UnsupportedModel, match=r"blocked.*quantisation by blocks; quantise per tensor or per channel"):
        import_model(net.model(net.q(net.node("MatMul", [x, wide]), 0.5, 5)))


def test_other_weights_are_no_int4_operator():
    graph = check_model(product("MatMul", (20, 7), INT4, 0))
    (conv,) = graph.ops
    conv.weights[0] = 8
    tensors = [graph.tensors[name] for name in conv.inputs]
    assert list(conv.problems(tensors, graph.tensors[conv.output])) == ["weights are not int4 with zero point 0"]
