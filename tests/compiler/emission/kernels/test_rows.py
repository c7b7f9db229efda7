"""Softmax and layer normalisation on the functional model equal the NumPy reference, and that is near the real one."""

import numpy as np
import pytest

from compiler import reference
from compiler.ir import CompileError
from compiler.pipeline import build
from compiler.plan.options import Options
from hw.contract.params import preset
from tests.support.graphs import GraphBuilder, check, random_inputs

TINY, BASE = preset("tiny"), preset("base")


@pytest.mark.parametrize("kind", ["softmax", "layer_norm", "rms_norm"])
@pytest.mark.parametrize("seed", range(8))
def test_random_shapes(kind, seed):
    rng = np.random.default_rng(seed)
    params = (TINY, BASE)[seed % 2]
    shape = int(rng.integers(1, 4)), int(rng.integers(1, 60)), int(rng.integers(2, (90, 800)[seed % 2]))
    dtypes = [str(rng.choice(["int8", "uint8"])) for _ in range(2)]
    print(f"seed {seed}: {shape} {dtypes}")
    make = GraphBuilder(seed)
    make.output(getattr(make, kind)(make.input(shape, dtypes[0]), dtypes[1]))
    check(make.graph, params, engines=params.engines)


@pytest.mark.parametrize("kind", ["softmax", "layer_norm", "rms_norm"])
def test_more_rows_than_an_instruction_takes(kind):
    make = GraphBuilder(3)
    make.output(getattr(make, kind)(make.input((1, 9000, 7))))
    check(make.graph, TINY.replace(lv1_bytes=512 << 10, lv2_bytes=1 << 20))


@pytest.mark.parametrize("kind", ["softmax", "layer_norm", "rms_norm"])
def test_rows_in_dram(kind):
    make = GraphBuilder(5)
    x = make.conv(make.input((1, 1, 90, 8)), 120, (1, 1))
    make.output(make.table(getattr(make, kind)(make.reshape(x, (1, 90, 120)))))
    image = check(make.graph, TINY.replace(lv2_bytes=16 * 1024))
    assert image.meta.segment_sizes[4] > 0, "nothing lies in DRAM"


def test_rows_of_equal_values():
    """A deviation of nothing but epsilon, and none at all."""
    make = GraphBuilder(6)
    x = make.input((1, 3, 40), "uint8")
    make.output(make.layer_norm(x))
    zero = make.graph.tensors[x].zero_point
    for epsilon in (0, 7):
        make.graph.ops[0].epsilon = epsilon
        given = {x: np.full((1, 3, 40), zero, np.uint8)}
        out = reference.run(make.graph, given)[make.graph.outputs[0].name]
        assert (out == out[:, :1]).all()
    check(make.graph, TINY)


def test_softmax_is_near_the_real_one():
    make = GraphBuilder(8)
    x = make.input((1, 50, 70))
    make.output(make.softmax(x, "uint8"))
    op, values = make.graph.ops[0], random_inputs(make.graph, 1)
    scale = -np.log(op.values[1] / op.values[0])
    real = np.exp((values[x].astype(float) - values[x].max(-1, keepdims=True)) * scale)
    steps = op.values[0] / 2.0**22
    wanted = np.clip(np.rint(real / real.sum(-1, keepdims=True) * steps), 0, 255)
    got = reference.run(make.graph, values)[make.graph.outputs[0].name]
    assert np.abs(got - wanted).max() <= 1 and (got != wanted).mean() < 1e-3


@pytest.mark.parametrize("kind", ["softmax", "layer_norm", "rms_norm"])
def test_machines_with_few_lanes_are_refused(kind):
    make = GraphBuilder(7)
    make.output(getattr(make, kind)(make.input((1, 4, 40))))
    with pytest.raises(CompileError, match=r"vec_lanes of at least 8, the machine has 4: choose another"):
        build(make.graph, TINY.replace(vec_lanes=4), Options())


@pytest.mark.parametrize("kind", ["softmax", "layer_norm", "rms_norm"])
def test_rows_too_long_are_refused(kind):
    make = GraphBuilder(7)
    make.output(getattr(make, kind)(make.input((1, 4, 3000))))
    with pytest.raises(CompileError, match=r"a row of 3000 bytes does not fit in LV1"):
        build(make.graph, TINY, Options())
