"""How engines share convolutions whose tiles do not come out even."""

import math

import numpy as np
import pytest

from compiler.emission.kernels.conv_work import row_bands
from compiler.pipeline import build
from compiler.plan.options import Options
from hw.contract.isa import INSN_BYTES, Insn, Op
from hw.contract.params import preset
from tests.support.graphs import GraphBuilder, check

BASE = preset("base")


def one(channels: int, size: int, kernel: int, before: int = 64, seed: int = 1):
    """A convolution behind a 1×1 one, so that its input lies in LV2, and one behind it."""
    make = GraphBuilder(seed)
    x = make.conv(make.input((1, size, size, 8)), before, (1, 1))
    y = make.conv(x, channels, (kernel, kernel), pads=(kernel // 2,) * 4)
    make.output(make.conv(y, 8, (1, 1)))
    return make.graph


def engine_cycles(graph, engines: int) -> list[int]:
    """MAC cycles of each engine in the middle layer, compiled by itself."""
    image, _ = build(graph, BASE.replace(engines=engines), Options(engines=engines, regions=False))
    jobs = [job for job in image.meta.jobs if job.layer == 1]
    return [sum(_macs(image, job) for job in jobs if job.engine == engine) for engine in range(engines)]


def _macs(image, job) -> int:
    total, pc = 0, job.body_pc
    while (insn := Insn.decode(image.code[pc * INSN_BYTES : (pc + 1) * INSN_BYTES])).op is not Op.END:
        if insn.op is Op.MAC:
            total += math.prod(insn.fields.get(name, 1) for name in ("p1", "p0", "n0", "n1", "n2"))
        pc += 1
    return total


@pytest.mark.parametrize(("channels", "size", "kernel"), [(96, 28, 3), (96, 16, 1), (160, 14, 1), (112, 14, 3)])
def test_parts_are_even(channels, size, kernel):
    """Three blocks of channels, or two tiles of unequal size."""
    cycles = engine_cycles(one(channels, size, kernel), 2)
    assert max(cycles) <= 1.05 * min(cycles), cycles


def test_channels_where_weights_take_longer_than_rows_gain():
    """Few pixels and many weights: one third more on one engine is less than all weights on both."""
    cycles = engine_cycles(one(96, 7, 1, before=256), 2)
    assert max(cycles) == 2 * min(cycles), cycles


@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 6))])
def test_exact_with_odd_shapes(seed):
    rng = np.random.default_rng(seed)
    channels, size = int(rng.choice([24, 40, 96, 100, 160])), int(rng.integers(5, 21))
    graph = one(channels, size, int(rng.choice([1, 3, 5])), seed=seed)
    check(graph, BASE.replace(engines=2 + seed % 2), engines=2 + seed % 2)


@pytest.mark.parametrize("seed", range(3))
def test_a_kernel_of_one_row_joins_a_region_by_rows(monkeypatch, seed):
    """What two engines share by rows: convolutions along rows between those of single pixels, with a stride, too."""
    monkeypatch.setattr("compiler.plan.regions.regions._PART", 1.0)
    make, size = GraphBuilder(seed), (28, 24, 32)[seed]
    x = make.conv(make.input((1, size, size, 8)), 96, (1, 1))
    wide = make.eltwise("add", make.conv(x, 96, (1, 1)), x)
    row = make.conv(wide, 48, (1, 3), strides=(1, 1 + seed % 2), pads=(0, 1, 0, 1))
    make.output(make.conv(row, 96, (1, 1)))
    image = check(make.graph, BASE, engines=2)
    assert any(f" + {row}" in layer.name for layer in image.meta.layers)


def test_bands_hold_each_row_once():
    for height, engines in ((7, 2), (10, 3), (3, 4)):
        rows = [row for (band,) in row_bands(1, height, 5, engines, flat=False) for row in range(band.top, band.bottom)]
        assert rows == list(range(height))
        flat = row_bands(2, height, 5, engines, flat=True)
        pixels = sorted(p for bands in flat for band in bands for p in range(band.left, band.right))
        assert pixels == list(range(2 * height * 5))


def busy_engines(size: int) -> set[int]:
    """Engines that compute a first convolution of one block of channels, whose input is smaller than its weights."""
    make = GraphBuilder(3)
    x = make.conv(make.input((1, size, size, 1)), 16, (3, 3), pads=(1, 1, 1, 1))
    make.output(make.conv(x, 64, (3, 3), pads=(1, 1, 1, 1)))
    image, _ = build(make.graph, BASE, Options(engines=2, regions=False))
    return {job.engine for job in image.meta.jobs if job.layer == 0}


def test_a_first_layer_starts_another_engine_only_if_that_saves_more_than_the_wait_for_its_weights():
    """Two blocks of weights: 8 x 8 pixels save 64 cycles by a second engine, which waits 100 for the DRAM."""
    assert len(busy_engines(8)) == 1
    assert len(busy_engines(20)) == 2
