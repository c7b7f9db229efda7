"""Compiled networks may be preempted at every cancellation point: proof by poison."""

from pathlib import Path

import numpy as np
import pytest

from compiler import reference
from compiler.frontend import import_model
from compiler.pipeline import build
from compiler.plan.options import Options
from hw.contract.params import preset
from hw.image.image import Image
from sim.host import run_host
from tests.support.check.preemption import Report, check_points
from tests.support.networks import DIGITS, network
from tests.support.sampled import sampled


def _check(path: Path, preset_name: str, engines: int, interval: int, lagging: int | None, most: int = 0) -> Report:
    """All points, or ``most`` of them by chance; the report is in the message of a failure."""
    graph = import_model(path, fallback=True)
    image, _ = build(graph, preset(preset_name), Options(engines=engines, cancel_interval=interval))
    image = Image.from_bytes(image.to_bytes())
    rng = np.random.default_rng(1)
    values = {port.name: rng.uniform(-1, 1, port.shape).astype(port.dtype) for port in graph.inputs}
    expected = reference.run_all(graph, values)
    inputs = {port.name: expected[port.tensor] for port in graph.inputs}
    numbers = [point.point for point in image.meta.cancel_points]
    points = set(rng.choice(numbers, most, replace=False).tolist()) if most else None
    report = check_points(image, inputs, points, host=run_host, lagging_engine=lagging)
    assert report.ok, report
    assert len(report.points) == (most or len(numbers))
    return report


@pytest.mark.parametrize("interval", [300, 2000])
def test_digits_at_every_point(interval):
    report = _check(DIGITS, "tiny", 1, interval, None)
    assert len(report.points) >= 2


@pytest.mark.parametrize("lagging", [0, 1])
def test_digits_on_two_engines(lagging):
    assert _check(DIGITS, "base", 2, 100, lagging).jobs >= 4


@pytest.mark.parametrize("model", sampled(["ic_resnet8_int8", "kws_dscnn_int8"], 1))
def test_a_sample_of_small_networks(model):
    _check(network(model), "tiny", 1, 2000, None, most=20)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("preset_name", "engines", "lagging"),
    [("tiny", 1, None), ("base", 1, None), ("base", 2, None), ("base", 2, 0), ("base", 2, 1)],
)
@pytest.mark.parametrize("model", ["ic_resnet8_int8", "kws_dscnn_int8", "squeezenet_int8_qdq"])
def test_networks_at_every_point(model, preset_name, engines, lagging):
    if model.startswith("squeezenet") and preset_name == "tiny":
        pytest.skip("does not fit the DRAM of tiny")
    _check(network(model), preset_name, engines, 2000, lagging)


@pytest.mark.slow
@pytest.mark.parametrize(("engines", "lagging"), [(1, None), (2, 0), (2, 1)])
def test_a_sample_of_resnet50(engines, lagging):
    _check(network("resnet50_int8_qdq"), "base", engines, 10_000, lagging, most=60)
