"""Graphs whose layers have much in common, and how they are compiled."""

from compiler import ir
from compiler.plan.options import Options
from hw.contract.params import KIB, SocParams, preset
from tests.support.graphs import GraphBuilder
from tests.support.placed import branchy

TINY, BASE = preset("tiny"), preset("base")
FOUR = TINY.replace(engines=4)


def blocks(seed: int, depth: int = 3) -> ir.Graph:
    """Residual blocks of one shape and quantisation, the last with the same weights for all channels."""
    make = GraphBuilder(seed)
    x = make.conv(make.input((1, 12, 12, 8)), 64, (1, 1))
    for _ in range(depth):
        y = make.conv(make.conv(x, 24, (1, 1)), 24, pads=(1, 1, 1, 1))
        x = make.eltwise("add", make.conv(y, 64, (1, 1)), x)
    for tensor in make.graph.tensors.values():
        tensor.zero_point = -7
    convolutions = [op for op in make.graph.ops if isinstance(op, ir.Conv)]
    for op in convolutions:
        op.weight_zero_point = 0
        if any(op is one for one in convolutions[-3:]):
            op.weights[:] = op.weights[:1]
            op.bias[:] = op.bias[0]
            op.requantise.scale[:] = op.requantise.scale[0]
    make.output(make.pool("max", x, (3, 3), (2, 2), (1, 1, 1, 1)))
    return make.graph


CASES: list[tuple[ir.Graph, SocParams, Options]] = [
    (blocks(1), TINY, Options()),
    (blocks(2), BASE, Options(engines=2)),
    (blocks(3), BASE, Options(engines=2, cancel_interval=0)),
    (blocks(4, 1), BASE, Options(engines=2, observe=True)),
    (blocks(5, 2), FOUR, Options(engines=4, placed=True, cancel_interval=1000)),
    (blocks(6, 1), TINY, Options(regions=False, lv2_limit=40 * KIB, cancel_interval=500, cancel_spill_bound=400)),
    (branchy(7), BASE, Options(engines=2, cancel_interval=400)),
    (branchy(8, 6), FOUR, Options(engines=4, placed=True)),
    (branchy(9, 6), TINY, Options(cancel_interval=1000)),
]
