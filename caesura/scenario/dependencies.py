"""Finds all files that the outcome of a scenario depends on, and a digest of what they hold."""

import contextlib
import hashlib
from collections.abc import Iterator
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError

from caesura.scenario.rtl import model_file
from caesura.scenario.schema import Scenario, ScenarioError, TraceSpec, load_scenario
from sim.host import all_tensors


def dependencies_digest(path: Path, policy: str, backend: str) -> str:
    """Return a digest of the scenario in ``path`` with all that it names: models and their data files, arrival times,
    and the file of a ``policy`` of one's own. What cannot be read counts as missing: to run the scenario tells why."""
    digest = hashlib.sha256(_content(path))
    with contextlib.suppress(ScenarioError):
        for file in _files(load_scenario(path), path.parent, policy, backend):
            digest.update(_content(file))
    return digest.hexdigest()


def _content(file: Path) -> bytes:
    try:
        with file.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").digest()
    except OSError:
        return b"missing"


def _files(scenario: Scenario, folder: Path, policy: str, backend: str) -> Iterator[Path]:
    """Yield the files that the scenario names, those of models only where ``backend`` runs them."""
    for stream in scenario.streams:
        if isinstance(stream.arrivals, TraceSpec) and stream.arrivals.file is not None:
            yield folder / stream.arrivals.file
    if ".py:" in policy:
        yield Path(policy.rpartition(":")[0])
    if backend == "synthetic":
        return
    for name in dict.fromkeys(s.model for stream in scenario.streams for s in stream.stages if s.model is not None):
        model = model_file(name, scenario.models[name], folder)
        yield model
        yield from _data_files(model)


def _data_files(model: Path) -> list[Path]:
    """Return the files that hold tensors of a model."""
    try:
        tensors = list(all_tensors(onnx.load(str(model), load_external_data=False)))
    except (OSError, ValueError, DecodeError):
        return []
    places = (entry.value for tensor in tensors for entry in tensor.external_data if entry.key == "location")
    return [model.parent / place for place in dict.fromkeys(places)]
