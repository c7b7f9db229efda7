"""Short jobs of convolutions: their tiles are cut at the ends, so that units wait less for the first and the last."""

import random

import pytest

from compiler.ir import Graph
from compiler.pipeline import build
from compiler.plan.options import Options
from compiler.plan.tiles import ConvTiles
from compiler.plan.tiling.conv_tiling import ALONE, HALVES, WHOLE
from hw.contract.params import preset
from tests.support.graphs import GraphBuilder, check

TINY, BASE = preset("tiny"), preset("base")


def chain(height: int, width: int, channels: int, outs: int) -> Graph:
    """Three convolutions, of which that amid has its tensors on chip."""
    make = GraphBuilder(width)
    x = make.conv(make.input((1, height, width, channels)), channels, (1, 1))
    x = make.conv(x, outs, (3, 3), pads=(1, 1, 1, 1))
    make.output(make.conv(x, 8, (1, 1)))
    return make.graph


def ends_of(graph: Graph) -> tuple[tuple[int, int], ...]:
    """Return those of the convolution amid, for each job."""
    _, plan = build(graph, BASE, Options(engines=2, regions=False))
    assert plan.steps is not None and plan.steps[1].tiles is not None
    (tiles,) = plan.steps[1].tiles
    assert isinstance(tiles, ConvTiles)
    return tiles.ends


def test_a_tile_that_is_first_and_last_is_cut():
    ends = ends_of(chain(2, 128, 24, 24))
    assert len(ends) == 2 and set(ends) <= set(ALONE) - {WHOLE}


def test_of_several_tiles_the_first_and_the_last_are_cut():
    ends = ends_of(chain(16, 16, 32, 64))
    assert ends and set(ends) <= set(HALVES) and HALVES[1] in ends


def test_a_long_job_stays_whole():
    assert ends_of(chain(48, 48, 32, 64)) == ()


def lengthy(length: int, channels: int) -> Graph:
    """Convolutions over a length: few pixel tiles, which stay for all channel tiles."""
    make = GraphBuilder(length)
    x = make.input((1, 1, length, channels))
    for _ in range(3):
        x = make.conv(x, channels, (1, 3), pads=(0, 2, 0, 0))
    make.output(x)
    return make.graph


@pytest.mark.parametrize("params", [TINY, BASE], ids=lambda p: p.name)
@pytest.mark.parametrize(("length", "channels"), [(96, 16), (64, 24), (100, 40), (192, 16), (33, 64)])
def test_inputs_that_stay_for_the_next_channel_tile(length, channels, params):
    check(lengthy(length, channels), params, engines=params.engines, regions=False)


@pytest.mark.parametrize("seed", range(12))
def test_random_short_jobs_are_exact(seed):
    rng = random.Random(seed)
    shape = rng.choice([(1, rng.randint(20, 200)), (rng.randint(2, 20), rng.randint(2, 20))])
    graph = chain(*shape, rng.choice([4, 8, 16, 24, 40]), rng.choice([8, 16, 24, 40, 64]))
    params = rng.choice([TINY, BASE])
    check(graph, params, engines=rng.randint(1, params.engines), regions=rng.random() < 0.5)


@pytest.mark.parametrize("params", [TINY, BASE], ids=lambda p: p.name)
@pytest.mark.parametrize("shape", [(2, 128, 24, 24), (1, 9, 16, 40), (16, 16, 32, 64)])
def test_exact(shape, params):
    check(chain(*shape), params, engines=params.engines, regions=False)
