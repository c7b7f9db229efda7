"""The worst case from a pause to an urgent model."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest
from typer.testing import CliRunner

from caesura.cli import app
from caesura.latency import halt_bound, latency_bound
from compiler.compile import compile_model
from compiler.plan.options import Options
from hw.contract.bus import HostCosts
from hw.contract.isa import LV2_SEGMENTS
from hw.contract.params import preset
from hw.image.image import Image
from sim.rtl import open_bus
from sw.driver import Device

DIGITS = Path("examples/digits/digits.onnx")


@pytest.fixture(scope="module")
def image() -> Image:
    return compile_model(DIGITS, preset("tiny"), options=Options(cancel_interval=500))


def test_parts_add_up(image):
    bound = latency_bound(image)
    assert all(cycles > 0 for cycles in asdict(bound).values())
    assert bound.total == sum(asdict(bound).values())
    assert bound.halt == halt_bound(image) + HostCosts().register_access
    assert halt_bound(image) >= max(point.worst_interval for point in image.meta.cancel_points)


def test_a_free_host_costs_only_what_the_engine_does(image):
    paid, free = latency_bound(image), latency_bound(image, HostCosts.free())
    assert free.notice == free.prepare == 0
    assert free.total < paid.total


def test_a_small_urgent_model_displaces_less(image):
    small = compile_model(DIGITS, preset("tiny"), options=Options(lv2_limit=64 * 1024))
    for segment in LV2_SEGMENTS:
        small.meta.segment_sizes[segment] = 64
    assert latency_bound(image, urgent=small).dump < latency_bound(image).dump


def test_info_prints_it(image, tmp_path):
    image.save(tmp_path / "digits.cimg")
    result = CliRunner().invoke(app, ["info", str(tmp_path / "digits.cimg"), "--json"])
    assert json.loads(result.stdout)["latency"]["total"] == latency_bound(image).total


def test_a_preemption_on_the_device_stays_below(image):
    """From the call of suspend to the start of the urgent model's first job."""
    bus = open_bus(preset("tiny"))
    device = Device(bus)
    long, urgent = device.load(image), device.load(image)
    for model in (long, urgent):
        device.begin(model, 10**6)
    jobs = range(len(image.meta.jobs))
    device.submit(long, jobs, limit=10**6)
    bus.advance(4000)
    sent = bus.cycle
    device.suspend([0], urgent)
    device.admit(urgent)
    (first, *_) = device.submit(urgent, jobs, limit=10**6)
    (result,) = device.collect([first], 10**6)
    assert 0 < result.start - sent <= latency_bound(image).total
