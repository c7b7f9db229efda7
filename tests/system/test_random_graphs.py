"""Random graphs through front end, reference and device: every layer of what is accepted is that of onnxruntime.

The seed is the test's number.
"""

import numpy as np
import pytest

import caesura
from compiler import reference
from compiler.compile import compile_with_report
from compiler.frontend import UnsupportedModel, import_model
from sim.backends import DEFAULT_BACKEND
from sim.model.bus import ModelBus
from tests.support.golden_check import check_graph, random_inputs
from tests.support.random_graphs import random_graph

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
