"""Two requests of different urgency on a board at a serial line: driver and run time are those of every simulator."""

import pytest

from benchmarks.workloads import workload
from caesura.samples import random_samples
from compiler.compile import compile_model
from compiler.plan.options import Options
from hw.contract.params import KIB, preset
from sw.driver import Device
from sw.runtime import Mechanism, Runtime
from sw.serial import SerialBus
from tests.support.exhaustive import Task
from tests.support.far_end import Lossy, simulated_line
from tests.support.networks import DIGITS

PARAMS = preset("nano").replace(dram_bytes=256 * KIB)
_INTO = 20_000  #: cycles of the long request's run after which the urgent one comes
_EVERY = 150  #: one byte of so many is lost, damaged or followed by another


@pytest.fixture(scope="module")
def line():
    line = simulated_line(PARAMS, native=True)
    yield line
    line.close()


@pytest.fixture(scope="module")
def tasks(line):
    """A layer of 38,000 cycles and the digits, both loaded through the line; they share LV2."""
    device = Device(SerialBus(line, PARAMS))
    paths = (workload("conv_8x16x16_64_k3_s1_p1"), 1000), (DIGITS, 0)
    images = [
        compile_model(path, PARAMS, options=Options(cancel_interval=interval, lv2_limit="all"))
        for path, interval in paths
    ]
    return [Task(device, image, random_samples(image, 1, seed)[0]) for seed, image in enumerate(images)]


@pytest.fixture
def until_it_runs(tasks):
    """Cycles from the submission of the long request until its input is on the board, which most of them take."""
    device, long = tasks[0].device, tasks[0]
    runtime, begin = Runtime(device, "fcfs"), device.bus.cycle
    request = runtime.submit(long.model, long.inputs)
    runtime.run_until_done()
    return request.stored - begin


@pytest.mark.parametrize(
    "ways",
    [
        ("spoil", "spoil_back"),
        *(pytest.param(ways, marks=pytest.mark.slow) for ways in ((), ("spoil",), ("spoil_back",))),
    ],
)
def test_a_suspended_request_goes_on_bit_for_bit(line, tasks, until_it_runs, ways):
    """From the decision to preempt on, until all outputs are read, the line is bad."""
    long, urgent = tasks
    device, lossy, halted = long.device, Lossy(3, _EVERY), []

    def rule(situation):
        for way in ways:
            setattr(line, way, lossy)
        return Mechanism.DUMP

    def ended(request):
        halted.append([point.job for one in device.suspensions for point in one.points.values()])

    known = len(device.operations)
    runtime = Runtime(device, "fcfs", preemptive=True, rule=rule, on_end=ended)
    begin = device.bus.cycle
    requests = [
        runtime.submit(long.model, long.inputs),
        runtime.submit(urgent.model, urgent.inputs, priority=1, arrival=begin + until_it_runs + _INTO),
    ]
    try:
        runtime.run_until_done()
    finally:
        line.spoil = line.spoil_back = bytes
    for request, task in zip(requests, tasks, strict=True):
        assert request.error is None
        task.check(request.outputs, f"spoilt: {ways}")
    assert requests[0].preempted == 1 and not requests[0].repeated
    assert halted == [[0], []], "the long one was to be inside its only job when the urgent one had ended"
    assert [type(one).__name__ for one in device.operations][known:] == ["Dump", "Restore"]
    assert (lossy.struck > 100) if ways else not lossy.struck
