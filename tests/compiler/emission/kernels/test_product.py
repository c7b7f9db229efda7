"""Products of computed matrices on the functional model equal the NumPy reference, without races."""

import itertools

import numpy as np
import pytest

from compiler.ir import CompileError
from compiler.pipeline import build
from compiler.plan.options import Options
from hw.contract.params import preset
from tests.support.graphs import GraphBuilder, check

TINY, BASE = preset("tiny"), preset("base")
WAYS = list(itertools.product((False, True), repeat=4))  #: joined A, B, result; transposed


def _product(way, heads, rows, depth, columns, seed, images=1, dtypes=("int8", "uint8", "int8")) -> GraphBuilder:
    a_joined, b_joined, joined, transposed = way
    make = GraphBuilder(seed)
    a = make.input((images, rows, heads * depth) if a_joined else (images * heads, rows, depth), dtypes[0])
    inner = (columns, depth) if transposed else (depth, columns)
    b = make.input((images, inner[0], heads * inner[1]) if b_joined else (images * heads, *inner), dtypes[1])
    make.output(make.product(a, b, heads, (a_joined, b_joined, joined), transposed, dtypes[2]))
    return make


@pytest.mark.parametrize("way", WAYS)
def test_every_way_operands_lie(way):
    check(_product(way, 3, 10, 12, 9, seed=1).graph, TINY)


@pytest.mark.parametrize("seed", range(12))
def test_random_shapes(seed):
    rng = np.random.default_rng(seed)
    params = (TINY, BASE)[seed % 2]
    heads, rows, depth, columns = (int(rng.integers(1, most)) for most in (4, 70, 150, 90))
    way, images = WAYS[rng.integers(len(WAYS))], int(rng.integers(1, 3))
    dtypes = [str(rng.choice(["int8", "uint8"])) for _ in range(3)]
    print(f"seed {seed}: {way} {images} x {heads} x {rows} x {depth} x {columns} {dtypes}")
    make = _product(way, heads, rows, depth, columns, seed, images, dtypes)
    check(make.graph, params, engines=params.engines)


def test_more_rows_and_depth_than_fit_at_a_time():
    check(_product((True, True, True, False), 1, 300, 600, 40, seed=2).graph, BASE, engines=2)


def test_operands_in_dram():
    params = TINY.replace(lv2_bytes=16 * 1024, lv1_bytes=8 * 1024)
    make = GraphBuilder(3)
    x = make.conv(make.input((1, 1, 60, 8)), 96, (1, 1))
    y = make.conv(x, 96, (1, 1))
    x, y = make.reshape(x, (1, 60, 96)), make.reshape(y, (1, 60, 96))
    make.output(make.product(x, y, 2, (True, True, False), transposed=True))
    image = check(make.graph, params)
    assert image.meta.segment_sizes[4] > 0, "nothing lies in DRAM"


@pytest.mark.parametrize(("shape", "transposed"), [((1500, 256, 64), True), ((8, 4000, 64), False)])
def test_buffers_longer_than_a_copy(shape, transposed):
    """Where LV0 is large, a buffer is filled by several copies."""
    large = {  # bytes
        "lv0_act_bytes": 256 << 10,
        "lv0_wgt_bytes": 512 << 10,
        "lv0_acc_rows": 4096,
        "lv1_bytes": 512 << 10,
    }
    rows, depth, columns = shape
    make = _product((True, True, True, transposed), 1, rows, depth, columns, seed=2)
    check(make.graph, BASE.replace(**large, lv2_bytes=16 << 20))


def test_a_machine_too_small_is_refused():
    params = BASE.replace(lv1_bytes=4 * 1024)
    with pytest.raises(CompileError, match=r"tiles need \d+ bytes of LV1, 4096 are there"):
        build(_product((True, True, True, False), 1, 300, 600, 40, seed=2).graph, params, Options())
