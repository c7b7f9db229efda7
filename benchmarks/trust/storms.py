"""Storms of requests of three tenants on the fast model: priorities, arrivals, announcements, cancels, kills, faults.

Each request ends once, those that end well are exact, nobody waits for ever, and the books are empty afterwards.
"""

import random
from collections import Counter
from functools import cache

import numpy as np

import caesura
from benchmarks.trust.differential import Mismatch
from compiler.backend.options import Options
from examples.digits import MODEL, SAMPLES
from examples.digits.evaluate import reference_logits
from hw.contract.isa import INSN_BYTES, Segment
from hw.contract.params import preset
from sim.faulty_bus import FaultyBus
from sim.simulators import open_simulator
from sw.driver import Device, DeviceFault
from sw.driver.queues.interrupt_wait import LOOK_AFTER
from sw.runtime import Mechanism, RequestCancelled, Runtime

PARAMS = preset("tiny").replace(name="tiny2", engines=2)
REQUESTS = 10  #: of one round
_SPREAD = 120_000  #: cycles within which they arrive
_PATIENCE = 200_000  #: cycles for each request after the last arrival: far above what one takes when alone
_IDLE_TURNS = 300


@cache
def _material():
    """Images for one engine and for both, input and expected output."""
    sample = np.load(SAMPLES)["input"][:1]
    options = Options(cancel_interval=2000)
    images = [caesura.compile(MODEL, PARAMS, engines=engines, options=options) for engines in (1, 1, 2)]
    return images, sample, reference_logits(MODEL, sample)


class StormCampaign:
    """One device for all rounds, with a run time of its own for each. A round has :data:`REQUESTS` requests."""

    def __init__(self, backend: str) -> None:
        del backend  # always the fast model: it is the software that is attacked
        self.reached: Counter[str] = Counter()
        images, _, _ = _material()
        self._bus = FaultyBus(open_simulator(PARAMS, "model"))
        self._device = Device(self._bus)
        self._models = [
            self._device.load(images[0], [0], tenant="a"),
            self._device.load(images[1], [1], tenant="b"),
            self._device.load(images[2], tenant="a"),
        ]
        self._doomed = self._device.load(images[0], [0], tenant="c")
        code = self._doomed.segments[Segment.CODE][0] + INSN_BYTES * self._doomed.image.meta.jobs[-1].body_pc
        self._bus.write_mem(code, b"\x99")  # behind the driver's back: an illegal instruction in its last job

    def close(self) -> None:
        """Close the model."""
        self._bus.close()

    def round(self, seed: int) -> str:
        """One storm. Raises ``Mismatch``."""
        rng, device = random.Random(seed), self._device
        ends: Counter[int] = Counter()
        runtime = Runtime(
            device, rng.choice(("fcfs", "idle_time", "round_robin", "sjf")), preemptive=rng.random() < 0.8,
            rule=lambda situation: rng.choice(list(Mechanism)), may_kill=rng.random() < 0.6,
            ahead=rng.randint(1, 3), at_arrival=rng.random() < 0.2,
            on_end=lambda request: ends.update([request.number]),
        )  # fmt: skip
        begin, requests = self._bus.cycle, []
        _, sample, _ = _material()
        for _ in range(REQUESTS):
            model = self._doomed if rng.random() < 0.1 else rng.choice(self._models)
            inputs = {model.image.meta.inputs[0].name: sample}
            requests.append(
                runtime.submit(
                    model, inputs, priority=rng.randrange(4), arrival=begin + rng.randrange(_SPREAD),
                    announced=rng.random() < 0.5,
                )
            )  # fmt: skip
        lost = rng.randint(1, 3) if rng.random() < 0.2 else 0
        self._bus.lose_interrupts(lost)
        cancels = [(begin + rng.randrange(2 * _SPREAD), request) for request in rng.sample(requests, rng.randrange(4))]
        cancels.sort(key=lambda entry: entry[0])
        self._serve(runtime, requests, cancels, begin + _SPREAD + REQUESTS * _PATIENCE + lost * LOOK_AFTER)
        self._bus.heal()
        self._checked(requests, ends)
        return f"with {'preemption' if runtime.switches else 'no preemption'}"

    def _serve(self, runtime: Runtime, requests, cancels, last: int) -> None:
        idle = 0
        while not all(request.done() for request in requests):
            while cancels and cancels[0][0] <= self._bus.cycle:
                cancels.pop(0)[1].cancel()
            before = self._bus.cycle
            runtime.step()
            idle = 0 if self._bus.cycle > before else idle + 1
            if idle > _IDLE_TURNS or self._bus.cycle > last:
                left = [(r.number, r.state.value, r.priority) for r in requests if not r.done()]
                raise Mismatch(
                    f"{'no time passes' if idle > _IDLE_TURNS else 'it takes too long'}: {left} have not ended"
                )
        runtime.run_until_done()

    def _checked(self, requests, ends: Counter[int]) -> None:
        device, (_, _, expected) = self._device, _material()
        for request in requests:
            if ends[request.number] != 1:
                raise Mismatch(f"{request.name} ended {ends[request.number]} times")
            error = request.exception()
            if error is None:
                if request.model is self._doomed or not np.array_equal(next(iter(request.result().values())), expected):
                    raise Mismatch(f"{request.name} has a wrong result")
            elif not isinstance(error, RequestCancelled) and not (
                request.model is self._doomed and isinstance(error, DeviceFault)
            ):
                raise Mismatch(f"{request.name} ended with {error!r}")
        if device.suspensions or device.outstanding or device.transferring:
            raise Mismatch("suspended tasks, jobs or copies are left over")
        if any(model.users for model in [*self._models, self._doomed]):
            raise Mismatch("models have users that have ended")
