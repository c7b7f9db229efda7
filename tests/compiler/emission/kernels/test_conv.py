"""Compiled convolutions on the functional model equal the NumPy reference, bit for bit and free of races."""

from typing import Any

import numpy as np
import pytest

from hw.contract.isa import INSN_BYTES, Insn, Op, Segment
from hw.contract.params import preset
from tests.support.graphs import GraphBuilder, check
from tests.support.images import decoded

TINY, BASE = preset("tiny"), preset("base")

CASES: dict[str, dict[str, Any]] = {
    "small": dict(shape=(1, 6, 6, 8), outs=8),
    "odd": dict(shape=(1, 11, 9, 13), outs=19, strides=(2, 2), pads=(1, 0, 2, 1), dtype="uint8"),
    "unsigned": dict(shape=(1, 7, 5, 6), outs=5, dtype="uint8", weight_dtype="uint8", pads=(1, 1, 1, 1)),
    "first layer": dict(shape=(1, 30, 30, 3), outs=20, kernel=(7, 7), strides=(2, 2), pads=(3, 3, 3, 3)),
    "one channel": dict(shape=(1, 20, 12, 1), outs=9, kernel=(10, 4), strides=(2, 2), pads=(4, 1, 5, 1)),
    "big kernel": dict(shape=(1, 40, 38, 2), outs=3, kernel=(33, 35), pads=(16, 17, 16, 17)),
    "dilated": dict(shape=(1, 14, 15, 9), outs=10, pads=(2, 3, 2, 3), dilations=(2, 3)),
    "rows only": dict(shape=(1, 9, 9, 6), outs=7, kernel=(5, 1), strides=(1, 2)),
    "columns only": dict(shape=(1, 9, 9, 6), outs=7, kernel=(1, 5), strides=(2, 1), pads=(0, 2, 0, 2)),
    "pads beyond": dict(shape=(1, 3, 3, 4), outs=4, pads=(4, 4, 4, 4)),
    "pointwise": dict(shape=(2, 5, 7, 70), outs=40, kernel=(1, 1), table=True),
    "pointwise strided": dict(shape=(2, 9, 9, 21), outs=33, kernel=(1, 1), strides=(2, 2)),
    "fully connected": dict(shape=(1, 1, 3, 900), outs=35, kernel=(1, 1)),
    "many outputs": dict(shape=(1, 4, 4, 5), outs=300, kernel=(3, 3), pads=(1, 1, 1, 1)),
    "depthwise": dict(shape=(1, 12, 13, 40), outs=40, groups=40, pads=(1, 1, 1, 1)),
    "depthwise strided": dict(shape=(2, 13, 13, 13), outs=13, groups=13, strides=(2, 2), pads=(1, 1, 0, 1)),
    "depthwise 5x5": dict(shape=(1, 11, 11, 9), outs=9, groups=9, kernel=(5, 5), pads=(2, 2, 2, 2), table=True),
    "depthwise dilated": dict(shape=(1, 14, 14, 17), outs=17, groups=17, dilations=(2, 3), pads=(2, 3, 2, 3)),
    "depthwise 1x1": dict(shape=(1, 6, 6, 10), outs=10, groups=10, kernel=(1, 1), strides=(3, 2)),
    "depth multiplier": dict(shape=(1, 8, 8, 6), outs=18, groups=6, pads=(1, 1, 1, 1)),
    "groups": dict(shape=(1, 9, 9, 24), outs=36, groups=4, pads=(1, 1, 1, 1)),
    "wide groups": dict(shape=(1, 5, 5, 64), outs=80, groups=2, weight_dtype="uint8"),
}  # fmt: skip


@pytest.mark.parametrize("params", [TINY, BASE], ids=lambda p: p.name)
@pytest.mark.parametrize("case", CASES)
def test_convolution(case, params):
    options = dict(CASES[case])
    build = GraphBuilder(len(case))
    x = build.input(options.pop("shape"), str(options.get("dtype", "int8")))
    build.output(build.conv(x, **options))
    check(build.graph, params)


@pytest.mark.parametrize("seed", range(24))
def test_random_convolution(seed):
    rng = np.random.default_rng(1000 + seed)
    build = GraphBuilder(seed)
    groups = int(rng.choice([1, 1, 2, 3]))
    kernel, strides, dilations = (tuple(int(v) for v in rng.integers(1, top, 2)) for top in (6, 4, 3))
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    height, width = (int(rng.integers(r, r + 16)) for r in reach)
    pads = tuple(int(rng.integers(0, r)) for r in (*reach, *reach))
    depth, outs = (int(groups * rng.integers(1, 30 // groups)) for _ in range(2))
    x = build.input((int(rng.integers(1, 3)), height, width, depth), str(rng.choice(["int8", "uint8"])))
    hidden = build.conv(x, outs, kernel, strides, pads, dilations, groups, table=bool(rng.integers(0, 2)))
    build.output(build.conv(hidden, int(rng.integers(1, 40)), (1, 1)))
    check(build.graph, BASE if seed % 3 == 0 else TINY, observe=bool(seed % 2), engines=2 if seed % 6 == 0 else 1)


def test_weights_beyond_the_window_become_several_jobs():
    build = GraphBuilder(1)
    build.output(build.conv(build.input((1, 5, 5, 64)), 160, (3, 3)))
    image = check(build.graph, TINY.replace(lv2_bytes=64 * 1024))
    assert len(image.meta.jobs) > 3
    assert any(job.window_after for job in image.meta.jobs)


@pytest.mark.parametrize(("pixels", "jobs"), [(1, 1), (49, 2)])
def test_jobs_that_load_longer_than_they_compute_are_larger(pixels, jobs):
    """Weights of an eighth of LV2 for each engine: one job, or two jobs that loads run ahead of."""
    build = GraphBuilder(3)
    x = build.input((1, 1, pixels, 512))
    for outs in (512, 256, 512, 256):
        x = build.conv(x, outs, (1, 1))
    build.output(x)
    image = check(build.graph, BASE.replace(lv2_bytes=512 * 1024), engines=2)
    each = [sum(job.layer == layer and job.engine == 1 for job in image.meta.jobs) for layer in (1, 3)]
    assert each == [jobs] * 2


def prologue_sources(image, layer):
    """Where in the weight segment each prologue of a layer begins to read."""
    pcs = [job.prologue_pc for job in image.meta.jobs if job.layer == layer and job.prologue_pc is not None]
    insns = [Insn.decode(image.code[pc * INSN_BYTES : (pc + 1) * INSN_BYTES]) for pc in pcs]
    return [insn.fields.get("src", 0) for insn in insns]


@pytest.mark.parametrize(("engines", "behind"), [(2, [0, 4096]), (3, [0, 2688, 5440])])
def test_long_weights_of_later_engines_begin_in_banks_behind(engines, behind):
    """A quarter of the banks with two engines, a sixth with three; in whole bursts whatever the number."""
    params, banks = BASE.replace(engines=engines), BASE.dram_row_bytes * BASE.dram_banks
    build = GraphBuilder(4)
    build.output(build.conv(build.conv(build.input((1, 1, 49, 512)), 256, (1, 1)), 576, (1, 1)))
    image = check(build.graph, params, engines=engines)
    assert sorted({-source % banks for source in prologue_sources(image, 1)}) == behind


def test_pixels_between_strides_stay_in_dram():
    build = GraphBuilder(5)
    build.output(build.conv(build.input((1, 14, 14, 1024)), 128, (1, 1), (2, 2)))
    image = check(build.graph, BASE)
    insns = decoded(image.code)
    loads = [i.fields for i in insns if i.op is Op.LD2 and i.fields.get("src_seg", 0) == Segment.INPUTS]
    assert sum(f["len"] * f.get("n0", 1) * f.get("n1", 1) * f.get("n2", 1) for f in loads) == 7 * 7 * 1024


def test_weights_of_one_tile_beyond_the_window_are_streamed():
    params = TINY.replace(lv2_bytes=32 * 1024)
    build = GraphBuilder(2)
    build.output(build.conv(build.input((1, 1, 1, 5000)), 12, (1, 1)))
    image = check(build.graph, params)
    assert max(job.window[1] for job in image.meta.jobs) < 5000 * params.out_channels


@pytest.mark.parametrize("lv2", [16, 32])
def test_large_images_pass_through_dram(lv2):
    params = TINY.replace(lv2_bytes=lv2 * 1024)
    build = GraphBuilder(3)
    x = build.conv(build.input((1, 70, 70, 3)), 9, (3, 3), (1, 1), (1, 1, 1, 1))
    y = build.conv(x, 9, (3, 3), (2, 2), (1, 1, 1, 1), groups=9)
    build.output(build.conv(y, 5, (1, 1)))
    image = check(build.graph, params)
    assert image.meta.segment_sizes[4] > 0


@pytest.mark.parametrize("preset_name", ["ecp5", "cluster64"])
def test_other_presets(preset_name):
    params = preset(preset_name)
    build = GraphBuilder(4)
    x = build.conv(build.input((1, 16, 16, 3)), 24, (5, 5), (1, 1), (2, 2, 2, 2))
    y = build.conv(x, 24, (3, 3), (1, 1), (1, 1, 1, 1), groups=24)
    build.output(build.conv(y, 50, (1, 1)))
    check(build.graph, params, engines=params.engines)
