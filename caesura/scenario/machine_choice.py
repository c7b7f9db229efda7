"""Says what hardware a scenario runs on."""

from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

from caesura.api import resolve
from caesura.machines import changed, machine
from caesura.scenario.file_table import ScenarioError
from caesura.scenario.schema import MOST_DEVICES, Scenario
from hw.contract.params import PRESETS, SocParams


class MachineChoice(TypedDict):
    """Holds the keys of a scenario's ``machine`` that choose hardware."""

    preset: str
    params: dict[str, int]


def params_of(scenario: Scenario) -> SocParams:
    """Return the parameters of the hardware; raises ``ParamError`` for what cannot be built."""
    return resolve(scenario.machine.preset).replace(**scenario.machine.params)


def hardware_of(params: SocParams) -> MachineChoice:
    """Return what chooses hardware with ``params``: a preset, the one that they are named after if there is one, and
    what is different."""
    first = params.name.split(",")[0]
    preset = first if first in PRESETS else "tiny"
    known = resolve(preset).to_dict()
    odd = {key: value for key, value in params.to_dict().items() if key != "name" and value != known[key]}
    return {"preset": preset, "params": odd}


def on_machine(scenario: Scenario, preset: str | None, params: Path | None, changes: Sequence[str]) -> Scenario:
    """Return the scenario with other hardware: a preset or a file of parameters instead of its own, and ``changes``
    such as ``engines=4``. Raises ``ParamError``."""
    base = machine(preset, params) or params_of(scenario)
    spec = scenario.machine.model_copy(update=dict(hardware_of(changed(base, changes))))
    return scenario.model_copy(update={"machine": spec})


def on_devices(scenario: Scenario, devices: int) -> Scenario:
    """Return the scenario with another number of devices. Raises :class:`ScenarioError` for too few or too many."""
    if not 1 <= devices <= MOST_DEVICES:
        raise ScenarioError(f"devices = {devices}: must be from 1 to {MOST_DEVICES}")
    return scenario.model_copy(update={"machine": scenario.machine.model_copy(update={"devices": devices})})
