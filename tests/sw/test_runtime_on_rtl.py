"""Several models at once on the real RTL: same outputs as alone, whatever runs beside them."""

import numpy as np
import pytest

from benchmarks.workloads import workload
from caesura.samples import random_samples
from compiler.compile import compile_model
from compiler.plan.options import Options
from hw.contract.isa import INSN_BYTES
from hw.contract.params import preset
from sim.backends import DEFAULT_BACKEND, MODEL
from sim.simulators import open_simulator
from sw.driver import Device, DeviceFault
from sw.runtime import Mechanism, Session
from sw.runtime.policies import ORDER
from sw.runtime.reference import durations
from sw.runtime.runtime import Runtime

TINY = preset("tiny")
LIMIT = 40_000  #: bytes of LV2 of each model: three fit side by side
MODELS = ("conv_8x6x6_8_k3_s1_p1", "gemm_1x256x128", "examples/digits/digits.onnx")


@pytest.fixture(scope="module", params=[DEFAULT_BACKEND, MODEL])
def device(request):
    bus = open_simulator(TINY, request.param)
    yield Device(bus)
    bus.close()


@pytest.fixture(scope="module")
def served(device):
    """Loaded models with an input and the outputs they compute by themselves."""
    result = []
    for name in MODELS:
        path = name if name.endswith(".onnx") else workload(name)
        image = compile_model(path, TINY, options=Options(lv2_limit=LIMIT, cancel_interval=500))
        (sample,) = random_samples(image, 1, 5)
        model = device.load(image)
        result.append((model, sample, Session(device, model).run(sample)[0]))
    return result


def check(requests, served):
    for request in requests:
        expected = next(outputs for model, _, outputs in served if model is request.model)
        for name, value in request.result().items():
            np.testing.assert_array_equal(value, expected[name])


@pytest.mark.parametrize("policy", ORDER)
def test_outputs_are_those_of_the_models_alone(device, served, policy):
    runtime = Runtime(device, policy)
    requests = [runtime.submit(model, sample) for model, sample, _ in served for _ in range(2)]
    runtime.run_until_done()
    check(requests, served)


def test_loads_of_one_model_run_while_another_computes(device, served):
    runtime = Runtime(device, "round_robin")
    requests = [runtime.submit(model, sample) for model, sample, _ in served]
    runtime.run_until_done()
    check(requests, served)
    hidden = [
        (load, compute)
        for load in runtime.groups
        for compute in runtime.groups
        if load.request is not compute.request and compute.start < load.load_start and load.load_end < compute.end
    ]
    assert hidden


@pytest.mark.parametrize("announced", [False, True])
@pytest.mark.parametrize("delay", range(500, 30_000, 2950))
def test_preemption_of_several_models_at_any_time(device, served, delay, announced):
    runtime = Runtime(device, "round_robin", preemptive=True, rule=lambda situation: Mechanism.DUMP)
    (conv, x, _), *others = served
    requests = [runtime.submit(model, sample) for model, sample, _ in others]
    urgent = runtime.submit(conv, x, priority=1, arrival=device.bus.cycle + delay, announced=announced)
    runtime.run_until_done()
    check([*requests, urgent], served)
    assert urgent.started >= urgent.arrival


def test_an_announced_request_finds_the_engine_free(device, served):
    """From the third switch on, when it is known how long one takes."""
    (conv, x, _), *others = served
    waits: dict[bool, list[int]] = {False: [], True: []}
    for announced in (False, True):
        runtime = Runtime(device, "round_robin", preemptive=True, rule=lambda situation: Mechanism.DUMP)
        for _ in range(5):
            requests = [runtime.submit(model, sample) for model, sample, _ in others]
            arrival = device.bus.cycle + 12_000
            requests.append(runtime.submit(conv, x, priority=1, arrival=arrival, announced=announced))
            runtime.run_until_done()
            check(requests, served)
            starts = [part.start for part in runtime.groups if part.request is requests[-1]]
            waits[announced].append(min(starts) - arrival)
        assert runtime.switches == 5
    assert sum(waits[True][2:]) < sum(waits[False][2:]) / 2


def test_a_fault_fails_its_request_only(device, served):
    """Requests of other models that had jobs on the engine start over and are exact."""
    image = compile_model(workload(MODELS[1]), TINY, options=Options(lv2_limit=10_000))
    broken = device.load(image)
    spoiled = broken.segments[0][0] + image.meta.jobs[1].body_pc * INSN_BYTES
    device.bus.write_mem(spoiled, bytes([0xFF] * INSN_BYTES))
    runtime = Runtime(device, "round_robin")
    failing = runtime.submit(broken, served[1][1])
    requests = [runtime.submit(model, sample) for model, sample, _ in served]
    runtime.run_until_done()
    with pytest.raises(DeviceFault, match=broken.name):
        failing.result()
    check(requests, served)
    assert any(request.repeated for request in requests)
    device.unload(broken)


def test_estimates_come_near_what_is_measured(device, served):
    model, sample, _ = served[1]
    alone = durations(model.image, Session(device, model).run(sample)[1].jobs)
    runtime = Runtime(device)
    for _ in range(3):
        runtime.submit(model, sample).result()
    last = [run for run in runtime.groups if run.request is runtime.requests[-1]]
    predicted = sum(run.decision.cost.compute for run in last)
    assert predicted == pytest.approx(sum(took.compute for took in alone.values()), rel=0.1)
