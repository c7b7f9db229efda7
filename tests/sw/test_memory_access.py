"""Memory access of a layer is all that it moves to and from DRAM, as estimated and as its DMAs counted."""

import pytest

import caesura
from benchmarks.workloads import workload
from caesura.samples import random_samples
from sw.runtime.job_groups import job_groups
from sw.runtime.reference import durations

WEIGHTS = 4096 * 128
BANDWIDTH = 8  #: bytes per cycle of tiny's DRAM


def costs(image):
    return [group.cost for step in image.meta.steps if step.kind == "jobs" for group in job_groups(image, step)]


@pytest.mark.parametrize("lv2_limit", [0, 32 * 1024], ids=["loaded ahead", "streamed"])
def test_all_weights_count_wherever_they_are_loaded(lv2_limit):
    image = caesura.compile(workload("gemm_1x4096x128"), options=caesura.Options(lv2_limit=lv2_limit))
    estimated = costs(image)
    assert sum(cost.load for cost in estimated) >= WEIGHTS / BANDWIDTH
    streamed = sum(cost.streamed for cost in estimated)
    assert (streamed > WEIGHTS / BANDWIDTH) == bool(lv2_limit)
    assert all(cost.streamed <= cost.overlap <= cost.load for cost in estimated)
    with caesura.open() as device:
        model = device.load(image)
        model(random_samples(image, 1, 0)[0])
    moved = sum(job.traffic.total.bytes for job in model.stats.jobs)
    assert WEIGHTS + 4096 + 128 <= moved < 1.02 * WEIGHTS
    measured = sum(took.load + took.stream for took in durations(image, model.stats.jobs).values())
    assert measured > moved / BANDWIDTH
    assert sum(cost.load for cost in costs(image)) == pytest.approx(measured)
    if lv2_limit:
        assert sum(cost.load for cost in estimated) == pytest.approx(measured, rel=0.1)


def test_inputs_and_results_in_dram_count():
    """A first layer that loads its image, and a last one that stores its result."""
    image = caesura.compile(workload("conv_32x14x14_32_k3_s1_p1"))
    (layer,) = [layer for layer in image.meta.layers if layer.estimated_compute]
    assert layer.estimated_stream >= (layer.input_bytes + layer.output_bytes) / BANDWIDTH
