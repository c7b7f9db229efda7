"""Random graphs through front end, reference and device: every layer of what is accepted is that of onnxruntime.

The seed is the test's number.
"""

from dataclasses import replace

import numpy as np
import pytest

import caesura
from compiler import reference
from compiler.compile import CompileError, compile_with_report
from compiler.frontend import UnsupportedModel, import_model
from hw.contract.params import SocParams
from sim.backends import DEFAULT_BACKEND
from sim.model.bus import ModelBus
from tests.support.golden_check import check_graph, random_inputs
from tests.support.random_graphs import random_graph
from tests.support.sampled import sampled

TINY = caesura.PRESETS["tiny"]
_SLOW = [pytest.param(seed, marks=pytest.mark.slow) for seed in range(500)]


def agrees(seed: int, device: caesura.Device, observe: bool) -> None:
    model = random_graph(seed)
    try:
        graph = import_model(model)
    except UnsupportedModel as refusal:
        pytest.skip(f"refused: {refusal.nodes[0]}")
    for check in check_graph(graph, reference.run_all(graph, random_inputs(graph, seed))):
        assert check.ok, (seed, check)
    compiled = compile_with_report(model, TINY, observe=observe, jobs=1, cache=False)
    inputs = random_inputs(compiled.graph, seed)
    wanted = reference.run(compiled.graph, inputs)
    loaded = device.load(compiled.image)
    got, _ = loaded.run(inputs)
    for name, value in wanted.items():
        np.testing.assert_array_equal(got[name], value, err_msg=f"seed {seed}, output {name}")


@pytest.mark.parametrize("observe", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_a_sample_on_the_fast_model(seed, observe):
    agrees(seed, caesura.Device(ModelBus(TINY)), observe)


@pytest.mark.parametrize("seed", _SLOW)
def test_random_graphs_on_the_rtl(seed):
    with caesura.open(TINY, DEFAULT_BACKEND) as device:
        agrees(seed, device, observe=seed % 5 == 0)


def _machine_and_options(seed: int) -> tuple[SocParams, caesura.Options]:
    """A machine, often with less LV2 than the graph would like, and options under which tensors leave it."""
    rng = np.random.default_rng(seed + 1_000_000)
    base = replace(caesura.PRESETS["base"], lv2_bytes=128 * 1024)
    params = [TINY, replace(TINY, lv2_bytes=32 * 1024), base, caesura.PRESETS["base"]][int(rng.integers(4))]
    share = int(rng.choice([2, 4, 8]))
    return params, caesura.Options(
        engines=int(rng.integers(1, params.engines + 1)), regions=bool(rng.random() < 0.5),
        objective=str(rng.choice(["cycles", "dram", "memory"])), cancel_interval=int(rng.choice([0, 1000, 10_000])),
        lv2_limit=[None, "all", params.lv2_bytes // share][int(rng.integers(3))],
    )  # fmt: skip


@pytest.mark.parametrize("seed", sampled(range(400), 8))
def test_wide_graphs_on_many_machines(seed):
    """Operators of more kinds, tensors that are spilled, split, or kept for parts of their lives. A machine that is too
    small for a graph refuses it."""
    model = random_graph(seed, wide=True)
    params, options = _machine_and_options(seed)
    try:
        graph = import_model(model)
        compiled = compile_with_report(model, params, options=options, jobs=1, cache=False)
    except (UnsupportedModel, CompileError) as refusal:
        pytest.skip(f"refused: {refusal}")
    for check in check_graph(graph, reference.run_all(graph, random_inputs(graph, seed))):
        assert check.ok, (seed, check)
    inputs = random_inputs(compiled.graph, seed)
    wanted = reference.run(compiled.graph, inputs)
    got, _ = caesura.Device(ModelBus(params)).load(compiled.image).run(inputs)
    for name, value in wanted.items():
        np.testing.assert_array_equal(got[name], value, err_msg=f"seed {seed}, output {name}")
