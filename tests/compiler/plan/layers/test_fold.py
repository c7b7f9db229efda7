"""Tables inside the layers that make what they read."""

from hw.contract.params import preset
from tests.support.graphs import GraphBuilder, check

TINY = preset("tiny")


def test_a_table_moves_into_the_convolution():
    make = GraphBuilder(4)
    make.output(make.table(make.conv(make.input((1, 4, 4, 8)), 8, (1, 1))))
    assert [layer.kind for layer in check(make.graph, TINY).meta.layers] == ["conv+table"]


def test_a_result_that_leaves_the_model_in_another_shape_is_kept():
    make = GraphBuilder(5)
    x = make.conv(make.input((1, 4, 4, 8)), 8, (1, 1))
    make.output(make.table(x))
    make.output(make.reshape(x, (1, 1, 16, 8)))
    assert "conv" in [kind for layer in check(make.graph, TINY).meta.layers for kind in layer.kind.split("+")]
