"""Random layers and networks on the RTL and on the fast model: equal outputs, cycles that can be trusted."""

import pytest

from benchmarks.accuracy_cases import random_cases, whole_networks
from benchmarks.accuracy_runs import compare
from benchmarks.lab import ALONE
from benchmarks.workloads import workload
from caesura.samples import random_samples
from compiler.compile import compile_model
from compiler.plan.options import Options
from hw.contract.isa import Lv0Space, Op
from hw.contract.params import preset
from tests.support.images import decoded

TINY = preset("tiny")


def compared(case, params):
    image = compile_model(case.path(), params, engines=params.engines, name=case.name, options=Options(lv2_limit="all"))
    return compare(case.name, image, random_samples(image, 1, 1)[0])


@pytest.mark.parametrize("count", [5, pytest.param(12, marks=pytest.mark.slow)])
def test_random_layers(count):
    """As ``caesura bench accuracy`` draws them, on a simulator that other tests need anyway."""
    seed = 7
    for case in random_cases(count, seed):
        result = compared(case, TINY)
        assert result.equal, f"seed {seed}: outputs of {case.name} differ"
        assert abs(result.percent) <= 2, f"seed {seed}: {case.name} takes {result.rtl} cycles, not {result.model}"


def test_int4_weights():
    """Packed up to LV1: a layer of a decoder whose loads, LD0 and MAC take nearly the same time."""
    image = compile_model(workload("linear_stories15m_1_int4"), TINY, options=ALONE)
    insns = decoded(image.code)
    assert sum(insn.op is Op.LD0 and insn["space"] == Lv0Space.INT4 for insn in insns) > 100
    result = compare("int4", image, random_samples(image, 1, 1)[0])
    assert result.equal and abs(result.percent) <= 0.5, f"{result.rtl} cycles, not {result.model}"


@pytest.mark.parametrize("name", ["digits", "squeezenet_small"])
def test_networks(name):
    case = next(case for case in whole_networks(TINY) if case.name == name)
    result = compared(case, TINY)
    assert result.equal
    assert abs(result.percent) <= 1, f"{name} takes {result.rtl} cycles, not {result.model}"
    late = [layer for layer in result.layers if abs(layer.percent) > 5]
    assert len(late) <= len(result.layers) / 10, late
    for unit, (rtl, model) in result.units.items():
        if rtl > 1_000:
            assert model == pytest.approx(rtl, rel=0.1), f"{unit} works {rtl} cycles, not {model}"
