"""Every request ends within a bound of simulated cycles and of turns, whatever arrives, is announced or cancelled."""

import numpy as np
import pytest

from hw.contract.job import Fault
from hw.contract.params import preset
from sw.driver import Device
from sw.runtime import Mechanism, Runtime
from sw.runtime.request import State
from tests.support.fake_soc import FakeSoc
from tests.support.images import negating_image
from tests.support.preempt_images import smashing_image, walking_image

TINY, BASE = preset("tiny"), preset("base")
X = np.random.default_rng(0).uniform(-60, 60, (1, 8, 8)).astype(np.float32)
CYCLES = 300_000  #: that a request may take once all have arrived: far above what any needs when alone
IDLE_TURNS = 200  #: turns in which no time passes


def served(runtime, cycles):
    """Run until all requests have ended, within so many ``cycles``, and never for long without any passing."""
    bus, idle = runtime.device.bus, 0
    while not all(request.done() for request in runtime.requests):
        before = bus.cycle
        runtime.step()
        idle = 0 if bus.cycle > before else idle + 1
        left = [(r.number, r.state.value, r.priority, r.arrival) for r in runtime.requests if not r.done()]
        assert idle < IDLE_TURNS, f"the run time spins at cycle {bus.cycle} with {left}"
        assert bus.cycle < cycles, f"not ended by cycle {bus.cycle}: {left}"
    runtime.run_until_done()


@pytest.mark.parametrize("announced_at", range(3000, 30_000, 3000))
def test_an_urgent_request_that_waits_and_an_announced_one_whose_time_has_come(announced_at):
    """The urgent one was declined; the switch to the other is due while it waits."""
    device = Device(FakeSoc(TINY))
    long = device.load(walking_image(TINY, jobs=8, name="long"))
    urgent, announced = (device.load(smashing_image(TINY, name=name)) for name in ("urgent", "announced"))
    rule = lambda now: Mechanism.WAIT if not now.notice else Mechanism.DUMP  # noqa: E731
    runtime = Runtime(device, "fcfs", preemptive=True, rule=rule)
    start = device.bus.cycle
    runtime.submit(long, X)
    runtime.submit(urgent, X, priority=2, arrival=start + 2000)
    runtime.submit(announced, X, priority=1, arrival=start + announced_at, announced=True)
    served(runtime, start + 40_000 + 3 * CYCLES)
    assert all(request.state is State.DONE for request in runtime.requests)


@pytest.mark.parametrize("seed", range(40))
def test_random_arrivals_announcements_cancels_and_faults(seed):
    print("seed", seed)
    random = np.random.default_rng(seed)
    soc = FakeSoc((TINY, BASE)[seed % 2], seed=seed)
    device = Device(soc)
    images = [walking_image(device.params, jobs=int(random.integers(1, 7)), name=f"m{i}") for i in range(3)]
    images += [smashing_image(device.params, engines=device.params.engines), negating_image(device.params, steps=2)]
    models = [device.load(image) for image in images]
    if seed % 4 == 3:
        soc.inject = lambda engine, insn: Fault.BUS if random.random() < 0.003 else None
    rule = lambda situation: random.choice(list(Mechanism))  # noqa: E731
    runtime = Runtime(
        device, str(random.choice(["fcfs", "idle_time", "round_robin"])), preemptive=bool(seed % 5), rule=rule,
        may_kill=bool(seed % 3), ahead=int(random.integers(1, 4)), at_arrival=seed % 7 == 6,
    )  # fmt: skip
    last = device.bus.cycle
    for _ in range(14):
        model, arrival = models[random.integers(len(models))], int(random.integers(0, 80_000))
        announced, priority = bool(random.random() < 0.5), int(random.integers(0, 4))
        runtime.submit(model, X, priority=priority, arrival=arrival, announced=announced)
        last = max(last, arrival)
    doomed = {int(n): int(random.integers(0, 100_000)) for n in random.integers(0, 14, 3)}
    while doomed and not all(request.done() for request in runtime.requests):
        for number in [n for n, cycle in doomed.items() if cycle <= device.bus.cycle]:
            runtime.requests[number].cancel()
            del doomed[number]
        before = device.bus.cycle
        for _ in range(IDLE_TURNS):
            runtime.step()
            if device.bus.cycle > before or all(request.done() for request in runtime.requests):
                break
        else:
            raise AssertionError(f"the run time spins at cycle {before}")
    served(runtime, last + 14 * CYCLES)
    assert not device.suspensions and not device.outstanding and not device.transferring
    assert all(not model.users for model in models)
    for model in models:
        device.unload(model)
