"""One representative layer of each kind on ``base``, whose cycles are exact: a limit that is exceeded is a regression.

Limits are what was measured when they were set, plus 3 %. An improvement should lower its limit, a loss needs a reason.
All tests are in this file and the cases small: they share one simulator, which takes minutes to build if it is not
in the cache.
"""

import pytest

from benchmarks.lab import Lab
from benchmarks.workloads import registry
from benchmarks.workloads.layers import Network
from caesura.views.progress import Progress
from hw.contract.params import preset
from sim.backends import DEFAULT_BACKEND

BLOCK = "depthwise_block"


@pytest.fixture(scope="module")
def lab():
    with Progress() as progress, Lab(preset("base"), DEFAULT_BACKEND, progress) as session:
        yield session


def block() -> Network:
    """Depthwise layers of both strides between 1×1 convolutions, so that LV2 holds their inputs and outputs."""
    net = Network(BLOCK, (32, 28, 28))
    x = net.conv("expand", net.input, 128)
    x = net.conv("depthwise1", x, 128, 3, 1, pad=1, groups=128)
    x = net.conv("depthwise2", x, 128, 3, 2, pad=1, groups=128)
    net.conv("project", x, 64)
    return net


@pytest.mark.parametrize(
    ("workload", "limit"),
    [
        pytest.param("gemm_256x256x256", 38_600, id="matrix product"),
        pytest.param("conv_64x28x28_64_k3_s1_p1", 61_400, id="3x3"),
        pytest.param("conv_256x28x28_128_k1_s1_p0", 60_300, id="1x1"),
        pytest.param("conv_3x112x112_64_k7_s2_p3", 71_600, id="first layer"),
    ],
)
def test_layer(lab, workload, limit):
    """Whole runs, from DRAM to DRAM."""
    run = lab.run(workload)
    assert run.correct, run.verdict
    assert run.stats.cycles <= limit


@pytest.mark.parametrize(("layer", "limit"), [("depthwise1", 5_540), ("depthwise2", 2_870)])
def test_depthwise(lab, layer, limit, monkeypatch):
    """Bodies alone, inside a network."""
    monkeypatch.setitem(registry.NETWORKS, BLOCK, block)
    run = lab.run(BLOCK)
    assert run.correct, run.verdict
    cycles = {stats.name: stats.cycles for stats in run.stats.layers}
    assert cycles[layer] <= limit


@pytest.mark.slow
@pytest.mark.parametrize(
    ("workload", "limit"), [("squeezenet", 909_000), ("mobilenetv2", 908_600), ("resnet50", 8_690_000)]
)
def test_network(lab, workload, limit):
    """Whole networks, from input to output."""
    run = lab.run(workload)
    assert run.correct, run.verdict
    assert run.stats.cycles <= limit


def test_profile_accounts_for_every_cycle(lab):
    run = lab.run("conv_64x28x28_64_k3_s1_p1")
    total = run.profile.total
    assert total.cycles == run.stats.cycles
    assert all(value >= 0 for value in total.parts.values())
    assert total.parts["peak"] == run.stats.macs / 512
