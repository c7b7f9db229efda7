"""Compiled padding on the functional model equals the NumPy reference."""

import pytest

from hw.contract.params import preset
from tests.support.graphs import GraphBuilder, check

TINY, BASE = preset("tiny"), preset("base")
both = pytest.mark.parametrize("params", [TINY, BASE], ids=lambda p: p.name)


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
