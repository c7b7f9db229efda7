"""Runs a loaded model: inputs in, the image's steps in order, outputs and statistics back."""

from collections.abc import Mapping, Sequence

import numpy.typing as npt

from hw.contract.image import StepInfo
from sw.driver import Device, JobResult, LoadedModel
from sw.runtime import reference
from sw.runtime.host_steps import HostSteps
from sw.runtime.job_groups import job_groups
from sw.runtime.policies.contract import Operator
from sw.runtime.policies.queue_time import QueueTime
from sw.runtime.ports import InputError, by_name, from_tensor, to_tensor
from sw.runtime.stats import RunStats, StepOnCpu, run_stats

Arrays = dict[str, npt.NDArray]


class Session:
    """Runs inferences of one model, one at a time. The first that has the device to itself stores the durations of its
    layers in the image that was loaded (the reference durations of **Queue-time balancing**), if it has none.

    ``limit``: cycles each group of jobs may take before ``DeviceTimeout``; by default what the driver lets jobs take
    (``sw.driver.limits``). After a failed inference the engines involved were reset and the session can run again.
    """

    def __init__(self, device: Device, model: LoadedModel, limit: int | None = None) -> None:
        self.device = device
        self.model = model
        meta = model.image.meta
        self.limit = limit
        self._tensors = {tensor.name: tensor for tensor in meta.tensors}
        self._host = HostSteps(model.image)

    def run(
        self, inputs: npt.ArrayLike | Mapping[str, npt.ArrayLike], engines: Sequence[int] | None = None
    ) -> tuple[Arrays, RunStats]:
        """Run one inference. ``inputs`` is an array if the model has one input, or arrays by input name. ``engines`` is
        as for ``Device.assign``, by default those of the inference before.

        Returns outputs by name and the statistics. Raises :class:`InputError` before anything runs,
        :class:`DriverError` (``DeviceFault``, ``DeviceTimeout``) if the device fails, the model was unloaded, or a run
        time, another session or another thread uses the device.
        """
        with self.device.ownership.one_thread():
            run = _Run()
            self.device.claim(run, f"a session of model {self.model.name!r}")
            try:
                return self._run(inputs, engines)
            finally:
                self.device.ownership.release(run)

    def _run(
        self, inputs: npt.ArrayLike | Mapping[str, npt.ArrayLike], engines: Sequence[int] | None
    ) -> tuple[Arrays, RunStats]:
        self.device.refuse_unloaded(self.model)
        if engines is not None:
            self.device.assign(self.model, engines)
        self.store(inputs)
        alone = not self.device.outstanding and not self.device.suspensions
        begin = self.device.bus.cycle
        try:
            self.device.begin(self.model, self.limit)
            steps = self.model.image.meta.steps
            on_cpu: list[StepOnCpu] = []
            results = [result for step in steps for result in self._run_step(step, on_cpu)]
        except Exception:  # faults and time-outs above all; a step on the CPU may raise anything
            self.device.abort(self.model)
            raise
        latency = self.device.bus.cycle - begin
        if alone and not reference.measured(self.model.image):
            reference.store(self.model.image, results)
        return self.fetch(), run_stats(self.model.image, results, begin, latency, on_cpu)

    def read_tensor(self, name: str) -> npt.NDArray:
        """Return a tensor of the last inference as it is stored, by the image's name for it."""
        return self.model.read_tensor(name)

    def _by_name(self, inputs: npt.ArrayLike | Mapping[str, npt.ArrayLike]) -> dict[str, npt.ArrayLike]:
        names = [port.name for port in self.model.image.meta.inputs]
        given = by_name(names, inputs)
        for name in [n for n in names if n not in given] + [n for n in given if n not in names]:
            problem = "is missing" if name in names else "does not exist"
            raise InputError(f"input {name!r} {problem}; model {self.model.name!r} takes {', '.join(map(repr, names))}")
        return given

    def store(self, inputs: npt.ArrayLike | Mapping[str, npt.ArrayLike]) -> None:
        """Convert inputs, given as for :meth:`run`, and write them to the device; raises :class:`InputError` as it
        does."""
        given = self._by_name(inputs)
        ports = self.model.image.meta.inputs
        stored = {port.tensor: to_tensor(port, self._tensors[port.tensor], given[port.name]) for port in ports}
        for name, value in stored.items():
            self.model.write_tensor(name, value)

    def fetch(self) -> Arrays:
        """Return the outputs of the last inference by name."""
        ports = self.model.image.meta.outputs
        return {p.name: from_tensor(p, self._tensors[p.tensor], self.model.read_tensor(p.tensor)) for p in ports}

    def host_cycles(self, step: StepInfo) -> int:
        """Return the cycles that ``step`` takes the CPU, which are 0 for one that runs on the accelerator."""
        return self._host.cycles(step, self.device.bus.costs) if step.kind == "host" else 0

    def compute_host(self, step: StepInfo) -> Arrays:
        """Return outputs by name of a step that belongs to the CPU, from what it reads on the device."""
        return self._host.run(step, {name: self.model.read_tensor(name) for name in step.inputs})

    def store_host(self, values: Arrays) -> None:
        """Write outputs of a step on the CPU to the device."""
        for name, value in values.items():
            self.model.write_tensor(name, value)

    def run_host(self, step: StepInfo) -> StepOnCpu:
        """Compute a step on the CPU and store its outputs, in the time that the CPU takes."""
        values, begin = self.compute_host(step), self.device.bus.cycle
        self.device.bus.advance(self.host_cycles(step))
        self.store_host(values)
        return StepOnCpu(tuple(step.outputs), step.reason, begin, self.device.bus.cycle)

    def _run_step(self, step: StepInfo, on_cpu: list[StepOnCpu]) -> list[JobResult]:
        if step.kind == "host":
            on_cpu.append(self.run_host(step))
            return []
        if self.model.placed:
            return self.device.collect(self._place(step), self.limit)
        jobs = range(step.first, step.first + step.count)
        ids = self.device.submit(self.model, jobs, limit=self.limit)
        return self.device.collect(ids, self.limit)

    def _place(self, step: StepInfo) -> list[int]:
        """Queue the layers of a step of a placed model, each where the expected queue time is smallest (**Queue-time
        balancing**)."""
        queues, ids = QueueTime([0.0] * len(self.model.engines)), list[int]()
        for number, group in enumerate(job_groups(self.model.image, step)):
            duration = max(group.cost.load, group.cost.compute)  # each engine has a loader of its own
            engine = self.model.engines[queues.place(Operator(0, number, duration))]
            ids += self.device.submit(self.model, group.jobs, limit=self.limit, engine=engine)
        return ids


class _Run:
    """Uses the device in place of its session, so that a run inside a run is refused, too."""
