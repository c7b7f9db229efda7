from pathlib import Path

import pytest

from benchmarks.workloads import workload
from compiler.compile import compile_model
from compiler.plan.options import Options
from hw.contract.params import preset

DIGITS = Path("examples/digits/digits.onnx")


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [({}, {0}), ({"options": Options(engines=2)}, {0, 1}), ({"engines": 1, "options": Options(engines=2)}, {0})],
)
def test_engines_come_from_the_options_unless_given(chosen, expected):
    image = compile_model(workload("conv_32x14x14_64_k3_s1_p1"), preset("base"), **chosen)
    assert {job.engine for job in image.meta.jobs} == expected


def test_observe_may_come_from_the_options():
    tensors = [
        {tensor.name for tensor in compile_model(DIGITS, preset("tiny"), options=Options(observe=observe)).meta.tensors}
        for observe in (False, True)
    ]
    assert tensors[0] < tensors[1]
