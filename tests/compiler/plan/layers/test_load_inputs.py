"""Inputs that several convolutions read come to LV2 once."""

import pytest

from compiler.pipeline import build
from compiler.plan.lowered_model import LoweredModel
from compiler.plan.options import Options
from hw.contract.params import preset
from hw.image.image import Image
from tests.support.check.preemption import check_points
from tests.support.check.windows import window_clashes
from tests.support.graphs import GraphBuilder, check, random_inputs
from tests.support.sampled import sampled

BASE = preset("base")


def branches(pixels=6, channels=64, convs=3, *, added=True, seed=1):
    """``convs`` convolutions of the input, their sum, and the input added to it."""
    make = GraphBuilder(seed)
    x = make.input((1, 1, pixels, channels))
    y = make.conv(x, channels, (1, 1))
    for _ in range(convs - 1):
        y = make.eltwise("add", y, make.conv(x, channels, (1, 1)))
    make.output(make.eltwise("add", x, y) if added else y)
    return make.graph


def kinds(graph, **options):
    return [layer.kind for layer in LoweredModel.of(graph, BASE, Options(**options)).layers]


@pytest.mark.parametrize("engines", [1, 2])
@pytest.mark.parametrize("regions", [False, True])
@pytest.mark.parametrize("pixels", [1, 6, 40])
def test_results(pixels, regions, engines):
    graph = branches(pixels)
    image = check(graph, BASE, engines=engines, regions=regions)
    assert [layer.kind for layer in image.meta.layers].count("load") == 1
    loads = [job for job in image.meta.jobs if image.meta.layers[job.layer].kind == "load"]
    assert len(loads) == min(engines, -(-64 * pixels // 1024))


def test_two_inputs():
    make = GraphBuilder(2)
    parts = []
    for _ in range(2):
        x = make.input((1, 1, 5, 48))
        parts.append(make.eltwise("add", make.conv(x, 32, (1, 1)), make.conv(x, 32, (1, 1))))
    make.output(make.eltwise("add", *parts))
    image = check(make.graph, BASE, engines=2)
    assert [layer.kind for layer in image.meta.layers].count("load") == 2


def test_where_it_does_not_pay():
    assert "load" not in kinds(branches(convs=1))
    assert "load" not in kinds(branches(300, 256)), "products take longer than loads"
    assert "load" not in kinds(branches(), lv2_limit=4096), "no room"
    assert "load" not in kinds(branches(), observe=True)
    assert "load" not in kinds(branches(), engines=2, placed=True)


def test_an_input_that_is_read_otherwise_stays_where_it_is():
    make = GraphBuilder(3)
    x = make.input((1, 1, 6, 64))
    make.output(make.eltwise("add", make.conv(x, 64, (1, 1)), make.conv(x, 64, (1, 1))))
    make.output(make.pool("max", x, (1, 2), (1, 2)))
    assert "load" not in kinds(make.graph)


def test_without_room_in_lv2_it_passes_through():
    """The layer is there, but its result lies in DRAM."""
    tiny = preset("tiny").replace(lv2_bytes=64 * 1024)
    check(branches(40, 96), tiny)


@pytest.mark.parametrize("regions", sampled([True, False], 1))
@pytest.mark.parametrize("engines", [1, 2])
def test_preempted_at_every_point(engines, regions):
    """Behind the load it is a tensor in LV2 like others, and weights come with the body of the layer behind it."""
    graph = branches(90, 128)
    options = Options(engines=engines, cancel_interval=400, regions=regions)
    image = Image.from_bytes(build(graph, BASE, options)[0].to_bytes())
    assert image.meta.layers[0].kind == "load"
    given = random_inputs(graph, 4)
    values = {port.tensor: given[port.name] for port in graph.inputs}
    assert not window_clashes(image, values)
    report = check_points(image, values)
    assert report.ok and len(report.points) >= 4, report
