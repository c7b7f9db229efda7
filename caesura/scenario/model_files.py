"""Finds the file of a scenario's model, and how often that is loaded."""

from pathlib import Path

from caesura.bench import benchmarks
from caesura.scenario.arrivals import Closed
from caesura.scenario.file_table import ScenarioError
from caesura.scenario.model_spec import ModelSpec
from caesura.scenario.schema import Scenario


def copies(scenario: Scenario, model: str) -> int:
    """Return how often ``model`` is loaded: as told, or so that requests of a closed loop need not wait for each
    other."""
    spec = scenario.models[model]
    if spec.copies is not None or spec.sequences is not None:  # those of a batch run together
        return spec.copies or 1
    loops = [
        stream.arrivals.concurrency
        for stream in scenario.streams
        if isinstance(stream.arrivals, Closed) and any(stage.model == model for stage in stream.stages)
    ]
    return min(2, max(loops, default=1))


def model_file(name: str, model: ModelSpec, folder: Path) -> Path:
    """Return the ONNX file of ``model``, called ``name``, of a scenario in ``folder``, or its image; the file of a
    workload is generated. Raises :class:`ScenarioError` if it has none."""
    if (given := model.onnx or model.image) is not None:
        return folder / given
    if model.workload is not None:
        workloads = benchmarks("workloads", f"model {name!r} (workload {model.workload!r})")
        try:
            return workloads.workload(model.workload)
        except workloads.UnknownWorkload as error:
            raise ScenarioError(f"model {name!r}: {error}") from None
    raise ScenarioError(
        f"model {name!r} has only layers with durations, which backend 'synthetic' runs; give onnx, image or workload"
    )
