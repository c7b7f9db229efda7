"""Writes outputs of requests to the folders that a scenario names."""

from pathlib import Path

from caesura.samples import Sample, save_outputs
from caesura.scenario.file_table import ScenarioError
from caesura.scenario.model_executor import ModelRun
from caesura.scenario.schema import Scenario


class OutputFiles:
    """Writes an .npz file for each run of a model with ``outputs``: ``STREAM-NUMBER-STAGE.npz``, with the number of the
    request in its stream and that of the stage, both from 0.

    Folders are made at once, below ``folder``, where the scenario lies. Raises :class:`ScenarioError` for one that a
    link leads out of there, ``OSError`` for one that cannot be made.
    """

    def __init__(self, scenario: Scenario, folder: Path) -> None:
        self._folders: dict[str, Path] = {}
        for name in scenario.used_models:
            below = scenario.models[name].outputs
            if below is not None:
                self._folders[name] = _made(name, folder, below)

    def write(self, run: ModelRun, outputs: Sample) -> None:
        """Write the outputs of a run, if its model has a folder for them."""
        if run.model in self._folders:
            name = f"{run.frame.stream}-{run.frame.number}-{run.stage}.npz"
            save_outputs(self._folders[run.model] / name, [outputs])


def _made(name: str, folder: Path, below: Path) -> Path:
    made = folder / below
    if not made.resolve().is_relative_to(folder.resolve()):
        raise ScenarioError(f"model {name!r}: outputs: {made} leads out of the scenario's folder; name one within it")
    made.mkdir(parents=True, exist_ok=True)
    return made
