"""Runs scenarios on the RTL: real models, compiled to lie side by side in LV2 where that has room."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from caesura import api
from caesura.bench import benchmarks
from caesura.scenario.device_executor import Alone, DeviceExecutor
from caesura.scenario.outcome import Outcome
from caesura.scenario.policies import Policies
from caesura.scenario.schema import Closed, ModelSpec, Scenario, ScenarioError
from caesura.scenario.serving import serve
from caesura.views.progress import Progress, compiling
from compiler import CompileError, OpenDimension, Options, UnsupportedModel
from hw.contract.bus import Progress as CycleCallback
from hw.contract.params import SocParams
from hw.image import Image
from sim import DEFAULT_BACKEND
from sw.runtime import Mechanism, Situation, choose

__all__ = ["Alone", "RtlRunner"]

OpenDevice = Callable[[SocParams, str, CycleCallback], api.Device]


class RtlRunner:
    """Serves scenarios whose models are given as ``onnx`` or ``workload`` on an RTL backend.

    Every request's outputs are compared with those of its model run by itself; ``mismatches`` lists what differed in
    the latest run. Images are compiled once for each share of LV2. ``rule``: what to do on a more urgent arrival;
    ``open_device``: powers the device on, as ``caesura.open`` does, for what that has no name for.
    """

    def __init__(
        self,
        backend: str = DEFAULT_BACKEND,
        rule: Callable[[Situation], Mechanism] = choose,
        progress: Progress | None = None,
        open_device: OpenDevice | None = None,
    ) -> None:
        self._backend, self._rule, self._progress = backend, rule, progress or Progress()
        self._open = open_device or _open
        self._images: dict[tuple[Path, SocParams, int, Options, bool], Image] = {}
        self.mismatches: list[str] = []
        self.alone: dict[str, Alone] = {}  #: by model, of the latest runs

    def run(self, scenario: Scenario, policies: Policies, folder: Path) -> Outcome:
        """Run a scenario as ``Runner`` describes it. Raises :class:`ScenarioError` for a model without a file, and what
        compiler and driver raise; the error of a request that fails."""
        params = api.resolve(scenario.machine.preset).replace(**scenario.machine.params)
        images = self._compile(scenario, params, folder)
        self._progress.rest()  # a simulator may be built
        device = self._open(params, self._backend, self._progress.cycles)
        try:
            models = {
                name: [
                    device.driver.load(image, keep_weights=scenario.models[name].keep_weights)
                    for _ in range(copies(scenario, name))
                ]
                for name, image in images.items()
            }
            executor = DeviceExecutor(scenario, policies, device.driver, models, self._rule, self._progress)
            self.mismatches = executor.mismatches
            self.alone |= executor.alone
            return serve(scenario, executor, folder)
        finally:
            device.close()

    def _compile(self, scenario: Scenario, params: SocParams, folder: Path) -> dict[str, Image]:
        engines = 1 if scenario.machine.placed else params.engines
        used = {s.model for stream in scenario.streams for s in stream.stages if s.model is not None}
        fixed = {name: scenario.models[name].lv2_limit for name in used}
        left = params.lv2_bytes - sum((size or 0) * copies(scenario, name) for name, size in fixed.items())
        shares = sum(copies(scenario, name) for name, size in fixed.items() if size is None)
        share = max(0, left) // max(1, shares) // params.lv1_word * params.lv1_word
        images = {}
        for name in sorted(used):
            path, size = model_file(name, scenario.models[name], folder), fixed[name]
            options, fallback = api.options_of(scenario.models[name].options), scenario.models[name].fallback
            limited = replace(options, lv2_limit=share if size is None else size)
            try:
                images[name] = self._image(path, params, engines, limited, fallback)
            except UnsupportedModel as error:
                raise ScenarioError(f"model {name!r}: {error.told(f'fallback = true in [models.{name}]')}") from None
            except OpenDimension as error:
                raise ScenarioError(f"model {name!r}: {error.told(None)}") from None
            except CompileError:
                if size is not None:
                    raise
                # Its share is too small: it takes turns with the others.
                images[name] = self._image(path, params, engines, options, fallback)
        return images

    def _image(self, path: Path, params: SocParams, engines: int, options: Options, fallback: bool) -> Image:
        key = (
            path,
            params,
            engines,
            options,
            fallback,
        )  # all of params: estimates depend on the DRAM's timing, digests do not
        if key not in self._images:
            self._progress.task(compiling(path, params))
            self._images[key] = api.compile(path, params, engines=engines, fallback=fallback, options=options)
        return self._images[key]


def copies(scenario: Scenario, model: str) -> int:
    """Return how often ``model`` is loaded: as told, or so that requests of a closed loop need not wait for each
    other."""
    told = scenario.models[model].copies
    if told is not None:
        return told
    loops = [
        stream.arrivals.concurrency
        for stream in scenario.streams
        if isinstance(stream.arrivals, Closed) and any(stage.model == model for stage in stream.stages)
    ]
    return min(2, max(loops, default=1))


def model_file(name: str, model: ModelSpec, folder: Path) -> Path:
    """Return the ONNX file of ``model``, called ``name``, of a scenario in ``folder``; that of a workload is generated.
    Raises :class:`ScenarioError` if it has none."""
    if model.onnx is not None:
        return folder / model.onnx
    if model.workload is not None:
        workloads = benchmarks("workloads", f"model {name!r} (workload {model.workload!r})")
        try:
            return workloads.workload(model.workload)
        except workloads.UnknownWorkload as error:
            raise ScenarioError(f"model {name!r}: {error}") from None
    raise ScenarioError(
        f"model {name!r} has only layers with durations, which backend 'synthetic' runs; give onnx or workload"
    )


def _open(params: SocParams, backend: str, progress: CycleCallback) -> api.Device:
    return api.open(params, backend, progress=progress)
