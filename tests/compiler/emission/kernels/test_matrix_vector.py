"""Matrices times a few rows: exact in all forms, at all points; few instructions, and a DRAM that is never idle."""

import itertools

import numpy as np
import pytest

import caesura
from benchmarks.lab import ALONE
from benchmarks.workloads import decoders, workload
from compiler import compile_model
from compiler.emission.kernels import conv
from compiler.emission.kernels.matrix_vector import MatrixVectorEmitter, job_weights, smaller_at_the_end
from compiler.ir import Graph
from compiler.pipeline import build
from compiler.plan.layers.layer import ChannelTile
from compiler.plan.options import Options
from hw.contract.isa import INSN_BYTES
from hw.contract.params import KIB, preset
from sim.model import ModelBus
from tests.support.check.preemption import check_points
from tests.support.graphs import GraphBuilder, check, random_inputs

TINY, BASE = preset("tiny"), preset("base")


@pytest.fixture
def made(monkeypatch):
    """The emitters of matrices times rows that are made, which are taken for small ones, too."""
    monkeypatch.setattr(conv, "_MANY_WEIGHTS", 0)
    found: list[MatrixVectorEmitter] = []
    of = MatrixVectorEmitter.of

    def noting(*args):
        emitter = of(*args)
        found.extend([emitter] if emitter else [])
        return emitter

    monkeypatch.setattr(conv.MatrixVectorEmitter, "of", noting)
    return found


def chain(seed: int, rows: int, int4: bool = False) -> Graph:
    """Products of so many rows, some with a table, a sum or both, of any widths and types. ``int4``: so weights are,
    but for those of one product."""
    rng, make = np.random.default_rng(seed), GraphBuilder(seed)
    x = make.input((1, 1, rows, int(rng.integers(1, 120))), str(rng.choice(["int8", "uint8"])))
    x = make.conv(x, int(rng.integers(1, 150)), (1, 1), table=bool(rng.integers(2)), int4=int4)
    wide = 16 * int(rng.integers(1, 12))
    x = make.conv(x, wide, (1, 1), weight_dtype=str(rng.choice(["int8", "uint8"])))
    y = make.conv(x, wide, (1, 1), dtype=str(rng.choice(["int8", "uint8"])), table=bool(rng.integers(2)), int4=int4)
    x = make.eltwise("add", y, x, table=bool(rng.integers(2)))
    make.output(make.conv(x, int(rng.integers(1, 200)), (1, 1), int4=int4))
    return make.graph


@pytest.mark.parametrize("seed", range(16))
def test_random_chains(seed, made):
    print("seed", seed)
    params = BASE if seed % 2 else TINY
    rows = 1 if seed % 4 < 2 else 2 + seed % 3
    graph = chain(seed, rows)
    check(graph, params, observe=seed % 5 == 0, engines=1 + (seed % 8 == 5), regions=seed % 3 > 0)
    assert made or rows > 1


@pytest.mark.parametrize("seed", range(16))
def test_random_chains_of_int4(seed, made):
    print("seed", seed)
    params, rows = BASE if seed % 2 else TINY, 1 if seed % 4 < 2 else 2 + seed % 3
    graph = chain(seed, rows, int4=True)
    check(graph, params, observe=seed % 5 == 0, engines=1 + (seed % 8 == 5), regions=seed % 3 > 0)
    assert made or rows > 1
    assert all(emitter.work.int4 == emitter.work.layer.int4 for emitter in made)


def test_int4_halves_what_is_loaded_and_engines_with_one_pe_load_int8(made):
    sizes = {}
    for name, params in (("base", BASE), ("one PE", TINY.replace(pes=1, rows=8, cols=8, vec_lanes=8))):
        for int4 in (False, True):
            make = GraphBuilder(1)
            make.output(make.conv(make.input((1, 1, 1, 128)), 512, (1, 1), int4=int4))
            image, _ = build(make.graph, params, Options())
            sizes[name, int4] = len(image.weights)
            check(make.graph, params)
    assert sizes["base", False] - sizes["base", True] == 128 * 512 / 2
    assert sizes["one PE", False] == sizes["one PE", True] and len(made) > 4


def test_products_of_many_rows_unpack_int4_at_compile_time(made):
    make = GraphBuilder(2)
    make.output(make.conv(make.input((1, 1, 100, 64)), 64, (1, 1), int4=True))
    check(make.graph, BASE)
    assert not made


@pytest.mark.parametrize("regions", [False, True])
@pytest.mark.parametrize("int4", [False, True])
def test_every_point_can_be_stopped_at(regions, int4, made):
    graph = chain(3, 1, int4)
    image, _ = build(graph, BASE, Options(cancel_interval=300, regions=regions))
    assert made and len(image.meta.cancel_points) > 3
    check_points(image, random_inputs(graph, 1))


def test_a_model_that_multiplies_for_longer_than_it_loads_has_none(made):
    make = GraphBuilder(1)
    x = make.conv(make.input((1, 40, 40, 32)), 64, pads=(1, 1, 1, 1))
    x = make.pool("avg", x, (40, 40), (1, 1))
    make.output(make.conv(x, 100, (1, 1)))
    build(make.graph, BASE, Options())
    assert not made


def test_the_last_jobs_of_a_model_are_smaller():
    tiles = [ChannelTile(32 * i, 32, 0, 288) for i in range(48)]
    first, last = tiles[:24], tiles[24:]
    parts = smaller_at_the_end([first, last], 9504)
    assert parts[0] == first and [tile for part in parts[1:] for tile in part] == last
    sizes = [len(part) for part in parts[1:]]
    assert sizes == sorted(sizes, reverse=True) and sizes[-1] <= len(last) // 6
    assert smaller_at_the_end([first, last], 1000) == [first, last]
    assert smaller_at_the_end([], 9504) == []


def test_a_job_takes_a_quarter_of_the_windows_unless_that_is_little():
    budget = type("Budget", (), {"windows": 1920 * KIB})
    assert job_weights(budget) == 480 * KIB
    assert job_weights(budget, int4=True) == 160 * KIB
    budget.windows = 256 * KIB
    assert job_weights(budget) == job_weights(budget, int4=True) == 128 * KIB


@pytest.mark.parametrize(
    ("name", "code", "idle"), [("linear_stories15m_2", 0.05, 30), ("linear_smollm2_135m_1", 0.04, 30)]
)
def test_loads_follow_each_other_and_code_is_little(name, code, idle):
    """Instructions are fetched from DRAM, too: so many bytes of them for a byte of weights at most. From one prologue
    to the next, across layers, pass so many cycles at most."""
    image = compile_model(workload(name), BASE, jobs=1, options=ALONE, cache=False, engines=1)
    decoder = decoders.parse(name)
    bytes_of_code = len(image.code) - len(image.meta.cancel_points) * INSN_BYTES
    assert bytes_of_code <= code * decoder.macs
    with ModelBus(BASE, data=False) as bus, caesura.Device(bus) as device:
        model = device.driver.load(image)
        device.driver.begin(model, 1 << 30)
        ran = device.driver.collect(device.driver.submit(model, range(len(image.meta.jobs)), limit=1 << 30), 1 << 30)
    loaded = [job for job in ran if job.prologue_end]
    gaps = [after.prologue_start - job.prologue_end for job, after in itertools.pairwise(loaded)]
    assert len(gaps) > 3 and max(gaps) <= idle


def test_so_are_they_where_another_kernel_multiplies():
    make = GraphBuilder(1)
    x = make.conv(make.input((1, 40, 40, 64)), 512, (3, 3), pads=(1, 1, 1, 1))
    x = make.pool("avg", x, (40, 40), (1, 1))
    make.output(make.conv(x, 1024, (1, 1)))
    image, _ = build(make.graph, BASE, Options(lv2_limit="all", regions=False))
    sizes = [job.window[1] for job in image.meta.jobs]
    assert sizes[-4] > sizes[-3] > sizes[-2] > sizes[-1] and 3 * sizes[-1] < sizes[-4]
