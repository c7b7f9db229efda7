"""Runs workloads on one simulated SoC, each at most once, and compares them with onnxruntime."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType

import numpy as np

import caesura
from benchmarks.workloads import Inputs, inputs, workload
from caesura import Profile, check, profile
from caesura.views import Progress
from compiler import ALL_LV2, Graph, Options, compile_with_report, golden, import_model, reference
from hw.contract.bus import Progress as CycleCallback
from hw.contract.params import SocParams
from hw.image import Image
from sim.cost import inference
from sw.runtime import RunStats

OpenDevice = Callable[[SocParams, str, CycleCallback], caesura.Device]


#: What models are compiled with that are alone on the device: they claim all of LV2.
ALONE = Options(lv2_limit=ALL_LV2)


@dataclass(frozen=True)
class Run:
    """One inference of a workload."""

    workload: str
    image: Image
    stats: RunStats
    wall_seconds: float  #: of the inference alone: neither compiling the model nor building the simulator
    simulated: int  #: cycles simulated in that time, the host's part included
    correct: bool
    verdict: str

    @property
    def profile(self) -> Profile:
        """Return where the cycles went."""
        return profile(self.image, self.stats.jobs)

    @property
    def utilisation(self) -> float:
        """Return the percent of the MAC peak of all engines, over all cycles of the run."""
        return 100 * self.stats.macs / (self.image.params.macs * self.stats.cycles)


def alone(options: Options) -> Options:
    """Return ``options`` for a model that is alone on the device: it claims all of LV2 unless they say less."""
    return options if options.lv2_limit is not None else replace(options, lv2_limit=ALL_LV2)


class Lab:
    """A context manager. The device is opened, and its simulator built, when the first workload runs.

    ``check_layers``: compare every layer with onnxruntime, not only the outputs; takes a second run on one engine.
    """

    def __init__(
        self, params: SocParams, backend: str, progress: Progress, *, check_layers: bool = False,
        open_device: OpenDevice | None = None,
    ) -> None:  # fmt: skip
        self.params, self.backend, self.check_layers = params, backend, check_layers
        self.progress = progress
        self._open = open_device or _open
        self._device: caesura.Device | None = None
        self._runs: dict[tuple[str, Options], Run] = {}

    def __enter__(self) -> "Lab":
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._device is not None:
            self._device.close()
            self._device = None

    @property
    def device(self) -> caesura.Device:
        """Return the SoC."""
        if self._device is None:
            self.progress.rest()  # a simulator may be built
            self._device = self._open(self.params, self.backend, self.progress.cycles)
        return self._device

    def run(self, name: str, options: Options = ALONE) -> Run:
        """Return one inference of the workload ``name`` on its own inputs, the same if asked again. It has all of LV2
        unless ``options`` say less."""
        options = alone(options)
        if (name, options) not in self._runs:
            self._runs[name, options] = self._measure(name, options)
        return self._runs[name, options]

    def _measure(self, name: str, options: Options) -> Run:
        self.progress.task(f"{name}: compiling")
        return self.run_image(name, caesura.compile(workload(name), self.params, options=options))

    def run_image(self, name: str, image: Image, *, within_contracts: bool = False) -> Run:
        """Return one inference of ``image``, however the workload ``name`` was compiled to it, on its own inputs. It
        begins with an interval of the DRAM's refresh, whatever ran before. ``within_contracts``: outputs that differ
        from onnxruntime's are right if every operator keeps its contract."""
        path, feed = workload(name), inputs(name)
        model, bus = self.device.load(image), self.device.bus
        bus.advance(-bus.cycle % max(1, image.params.dram_refresh_interval))
        self.progress.task(name, cycle=bus.cycle, expected=inference(image.meta.layers).in_turn)
        begin, cycle = time.perf_counter(), bus.cycle
        outputs, stats = model.run(feed)
        seconds, simulated = time.perf_counter() - begin, bus.cycle - cycle
        self.device.unload(model)
        self.progress.task(f"{name}: comparing with onnxruntime")
        correct, verdict = self._compare(path, feed, outputs)
        if within_contracts and not correct and not self.check_layers:
            correct, verdict = compare_by_operator(import_model(path), feed, outputs)
        return Run(name, image, stats, seconds, simulated, correct, verdict)

    def _compare(self, path: Path, feed: Inputs, outputs: Inputs) -> tuple[bool, str]:
        if self.check_layers:
            # On one engine: copies for observation are not ordered behind the other engines' parts.
            observing = compile_with_report(path, self.params, observe=True, engines=1)
            result = check(self.device, path, observing.image, observing.graph, [feed], [outputs])
            return result.ok, result.summary()
        graph = import_model(path)
        if any(op.kind in golden.AS_WRITTEN for op in graph.ops):
            return compare_by_operator(graph, feed, outputs)
        expected = golden.golden_outputs(path, feed)
        wrong = [name for name, value in expected.items() if not np.array_equal(value, outputs[name])]
        return not wrong, f"outputs {', '.join(wrong)} differ" if wrong else "all outputs equal onnxruntime's"


def compare_by_operator(graph: Graph, feed: Inputs, outputs: Inputs) -> tuple[bool, str]:
    """For models of which onnxruntime computes some operators otherwise than their nodes say: outputs must equal the
    reference's, each operator of which is held against onnxruntime on the inputs that it had."""
    values = reference.run_all(graph, feed)
    checks = [golden.check_layer(graph, op, values, values[op.output]) for op in graph.ops if golden.judged(graph, op)]
    wrong = [check.name for check in checks if not check.ok]
    for port in graph.outputs:
        if not np.array_equal(reference.from_memory(port, values[port.tensor], graph), outputs[port.name]):
            wrong.append(port.name)
    right = f"outputs equal the reference's, all {len(checks)} operators of which are within their contracts"
    return not wrong, f"{', '.join(wrong)} differ" if wrong else right


def _open(params: SocParams, backend: str, progress: CycleCallback) -> caesura.Device:
    return caesura.open(params, backend, progress=progress)
