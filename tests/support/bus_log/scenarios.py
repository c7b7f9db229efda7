"""All scenarios by name, each on the fake device and on the fast model, and how one is played."""

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from tests.support.bus_log import of_driver, of_faults, of_runtime
from tests.support.bus_log.log import Digests
from tests.support.bus_log.stage import Stage
from tests.support.fake_soc import FakeSoc
from tests.support.model_soc import ModelSoc

KNOWN = Path(__file__).parents[2] / "sw" / "bus_log.json"  #: digests by name of the scenario

SCENARIOS: dict[str, tuple[type[FakeSoc] | type[ModelSoc], Callable[[Stage], None]]] = {
    f"{kind}-{scenario.__name__}": (soc, scenario)
    for scenario in (*of_driver.SCENARIOS, *of_faults.SCENARIOS, *of_runtime.SCENARIOS)
    for kind, soc in (("fake", FakeSoc), ("model", ModelSoc))
    if soc is FakeSoc or scenario is not of_faults.faults_of_the_driver
}


def play(name: str) -> list[str]:
    """The log of a scenario."""
    soc, scenario = SCENARIOS[name]
    lines = list[str]()
    scenario(Stage(soc, lines))
    return lines


def known() -> dict[str, Digests]:
    """The digests that are recorded."""
    return {name: Digests(**entry) for name, entry in json.loads(KNOWN.read_text()).items()}


def record(digests: dict[str, Digests]) -> None:
    """Write digests to where :func:`known` finds them."""
    rows = [f"  {json.dumps(name)}: {json.dumps(asdict(entry))}" for name, entry in digests.items()]
    KNOWN.write_text("{\n" + ",\n".join(rows) + "\n}\n")
