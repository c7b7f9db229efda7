"""Runs a loaded model: inputs in, the image's steps in order, outputs and statistics back."""

from collections.abc import Mapping

import numpy.typing as npt

from sw.driver import Device, LoadedModel
from sw.runtime.device_queues import Engines, least_busy
from sw.runtime.model_data import Arrays, ModelData
from sw.runtime.request_runner import RequestRunner
from sw.runtime.rules import Rules
from sw.runtime.stats import RunStats, run_stats


class Session(ModelData):
    """Runs inferences of one model, one at a time. The first that has the device to itself stores the durations of its
    layers in the image that was loaded (the reference durations of **Queue-time balancing**), if it has none.

    ``limit``: cycles each group of jobs may take before ``DeviceTimeout``; by default what the driver lets jobs take
    (``sw.driver.limits``). After a failed inference the engines involved were reset and the session can run again.
    """

    def __init__(self, device: Device, model: LoadedModel, limit: int | None = None) -> None:
        super().__init__(device, model)
        self.limit = limit

    def run(
        self, inputs: npt.ArrayLike | Mapping[str, npt.ArrayLike], engines: Engines = None
    ) -> tuple[Arrays, RunStats]:
        """Run one inference. ``inputs`` is an array if the model has one input, or arrays by input name. ``engines`` is
        as for ``Device.assign``, by default those of the inference before; ``least_busy``: those whose queues are
        shortest.

        Returns outputs by name and the statistics. Raises :class:`InputError` before anything runs,
        :class:`DriverError` (``DeviceFault``, ``DeviceTimeout``) if the device fails, the model was unloaded, or a run
        time, another session or another thread uses the device.
        """
        with self.device.ownership.one_thread():
            rules = Rules.of_whole_steps(self.device, self.model, self.limit)
            if engines == "least_busy":
                engines = least_busy(self.device, self.model.image)
            runner = RequestRunner(self.device, rules, name=f"a session of model {self.model.name!r}")
            try:
                request = runner.accept(self, inputs, engines=engines)
                outputs = request.result()
            finally:
                self.device.ownership.release(runner)
            assert request.stored is not None and request.ended is not None
            latency = request.ended - request.stored
            return outputs, run_stats(
                self.model.image, self.device.params, request.results, request.stored, latency, request.cpu_steps
            )
