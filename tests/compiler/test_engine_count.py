"""A model takes as many engines as its size deserves (``engines="auto"``)."""

import pytest

from compiler.emission.objects.desk import Desk
from compiler.ir import CompileError
from compiler.pipeline import build
from compiler.plan.options import Options
from compiler.search.engine_count import WORTHWHILE, build_for_its_size
from hw.contract.params import KIB, preset
from sim.cost import inference
from tests.support.graphs import GraphBuilder

FOUR = preset("tiny").replace(engines=4)


def convolution(size, channels, kernel=3):
    made = GraphBuilder(3)
    x = made.input((1, size, size, channels))
    made.output(made.conv(x, channels, (kernel, kernel), pads=(kernel // 2,) * 4))
    return made.graph


def engines_of(image):
    return len({job.engine for job in image.meta.jobs})


def chosen(graph, **options):
    return build_for_its_size(graph, FOUR, Options(cancel_interval=0, **options), Desk(1))[0]


def test_a_large_layer_takes_all_engines_and_a_small_one_takes_one():
    assert engines_of(chosen(convolution(20, 16))) == 4
    assert engines_of(chosen(convolution(2, 8))) == 1


def test_a_layer_that_waits_for_its_weights_takes_one():
    """One position of a wide product: two engines load as long as one."""
    assert engines_of(chosen(convolution(1, 128, 1))) == 1


@pytest.mark.parametrize("size", [4, 6, 8, 16])
def test_the_count_is_the_last_that_is_worthwhile(size):
    graph = convolution(size, 16)
    cycles = {
        n: inference(build(graph, FOUR, Options(cancel_interval=0, engines=n))[0].meta.layers).cycles for n in (1, 2, 4)
    }
    worthwhile = [n for n in (1, 2, 4) if cycles[1] >= WORTHWHILE * n * cycles[n]]
    expected = 1 if 2 not in worthwhile else max(worthwhile)
    assert engines_of(chosen(graph)) == expected


def test_what_fits_on_fewer_engines_only_takes_these():
    graph = convolution(20, 16)
    limit = next(kib for kib in range(8, 128, 4) if _fits(graph, kib, 1)) * KIB
    with pytest.raises(CompileError, match="lv2_limit"):
        build(graph, FOUR, Options(cancel_interval=0, engines=4, lv2_limit=limit))
    assert engines_of(chosen(graph, lv2_limit=limit)) < 4


def _fits(graph, kib, engines):
    try:
        build(graph, FOUR, Options(cancel_interval=0, engines=engines, lv2_limit=kib * KIB))
    except CompileError:
        return False
    return True
