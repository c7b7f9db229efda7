"""Says how a scenario was served."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from caesura.certificate.promise_report import PromiseReport
from caesura.scenario.device_report import DeviceReport, device_reports
from caesura.scenario.model_report import ModelReport, model_reports
from caesura.scenario.outcome import Outcome
from caesura.scenario.schema import Scenario


@dataclass(frozen=True)
class Served:
    """Says how a scenario was served: what happened, and the metrics of that. ``result``: as plain data, see
    :func:`caesura.scenario.reports.report`. ``promises``: how those of its certificate were kept, if it has one."""

    scenario: Scenario
    outcome: Outcome
    result: dict[str, Any]
    promises: Sequence[PromiseReport] = ()

    def __repr__(self) -> str:
        """Return in a line what was served; its fields have all of it."""
        wrong = f", with other outputs {len(self.mismatches)}" if self.mismatches else ""
        return f"<Served {self.scenario.name!r}: requests {len(self.outcome.frames)}{wrong}>"

    @cached_property
    def models(self) -> list[ModelReport]:
        """Return how each model fared, in the order of the scenario."""
        return model_reports(self.scenario, self.outcome)

    @cached_property
    def devices(self) -> list[DeviceReport]:
        """Return what each device served, by number."""
        return device_reports(self.outcome)

    @property
    def mismatches(self) -> list[str]:
        """Return a line for each request whose outputs are others than those of its model alone."""
        return self.outcome.mismatches
