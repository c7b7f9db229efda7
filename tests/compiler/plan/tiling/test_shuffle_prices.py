"""What shuffles of channels are said to take: each tile loads its own channels of every column."""

import pytest

from compiler import ir
from compiler.plan.layers.lower import lower
from compiler.plan.memory.pixel_pitch import words_per_run
from compiler.plan.regions.units import LD1, MAC, layer_times
from hw.contract.params import preset
from tests.support.graphs import GraphBuilder

BASE = preset("base")
PIXELS = 8 * 6


def dealt(groups: int, depth: int) -> ir.Graph:
    make = GraphBuilder(0)
    x = make.input((1, 8, 6 * groups, depth))
    y = make.tensor((1, 8, 6, groups * depth))
    make.graph.ops.append(ir.Shuffle(y, [x], y, groups=groups))
    make.output(y)
    return make.graph


#: Groups, channels of each, blocks of weights of all tiles, and bytes of a column that each tile loads.
CASES = [
    (2, 64, 4 * 4, [16] * 4),
    (2, 40, 2 * 4 + 1, [16, 16, 8]),  # the last tile has 16 outputs: two halves of the pixels side by side
    (4, 24, 3 * 4, [8] * 3),
    (3, 32, 3 * 6, [11, 12, 11]),
]


@pytest.mark.parametrize("engines", [1, 2])
@pytest.mark.parametrize(("groups", "depth", "blocks", "runs"), CASES)
def test_a_tile_loads_its_own_channels_of_every_column(groups, depth, blocks, runs, engines):
    graph = dealt(groups, depth)
    busy = layer_times(graph, lower(graph, BASE)[0], BASE, engines).busy
    words = sum(words_per_run(depth, run, BASE.lv1_word) for run in runs)
    assert busy[MAC] == blocks * PIXELS / engines
    assert busy[LD1] == pytest.approx(max(words, depth / BASE.lv1_word) * PIXELS * groups / engines, abs=1)
