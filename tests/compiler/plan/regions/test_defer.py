"""Layers whose results are not needed yet wait."""

from compiler import ir
from compiler.plan.layers.fuse import fuse
from compiler.plan.layers.lower import lower
from compiler.plan.regions.defer import defer
from hw.contract.params import preset
from tests.support.graphs import GraphBuilder, residual_block

BASE = preset("base")


class CountedTensors(dict[str, ir.Tensor]):
    """Counts how often one is looked up."""

    looked_up = 0

    def __getitem__(self, name: str) -> ir.Tensor:
        self.looked_up += 1
        return super().__getitem__(name)


def blocks(count: int) -> ir.Graph:
    """Residual blocks in a row, with shortcuts that could wait."""
    make = GraphBuilder(1)
    x = make.input((1, 8, 8, 16))
    for _ in range(count):
        shortcut = make.conv(x, 64, (1, 1))
        wide = make.eltwise("add", make.conv(make.conv(x, 8, (1, 1)), 64, (1, 1)), shortcut)
        x = make.conv(wide, 16, (1, 1))
    make.output(x)
    return make.graph


def test_a_large_shortcut_waits_for_its_reader():
    make = residual_block(2)
    layers = fuse(make.graph, lower(make.graph, BASE))
    names = [layer.name for layer in layers]
    ordered = [layer.name for layer in defer(make.graph, layers)]
    assert names.index("t2") == 1 and ordered.index("t2") > 1


def test_a_move_looks_at_the_layers_it_passes_alone():
    looked_up = []
    for count in (4, 16):
        graph = blocks(count)
        layers = fuse(graph, lower(graph, BASE))
        graph.tensors = CountedTensors(graph.tensors)
        ordered = defer(graph, layers)
        assert sorted(map(id, ordered)) == sorted(map(id, layers)) and ordered != layers
        looked_up.append(graph.tensors.looked_up)
    assert looked_up[1] < 5 * looked_up[0]
