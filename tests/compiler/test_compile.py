from pathlib import Path

import numpy as np
import pytest

import caesura
from benchmarks.workloads import workload
from compiler.compile import compile_model
from compiler.emission.program.semaphores import MOST_COUNTS, Sem
from compiler.ir import CompileError
from compiler.plan.options import Options
from examples.digits import SAMPLES
from examples.digits.evaluate import reference_logits
from hw.contract.params import preset
from hw.contract.timing import UNIT_IN_FLIGHT
from sim.model.bus import ModelBus

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


@pytest.mark.parametrize(
    ("name", "few"), [("semaphores", max(Sem)), ("semaphore_max", MOST_COUNTS + preset("tiny").unit_room)]
)
def test_machines_without_the_semaphores_of_programs_are_refused_before_anything_is_read(name, few):
    params = preset("tiny").replace(**{name: few})
    with pytest.raises(CompileError, match=rf"'tiny': {name} is {few}, and must be (\d+) or more .*--set {name}=\1\)"):
        compile_model(Path("there/is/none.onnx"), params)


def test_a_machine_with_as_many_as_programs_need_runs_them():
    least = MOST_COUNTS + preset("tiny").unit_room + UNIT_IN_FLIGHT
    params = preset("tiny").replace(semaphores=max(Sem) + 1, semaphore_max=least)
    images = np.load(SAMPLES)["input"][:1]
    with ModelBus(params) as bus:
        outputs, _ = caesura.Device(bus).load(compile_model(DIGITS, params)).run(images)
    np.testing.assert_array_equal(outputs["logits"], reference_logits(DIGITS, images))
