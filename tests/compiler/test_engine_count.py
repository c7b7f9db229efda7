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
from tests.support.placed import two_branches

FOUR = preset("tiny").replace(engines=4)
TINY_TWO = FOUR.replace(engines=2)


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


# -- placed or shared, and by load ---------------------------------------------------------------------------------
def ways(graph, params=FOUR, waits=(), **options):
    return build_for_its_size(graph, params, Options(cancel_interval=0, **options), Desk(1), waits)


def test_placed_layers_are_shared_where_that_takes_less():
    """A chain that ends in a single row, which cannot be cut for two engines, but whose channels can be shared."""
    found = ways(wide(), TINY_TWO, placed=True)
    priced = {(way.engines, way.placed): way.cycles for way in (found.taken, *found.others)}
    assert priced[2, False] < priced[2, True] and not found.taken.placed
    assert not found.image.meta.parts


def test_placed_layers_stay_placed_where_that_takes_less():
    """Branches of short layers, each of which two engines would share at the price of waiting for each other."""
    found = ways(two_branches(1, depth=3), TINY_TWO, placed=True)
    assert found.taken.placed and found.image.meta.parts == 2
    shared = next(way for way in found.others if way.engines == 2)
    assert not shared.placed and found.taken.cycles < shared.cycles
    assert "2 engines placed" in str(found).split("beside")[0] and "2 engines shared" in str(found)


def test_without_placed_only_sharing_is_priced():
    found = ways(two_branches(1, depth=3), TINY_TWO)
    assert not any(way.placed for way in (found.taken, *found.others)) and not found.image.meta.parts


def test_fewer_engines_are_taken_where_others_are_busy():
    """It ends sooner on the two that are free than on four of which two have long queues."""
    graph = convolution(32, 32)
    free = ways(graph)
    assert free.taken.engines == 4 and free.taken.ends == free.taken.cycles
    cycles = {way.engines: way.cycles for way in (free.taken, *free.others)}
    wait = cycles[2] - cycles[4]
    assert ways(graph, waits=[0, wait * 0.9, 0, wait * 0.9]).taken.engines == 4
    busy = ways(graph, waits=[0, wait * 1.1, 0, wait * 1.1])
    assert busy.taken.engines == 2 and busy.taken.ends == cycles[2]
    assert ways(graph, waits=[0, 1e9, 1e9, 1e9]).taken.engines == 1
    assert ways(graph, waits=[1e9] * 4).taken.engines == 4  # all as busy: what is left is the size
    assert "ends after" in str(busy)


def test_a_busy_engine_gets_fewer_placed_layers():
    """Placed layers need not wait until all engines are free."""
    found = ways(two_branches(1, depth=3), TINY_TWO, placed=True)
    placed = next(way for way in (found.taken, *found.others) if way.placed)
    wait = placed.cycles / 2
    later = ways(two_branches(1, depth=3), TINY_TWO, placed=True, waits=[0, wait])
    again = next(way for way in (later.taken, *later.others) if way.placed)
    assert placed.cycles < again.ends < placed.cycles + wait


@pytest.mark.parametrize("waits", [[0, 0], [0, 0, 0, -1]])
def test_there_is_a_wait_for_each_engine(waits):
    with pytest.raises(CompileError, match="4 numbers from 0 on"):
        ways(convolution(4, 8), waits=waits)


def wide():
    """A product with one row: it cannot be cut along the image."""
    made = GraphBuilder(3)
    x = made.input((1, 6, 6, 16))
    for _ in range(2):
        x = made.conv(x, 16, pads=(1,) * 4)
    made.output(made.conv(x, 16, (6, 6)))
    return made.graph
