"""Orders that are compiled and measured: the best of them wins, and it is one that was measured."""

import pytest

from compiler.compile import compile_with_report
from compiler.emission.objects.desk import Desk
from compiler.ir import CompileError
from compiler.pipeline import build
from compiler.plan.options import Options
from compiler.search.programs import build_measured
from hw.contract.params import preset
from tests.support.graphs import GraphBuilder, check
from tests.support.placed import branchy

TINY, DIGITS = preset("tiny"), "examples/digits/digits.onnx"


def test_the_program_that_takes_least_wins():
    measured, told = [], []

    def measure(image):
        """Every program takes less than the one before, but the fourth."""
        measured.append(image)
        return 10.0 if len(measured) == 4 else 1000.0 - len(measured)

    graph = branchy(3, operators=9, channels=24)
    found = build_measured(
        graph, TINY, Options(), Desk(1), measure, 8.0, lambda tried, cycles: told.append((tried, cycles))
    )
    assert len({image.code for image in measured}) > 3
    assert found.image is measured[3] and found.cycles == 10 and found.priced == 999
    assert found.tried == len(measured) == told[-1][0] and told[-1][1] == 10
    assert measured[0].code == build(graph, TINY, Options())[0].code
    assert found.orders


def test_without_time_the_order_by_price_stays():
    graph = branchy(3, operators=9, channels=24)
    found = build_measured(graph, TINY, Options(), Desk(1), lambda image: len(image.code), 0.0)
    assert found.tried == 1 and found.cycles == found.priced and found.image.code == build(graph, TINY)[0].code


def test_a_chain_has_one_order():
    make = GraphBuilder(1)
    make.output(make.conv(make.conv(make.input((1, 8, 8, 8)), 32, (1, 1)), 16))
    found = build_measured(make.graph, TINY, Options(), Desk(1), lambda image: 1.0, 60.0)
    assert found.tried == 1
    check(make.graph, TINY)


@pytest.mark.parametrize("wrong", [{"engines": "auto"}, {"observe": True}, {"measure": None}])
def test_what_cannot_be_measured_is_refused(wrong):
    measure = wrong.pop("measure", len)
    with pytest.raises(CompileError, match="order 'measured' compares regions"):
        compile_with_report(DIGITS, TINY, options=Options(order="measured"), measure=measure, **wrong)
