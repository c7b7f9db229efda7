"""Compiled vector and move operators on the functional model equal the NumPy reference."""

import numpy as np
import pytest

from hw.contract.params import preset
from tests.compiler.backend.graphs import GraphBuilder, check

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


POOLS = {
    "2x2": ((1, 8, 10, 12), (2, 2), (2, 2), (0, 0, 0, 0)),
    "3x3 padded": ((2, 11, 9, 7), (3, 3), (2, 2), (1, 1, 1, 1)),
    "3x3 uneven": ((1, 9, 9, 40), (3, 3), (1, 1), (0, 1, 2, 1)),
    "global": ((1, 13, 11, 37), (13, 11), (1, 1), (0, 0, 0, 0)),
    "large": ((1, 40, 40, 3), (32, 30), (4, 4), (3, 5, 3, 5)),
    "strip": ((1, 20, 1, 5), (20, 1), (1, 1), (0, 0, 0, 0)),
}


@both
@pytest.mark.parametrize("kind", ["max", "avg", "avg include"])
@pytest.mark.parametrize("case", POOLS)
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_pool(case, kind, dtype, params):
    shape, kernel, strides, pads = POOLS[case]
    build = GraphBuilder(len(case))
    y = build.pool(kind[:3], build.input(shape, dtype), kernel, strides, pads, include=kind.endswith("include"))
    build.output(y)
    check(build.graph, params)


@both
@pytest.mark.parametrize("axis", [0, 1, 2, 3])
def test_concat_of_inputs(axis, params):
    build = GraphBuilder(axis)
    shapes = [[2, 3, 5, 7] for _ in range(3)]
    for i, shape in enumerate(shapes):
        shape[axis] += i
    build.output(build.concat([build.input(tuple(s)) for s in shapes], axis))
    check(build.graph, params)


@both
def test_concat_in_place(params):
    """Producers of many kinds write into the concatenation, consumers read parts of it with gaps."""
    build = GraphBuilder(5)
    x = build.conv(build.input((1, 9, 9, 6)), 11)
    a = build.conv(x, 13, (1, 1))
    b = build.pool("max", x, (3, 3), (1, 1), (1, 1, 1, 1))
    c = build.table(a)
    d = build.pool("avg", x, (3, 3), (1, 1), (1, 1, 1, 1))
    e = build.eltwise("add", a, c)
    joined = build.concat([a, b, c, d, e, x], 3)
    build.output(build.conv(joined, 9, (3, 3), (2, 2)))
    build.output(build.eltwise("mul", a, e))
    for observe in (False, True):
        check(build.graph, params, observe)


@both
@pytest.mark.parametrize("perm", [(0, 3, 1, 2), (0, 2, 1, 3), (3, 2, 1, 0), (1, 0, 2, 3)])
def test_permute(perm, params):
    build = GraphBuilder(sum(perm))
    x = build.table(build.input((2, 7, 9, 11)))
    y = build.permute(x, perm)
    build.output(build.permute(build.table(y), (2, 0, 3, 1)))
    check(build.graph, params)


def test_large_permute_passes_through_dram():
    build = GraphBuilder(6)
    build.output(build.permute(build.input((1, 50, 60, 9)), (0, 3, 2, 1)))
    check(build.graph, TINY.replace(lv2_bytes=16 * 1024))


@both
def test_pad_and_reshape(params):
    build = GraphBuilder(7)
    x = build.conv(build.input((2, 6, 5, 8)), 10, (1, 1))
    y = build.pad(build.pad(x, (1, 2, 0, 3)), (0, 1, 1, 0))
    n, h, w, c = build.shape(y)
    flat = build.reshape(y, (n, h * w * c))
    build.output(flat)
    build.output(build.conv(build.reshape(flat, (1, 1, n, h * w * c)), 5, (1, 1)))
    check(build.graph, params)
    check(build.graph, params, observe=True)


@pytest.mark.parametrize("seed", range(10))
def test_random_networks(seed):
    """Residual blocks, branches and pools in random order, on few bytes of LV2 so that some tensors live in DRAM."""
    build = GraphBuilder(100 + seed)
    rng = build.rng
    live = [build.conv(build.input((1, 12, 12, 5)), 8, (3, 3), (1, 1), (1, 1, 1, 1))]
    for _ in range(8):
        x = live[int(rng.integers(0, len(live)))]
        kind = int(rng.integers(0, 6))
        if kind == 0:
            y = build.conv(x, 8, (3, 3), (1, 1), (1, 1, 1, 1))
        elif kind == 1:
            y = build.conv(x, 8, (3, 3), (1, 1), (1, 1, 1, 1), groups=8)
        elif kind == 2:
            y = build.eltwise("add", x, live[int(rng.integers(0, len(live)))])
        elif kind == 3:
            y = build.conv(build.concat([x, live[-1]] if x != live[-1] else [x, build.table(x)], 3), 8, (1, 1))
        elif kind == 4:
            y = build.pool("max", x, (3, 3), (1, 1), (1, 1, 1, 1))
        else:
            y = build.table(x)
        live = [*live[-3:], y]
    for name in live:
        build.output(name)
    params = TINY.replace(lv2_bytes=16 * 1024) if seed % 2 else BASE
    check(build.graph, params, observe=seed % 3 == 0, engines=params.engines)
