"""Compiled element-wise operators on the functional model equal the NumPy reference."""

import numpy as np
import pytest

from hw.contract.params import preset
from tests.support.graphs import GraphBuilder, check

TINY, BASE = preset("tiny"), preset("base")
both = pytest.mark.parametrize("params", [TINY, BASE], ids=lambda p: p.name)


@both
@pytest.mark.parametrize("kind", ["add", "mul"])
@pytest.mark.parametrize("b_shape", [(2, 9, 7, 13), (2, 1, 1, 13), (1, 1, 1, 1)])
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_eltwise(kind, b_shape, dtype, params):
    build = GraphBuilder(sum(b_shape))
    a, b = build.input((2, 9, 7, 13), dtype), build.input(b_shape)
    y = build.eltwise(kind, a, b, table=kind == "mul")
    build.output(build.eltwise("add", build.table(y), y))
    check(build.graph, params)


@both
@pytest.mark.parametrize("kind", ["min", "max"])
@pytest.mark.parametrize("b_shape", [(2, 9, 7, 13), (2, 1, 1, 13), (1, 1, 1, 1)])
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_smaller_and_larger(kind, b_shape, dtype, params):
    build = GraphBuilder(sum(b_shape))
    a, b = build.input((2, 9, 7, 13), dtype), build.input(b_shape, dtype)
    tensors = build.graph.tensors
    tensors[b].zero_point, tensors[b].scale = tensors[a].zero_point, tensors[a].scale
    y = build.eltwise(kind, a, b, table=True)
    build.output(build.eltwise("add", build.table(y), a))
    check(build.graph, params)


@both
def test_eltwise_with_a_constant_and_with_itself(params):
    build = GraphBuilder(3)
    rng = np.random.default_rng(3)
    constant = build.tensor((1, 1, 1, 21), "int8", rng.integers(-128, 128, (1, 1, 1, 21)).astype(np.int8))
    x = build.input((1, 8, 8, 21))
    y = build.eltwise("mul", x, constant)
    build.output(build.eltwise("add", y, y))
    check(build.graph, params)


def test_large_eltwise_passes_through_dram():
    build = GraphBuilder(4)
    a, b = build.input((1, 60, 60, 17)), build.input((1, 60, 60, 17))
    build.output(build.table(build.eltwise("add", build.table(a), build.table(b))))
    check(build.graph, TINY.replace(lv2_bytes=32 * 1024))
