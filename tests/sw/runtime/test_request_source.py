"""Requests that a source brings while the run time serves: each arrives at its own cycle."""

import numpy as np
import pytest

from hw.contract.params import preset
from sw.driver import Device
from sw.runtime.preemption_mechanism import Mechanism
from sw.runtime.runtime import Runtime
from tests.support.model_soc import ModelSoc
from tests.support.preempt_images import walking_image

TINY = preset("tiny")
X = np.random.default_rng(0).uniform(-60, 60, (1, 8, 8)).astype(np.float32)


class Script:
    """Submits each of ``plan`` (arrival, model, priority) at its arrival; ``idle``: cycles at which nothing happens."""

    def __init__(self, runtime, plan, idle=()):
        self.runtime, self.looks = runtime, []
        steps = [*((at, (model, priority)) for at, model, priority in plan), *((at, None) for at in idle)]
        self.left = sorted(steps, key=lambda step: step[0])

    def next_cycle(self):
        return self.left[0][0] if self.left else None

    def run_until(self, cycle):
        self.looks.append(cycle)
        while self.left and self.left[0][0] <= cycle:
            at, what = self.left.pop(0)
            if what is not None:
                self.runtime.submit(what[0], X, priority=what[1], arrival=at)


def served(seed, source):
    """Cycles of ten requests at random; from a ``source``, or all submitted before."""
    random = np.random.default_rng(seed)
    device = Device(ModelSoc(TINY, seed=seed))
    models = [device.load(walking_image(TINY, jobs=1 + i, name=f"m{i}")) for i in range(4)]
    runtime = Runtime(device, "idle_time", preemptive=bool(seed % 2), rule=lambda situation: Mechanism.DUMP)
    arrivals = sorted(random.choice(60_000, 10, replace=False) + device.bus.cycle + 1)
    plan = [(int(at), models[i % 4], int(random.integers(3))) for i, at in enumerate(arrivals)]
    if source:
        runtime.run_until_done(Script(runtime, plan))
    else:
        for at, model, priority in plan:
            runtime.submit(model, X, priority=priority, arrival=at)
        runtime.run_until_done()
    return [(request.arrival, request.started, request.ended, request.preempted) for request in runtime.requests]


@pytest.mark.parametrize("seed", range(8))
def test_requests_run_as_if_they_had_been_submitted_before(seed):
    assert served(seed, source=True) == served(seed, source=False)


def test_a_source_may_go_on_without_a_request():
    device = Device(ModelSoc(TINY))
    runtime = Runtime(device, "fcfs")
    model, begin = device.load(walking_image(TINY)), device.bus.cycle
    script = Script(runtime, [(begin + 9000, model, 0)], idle=[begin + 500, begin + 50_000])
    runtime.run_until_done(script)
    (request,) = runtime.requests
    assert request.arrival == begin + 9000 <= request.started
    assert request.ended < begin + 50_000 <= device.bus.cycle
    assert script.looks == sorted(script.looks) and begin + 500 in script.looks
