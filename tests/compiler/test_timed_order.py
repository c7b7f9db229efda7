"""Orders whose prices learn from programs that are timed: reproducible, exact, never worse than the search by price."""

from dataclasses import replace

import numpy as np
import pytest

from caesura.model_cycles import layer_cycles, model_cycles
from compiler import reference
from compiler.compile import compile_with_report
from compiler.dynamic_dimension import DynamicDimension
from compiler.emission.objects.desk import Desk
from compiler.frontend import import_model
from compiler.ir import CompileError
from compiler.pipeline import build
from compiler.plan.options import Options
from compiler.search.programs import PROGRAMS, build_timed
from compiler.search.ranges import compile_range
from hw.contract.params import preset
from hw.image.kernel_attributes import KernelAttributes
from tests.support.check.races import RaceChecker
from tests.support.graphs import GraphBuilder, random_inputs
from tests.support.image_runner import run_image
from tests.support.length_nets import conv_net
from tests.support.onnx_models import Net
from tests.support.placed import branchy

TINY, DIGITS = preset("tiny"), "examples/digits/digits.onnx"
TIMED = Options(order="timed")


@pytest.mark.parametrize("seed", [3, pytest.param(8, marks=pytest.mark.slow)])
def test_the_best_of_a_counted_number_of_programs_is_kept(seed):
    graph = branchy(seed, operators=9, channels=24)
    told = []
    found = build_timed(graph, TINY, TIMED, Desk(1), layer_cycles, lambda tried, cycles: told.append((tried, cycles)))
    assert 1 < found.tried <= PROGRAMS and [tried for tried, _ in told] == list(range(1, found.tried + 1))
    assert told[0][1] == found.priced >= told[-1][1] == found.cycles == model_cycles(found.image)
    again = build_timed(graph, TINY, TIMED, Desk(1), layer_cycles)
    assert again.image.to_bytes() == found.image.to_bytes() and again.tried == found.tried
    inputs = random_inputs(graph, 7)
    expected = reference.run_all(graph, inputs)
    for name, value in run_image(found.image, inputs, observer=RaceChecker(TINY)).items():
        assert np.array_equal(value, expected[name])


def test_a_region_that_takes_long_is_not_made_again():
    """Layers that share a region are said to take ten times as long as they do."""
    graph = branchy(3, operators=9, channels=24)

    made = []

    def slow(image):
        made.append(image)
        regions = [" + " in layer.name for layer in image.meta.layers]
        return [(9 * region + 1) * took for region, took in zip(regions, layer_cycles(image), strict=True)]

    def regions(image):
        return sum(" + " in layer.name for layer in image.meta.layers)

    found = build_timed(graph, TINY, TIMED, Desk(1), slow)
    assert regions(found.image) < regions(made[0])


def test_a_chain_has_one_order():
    make = GraphBuilder(1)
    make.output(make.conv(make.conv(make.input((1, 8, 8, 8)), 32, (1, 1)), 16))
    found = build_timed(make.graph, TINY, TIMED, Desk(1), layer_cycles)
    assert found.tried == 1 and found.image.code == build(make.graph, TINY)[0].code


def test_branches_that_end_on_the_cpu_are_compiled_once():
    """Steps on the CPU are layers of the image too, and no program tells how long they take."""
    net = Net()
    x = net.dq(net.q(net.conv(net.dq(net.input((1, 8, 6, 6)), 0.05), 0.05, (16, 8, 1, 1)), 0.1), 0.1)
    ends = [net.dq(net.q(net.conv(x, 0.1, (16, 16, 3, 3), pads=[1] * 4), 0.1), 0.1) for _ in range(3)]
    model = net.model(*(net.node("Softmax", [end], axis=1) for end in ends), dtype="float32")
    found = build_timed(import_model(model, fallback=True), TINY, TIMED, Desk(1), layer_cycles)
    assert found.tried == 1


def test_layers_take_together_what_the_program_takes():
    image, _ = build(branchy(3, operators=9, channels=24), TINY, Options())
    took = layer_cycles(image)
    assert len(took) == len(image.meta.layers) and sum(took) == model_cycles(image)
    assert all(cycles > 0 for cycles in (took[job.layer] for job in image.meta.jobs))


@pytest.mark.parametrize(
    "wrong", [{"engines": "auto"}, {"observe": True}, {"time_layers": None}, {"options": replace(TIMED, observe=True)}]
)
def test_what_cannot_be_timed_is_refused(wrong):
    time_layers = wrong.pop("time_layers", layer_cycles)
    with pytest.raises(CompileError, match="order 'timed' compares regions"):
        compile_with_report(DIGITS, TINY, **{"options": TIMED, "time_layers": time_layers} | wrong)


@pytest.mark.parametrize("order", ["timed", "measured"])
def test_what_runs_no_programs_has_no_such_order(order):
    """A range of lengths, for one."""
    with pytest.raises(CompileError, match=f"order '{order}' is found by programs that run"):
        build(branchy(3, operators=9, channels=24), TINY, Options(order=order))
    dimension = DynamicDimension.of(conv_net((1, 1)))
    attributes = KernelAttributes.of({"model": "net"}, "length", "4..5")
    with pytest.raises(CompileError, match=f"length 5 of dimension 'L': .*'{order}' is found by programs that run"):
        compile_range(dimension, TINY, range(4, 6), attributes, Options(order=order))
