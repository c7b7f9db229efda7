"""Runs scenarios on one device or several: real models, on the RTL or on the fast model of it."""

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from caesura import api
from caesura.scenario.device_executor import Alone, DeviceExecutor
from caesura.scenario.machine_choice import params_of
from caesura.scenario.model_images import ModelImages
from caesura.scenario.outcome import Outcome
from caesura.scenario.output_files import OutputFiles
from caesura.scenario.policies import Policies
from caesura.scenario.schema import Scenario
from caesura.scenario.served_models import load_models
from caesura.scenario.serving import serve
from caesura.views.progress import Progress
from hw.contract.bus import Progress as CycleCallback
from hw.contract.params import SocParams
from sim import DEFAULT_BACKEND
from sw.admission import Admission
from sw.runtime import Mechanism, Situation, choose

__all__ = ["Alone", "RtlRunner"]


OpenDevice = Callable[[SocParams, str, CycleCallback], api.Device]


class RtlRunner:
    """Serves scenarios with real models on an RTL backend, or on the fast model.

    Outputs of requests are compared with those of their models run alone: of all whose inputs are random, and of those
    that take the first samples of a file, or with ``check`` any; ``mismatches`` lists what differed in the latest run.
    Images are compiled once for each share of LV2. ``rule``: what to do on a more urgent arrival, instead of the
    cheapest that the scenario allows. ``jobs`` and ``cache`` are as for ``caesura.compile``. ``open_device``: powers
    the device on, as ``caesura.open`` does, for what that has no name for. ``certificate``: which scenarios of its
    streams run under.
    """

    def __init__(
        self,
        backend: str = DEFAULT_BACKEND,
        rule: Callable[[Situation], Mechanism] | None = None,
        progress: Progress | None = None,
        *,
        check: bool = False,
        jobs: int | None = None,
        cache: bool = True,
        open_device: OpenDevice | None = None,
        certificate: Admission | None = None,
    ) -> None:
        self._backend, self._rule, self._progress = backend, rule, progress or Progress()
        self._open = open_device or _open
        self._certificate = certificate
        self._check, self._images = check, ModelImages(self._progress, jobs, cache=cache)
        self.mismatches: list[str] = []
        self.alone: dict[str, Alone] = {}  #: by model, of the latest runs

    def run(self, scenario: Scenario, policies: Policies, folder: Path) -> Outcome:
        """Run a scenario as ``Runner`` describes it. Raises :class:`ScenarioError` for a model without a file, and what
        compiler and driver raise; the error of a request that fails."""
        params = params_of(scenario)
        images = self._images.of(scenario, params, folder)
        files = OutputFiles(scenario, folder)
        self._progress.rest()  # a simulator may be built
        with ExitStack() as opened:
            devices = [
                opened.enter_context(self._open(params, self._backend, self._progress.cycles))
                for _ in range(scenario.machine.devices)
            ]
            models = []
            for device in devices:
                models.append(load_models(device, scenario, images, folder, self._certificate))
                for model in models[-1].values():
                    opened.callback(model.close)
            drivers, rule = [device.driver for device in devices], self._rule or _cheapest(scenario)
            executor = DeviceExecutor(
                scenario, policies, drivers, models, rule, files.write, self._progress, self._certificate
            )
            outcome = serve(scenario, executor, folder)
            if self._check:
                self._progress.task("checking outputs")
                executor.check.complete(executor.run_alone)
        self.mismatches = outcome.mismatches = executor.check.mismatches
        outcome.checked = executor.check.checked
        self.alone |= executor.alone
        return outcome


def _cheapest(scenario: Scenario) -> Callable[[Situation], Mechanism]:
    """Return the rule that takes the cheapest of what the scenario allows."""
    preemption = scenario.machine.preemption
    return choose if preemption is None else partial(choose, allowed=preemption.mechanisms)


def _open(params: SocParams, backend: str, progress: CycleCallback) -> api.Device:
    return api.open(params, backend, progress=progress)
