"""Random cases of several models that preempt each other, against undisturbed runs."""

import contextlib
import random
from collections.abc import Sequence
from dataclasses import dataclass

from sim.rtl import RtlBus
from sw.driver import Device, DeviceTimeout
from sw.driver.preempt.state_transfer import Dump
from sw.runtime import Mechanism, Runtime
from tests.support.exhaustive import Task

CHOICES = [Mechanism.DUMP] * 6 + [Mechanism.KILL, Mechanism.WAIT]
STALLS = (0, 0, 24, 80, 140)  #: of 256 cycles
REQUESTS = 5  #: at most, so up to four are suspended at a time

SWITCH = 5000  #: cycles from an arrival until the first instruction, about


@dataclass
class Coverage:
    """What the cases went through."""

    preempted: int = 0
    killed: int = 0
    withdrawn: int = 0  #: pauses taken back before they took effect
    dumps: int = 0
    deepest: int = 0  #: most tasks suspended at a time


class Case:
    """One case: two to five requests of distinct tasks, ``first`` the first of them.

    Most are more urgent than those before and arrive while these run; the DRAM stalls at random; on each arrival the
    choice is random, and at times a pause is taken back before.
    """

    def __init__(
        self,
        device: Device,
        bus: RtlBus,
        tasks: Sequence[Task],
        seed: int,
        coverage: Coverage,
        first: Task | None = None,
    ) -> None:
        self.device, self.bus, self.seed, self.coverage = device, bus, seed, coverage
        self._rng = random.Random(seed)
        self._tasks = self._rng.sample(list(tasks), self._rng.randint(2, min(REQUESTS, len(tasks))))
        if self._rng.random() < 0.7:  # long ones first: the others arrive while they run
            self._tasks.sort(key=lambda task: -task.stats.latency)
        if first is not None:
            self._tasks = [first, *(task for task in self._tasks if task is not first)][:REQUESTS]

    def run(self) -> None:
        """Run it and check all outputs."""
        rng = self._rng
        per_256 = rng.choice(STALLS)
        self.bus.set_stalls(self.seed + 1, per_256)
        if rng.random() < 0.2:  # idle engines count as halted, and nothing is left of the pause
            self.device.pause(range(self.device.params.engines))
        runtime = Runtime(self.device, "fcfs", preemptive=True, rule=self._rule)
        at = self.device.bus.cycle + 1
        for i, task in enumerate(self._tasks):
            priority = i if rng.random() < 0.8 else rng.randrange(REQUESTS)
            runtime.submit(task.model, task.inputs, priority=priority, arrival=at)
            at += rng.choice((0, SWITCH, SWITCH)) + rng.randrange(task.stats.latency // rng.choice((1, 2, 4)))
        try:
            runtime.run_until_done()
        finally:
            self.bus.set_stalls(1, 0)
        for request, task in zip(runtime.requests, self._tasks, strict=True):
            assert request.error is None, f"seed {self.seed}: {request.error}"
            task.check(request.outputs, f"seed {self.seed}, {per_256} stalls of 256")
        assert not self.device.outstanding and not self.device.suspensions
        preempted = sum(request.preempted for request in runtime.requests)
        dumps = sum(isinstance(o, Dump) for o in self.device.operations)
        self.device.operations.clear()
        self.coverage.preempted += preempted
        self.coverage.dumps += dumps

    def _rule(self, situation: object) -> Mechanism:
        if self._rng.random() < 0.3:
            self._withdraw()
        choice = self._rng.choice(CHOICES)
        self.coverage.killed += choice is Mechanism.KILL
        depth = len(self.device.suspensions) + (choice is Mechanism.DUMP)
        self.coverage.deepest = max(self.coverage.deepest, depth)
        return choice

    def _withdraw(self) -> None:
        engines = range(self.device.params.engines)
        with contextlib.suppress(DeviceTimeout):
            self.device.pause(engines, self._rng.choice((1, 30, 300, 3000)))
            self.coverage.withdrawn -= 1
        self.coverage.withdrawn += 1
        self.device.go_on(engines)
