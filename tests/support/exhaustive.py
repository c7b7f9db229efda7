"""One inference stopped again and again: a walk over every place where a model can halt."""

from typing import Any

import numpy as np

from hw.contract.regs import EngineState
from hw.image.image import Image
from sw.driver import Device, DeviceJob, LoadedModel
from sw.driver.queues.job import JobState
from sw.runtime import Session

Place = tuple[int, int | None]  #: job, and the cancellation point it stands at; None: before its body
LIMIT = 20_000_000


def places(image: Image) -> set[Place]:
    """Everywhere that a model may halt."""
    jobs = [(i, None) for i in range(len(image.meta.jobs))]
    return {*jobs, *((point.job, point.point) for point in image.meta.cancel_points)}


class Task:
    """A loaded model, an input, and the outputs of an undisturbed run of it."""

    def __init__(self, device: Device, image: Image, inputs: Any) -> None:
        self.device, self.model, self.inputs = device, device.load(image), inputs
        self.session = Session(device, self.model)
        self.expected, self.stats = self.session.run(inputs)

    def check(self, outputs: dict[str, np.ndarray] | None, where: str) -> None:
        """Compare with the undisturbed run."""
        assert outputs is not None and outputs.keys() == self.expected.keys(), f"{self.model.name}: {where}"
        for name, value in self.expected.items():
            np.testing.assert_array_equal(outputs[name], value, err_msg=f"{self.model.name}: {where}")


class Walk:
    """One inference of ``victim`` on engine 0, suspended at every place on its way; meanwhile another of ``urgent``
    runs, and its outputs are checked.

    ``visited``: places, in order.
    """

    def __init__(self, victim: Task, urgent: list[Task]) -> None:
        self.victim, self.urgent = victim, urgent
        self.device = victim.device
        self.visited: list[Place] = []

    def run(self) -> None:
        """Run it to its end and check its outputs."""
        session = self.victim.session
        session.store(self.victim.inputs)
        self.device.begin(self.victim.model, LIMIT)
        for step in self.victim.model.image.meta.steps:
            if step.kind == "host":
                values = session.compute_host(step)
                self.device.bus.advance(session.host_cycles(step))
                session.store_host(values)
            else:
                self._run_jobs(list(range(step.first, step.first + step.count)))
        self.victim.check(session.fetch(), f"halted at {self.visited}")

    def _run_jobs(self, jobs: list[int]) -> None:
        device, model = self.device, self.victim.model
        queued: list[DeviceJob] = []
        while len(queued) < len(jobs) or not all(job.state is JobState.DONE for job in queued):
            if len(queued) < len(jobs):
                queued += device.submit(model, jobs[len(queued) :], limit=0)
            self._pause()
            self._halt([(model, job) for job in jobs[len(queued) :]])
        device.collect(queued, LIMIT)

    def _pause(self) -> None:
        """Halt at the place behind the last one.

        By hand, job by job of the restore: once the body goes on, the executor runs ahead of the units and is there at
        once."""
        device, engine = self.device, self.device.engines[0]
        engine.pause()
        while True:
            while engine.state() != EngineState.HALTED:
                device.bus.advance(1)
            device.queues.take_completions(0)
            restoring = bool(device.preemption.supervisor.jobs)
            if not restoring and (not engine.unfinished or self.visited[-1:] != [self._place()]):
                return
            engine.go_on()
            while engine.not_loaded()[:1] == engine.unfinished[:1]:
                device.bus.advance(1)  # a pause would abandon the loads of its prologue, again and again
            engine.pause()

    def _place(self) -> Place:
        oldest = self.device.engines[0].unfinished[0]
        if self.device.regs.read_fields("E0.STATUS")["in_job"]:
            return oldest.index, self.device.engines[0].register("HALT_POINT")
        return oldest.index, oldest.point and oldest.point.point

    def _halt(self, upcoming: list[tuple[LoadedModel, int]]) -> None:
        urgent = self.urgent[len(self.visited) % len(self.urgent)]
        suspension = self.device.suspend([0], urgent.model, upcoming, verify=True)
        if not suspension.queues[0]:
            self.device.abandon(suspension)
            return
        point = suspension.points.get(0)
        place = (suspension.queues[0][0].index, point and point.point)
        self.visited.append(place)
        self.device.admit(urgent.model)
        outputs, _ = urgent.session.run(urgent.inputs)
        urgent.check(outputs, f"urgent, at {self.visited[-1]} of {self.victim.model.name}")
        self.device.resume(suspension)
