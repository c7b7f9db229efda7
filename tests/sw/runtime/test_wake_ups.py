"""Whatever becomes due while the host is at work is looked at before it waits: on a grid of phases over a whole run."""

import numpy as np
import pytest

import caesura
from compiler.plan.options import Options
from examples.digits import MODEL
from hw.contract.params import preset
from sw.runtime import DeadlineMissed, Mechanism, Runtime

TINY = preset("tiny")
#: An interrupt may be on its way into the handler (``HostCosts.interrupt``), and to stop what runs is a decision.
PROMPT = 1500
STEP = 229  #: cycles between two phases
X = np.random.default_rng(0).uniform(0, 1, (1, 1, 8, 8)).astype(np.float32)


@pytest.fixture(scope="module")
def device():
    with caesura.open(TINY, "model") as device:
        yield device


@pytest.fixture(scope="module")
def models(device):
    image = caesura.compile(MODEL, TINY, options=Options(cancel_interval=500, lv2_limit=TINY.lv2_bytes // 2))
    return [device.load(image) for _ in range(2)]


@pytest.fixture(scope="module")
def alone(device, models):
    """Outputs by name, and cycles of a request that has the device to itself."""
    for _ in range(2):  # measured durations are stored by the first
        begin = device.bus.cycle
        request = Runtime(device, preemptive=True).submit(models[0], X)
        outputs = request.result()
    return outputs, request.ended - begin


def run_time(device):
    return Runtime(device, "idle_time", preemptive=True, rule=lambda situation: Mechanism.DUMP)


def check(request, alone):
    for name, value in request.result().items():
        np.testing.assert_array_equal(value, alone[0][name])


class Late:
    """Tells of one request at the cycle of its arrival and no sooner."""

    def __init__(self, cycle, submit):
        self._cycle, self._submit = cycle, submit

    def next_cycle(self):
        return self._cycle

    def run_until(self, cycle):
        if self._cycle is not None and self._cycle <= cycle:
            arrival, self._cycle = self._cycle, None
            self._submit(arrival)


@pytest.mark.parametrize("known", ["submitted before", "from a source", "announced"])
def test_the_pause_for_an_urgent_arrival(device, models, alone, known):
    delays = []
    for phase in range(0, alone[1], STEP):
        runtime, urgent = run_time(device), []
        long, arrival = runtime.submit(models[0], X), device.bus.cycle + phase

        def submit(arrival, runtime=runtime, urgent=urgent):
            announced = known == "announced"
            urgent.append(runtime.submit(models[1], X, priority=1, arrival=arrival, announced=announced))

        source = Late(arrival, submit) if known == "from a source" else submit(arrival)
        runtime.run_until_done(source)
        check(long, alone), check(urgent[0], alone)
        assert urgent[0].arrival == arrival or phase == 0
        delays += [span.begin - arrival for span in runtime.spans() if span.kind == "pause"]
    assert len(delays) > 0.8 * alone[1] / STEP
    assert max(delays) <= PROMPT, delays


def test_the_abort_at_a_deadline(device, models, alone):
    for phase in range(0, alone[1], STEP):
        deadline = device.bus.cycle + phase
        request = run_time(device).submit(models[0], X, deadline=deadline)
        error = request.exception()
        if error is None:
            assert request.ended <= deadline
            continue
        assert isinstance(error, DeadlineMissed) and error.cycle - deadline <= PROMPT


def test_the_start_of_a_request_that_finds_its_engine_in_use(device, models, alone):
    """Its layers take their turns with those of the one that runs."""
    for phase in range(0, alone[1], STEP):
        runtime = Runtime(device, "round_robin")
        first, arrival = runtime.submit(models[0], X), device.bus.cycle + phase
        second = runtime.submit(models[1], X, arrival=arrival)
        runtime.run_until_done()
        check(first, alone), check(second, alone)
        if second.started < first.ended:
            assert second.started - arrival <= 3 * PROMPT


def test_what_is_submitted_by_the_end_of_another(device, models, alone):
    """``on_end`` may be called anywhere in a turn."""
    runtime = run_time(device)
    submitted = []

    def on_end(request):
        if request.tag == "first" and not submitted:
            submitted.append(runtime.submit(models[1], X, priority=1))

    runtime = Runtime(device, preemptive=True, rule=lambda situation: Mechanism.DUMP, on_end=on_end)
    runtime.submit(models[1], X, deadline=device.bus.cycle + alone[1] // 3, tag="first", priority=0)
    long = runtime.submit(models[0], X)
    runtime.run_until_done()
    check(long, alone), check(submitted[0], alone)
    pauses = [span.begin for span in runtime.spans() if span.kind == "pause"]
    assert pauses and pauses[0] - submitted[0].arrival <= PROMPT
