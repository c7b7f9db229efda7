"""Runs ``caesura scenario`` from command-line arguments to output."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType

from caesura.api import UsageError
from caesura.comma_separated import to_csv
from caesura.json_form import json_text
from caesura.progress import Progress
from caesura.scenario.outcome import Outcome
from caesura.scenario.outcome_chart import outcome_chart
from caesura.scenario.reports import comparison, to_rows, to_table
from caesura.scenario.runner import run_scenario
from caesura.scenario.schema import Scenario
from caesura.terminal import line, tell, width, write


def scenario_command(
    file: Path,
    policies: Sequence[str],
    backend: str | None,
    placement: str,
    options: Sequence[str],
    as_json: bool,
    trace: Path | None,
    params: Path | None = None,
    changes: Sequence[str] = (),
    page: Path | None = None,
    *,
    as_csv: bool = False,
    draw: bool = False,
) -> None:
    """Run ``file`` and print its metrics, under several ``policies`` in one table. ``options`` of the policies are of
    the form ``name=number``."""
    chosen = dict(_option(text) for text in options)
    if (trace or page) and len(policies) > 1:
        raise UsageError("--trace and --report tell of one run: give one --policy")
    if draw and (as_json or as_csv):
        raise UsageError("--chart draws for people: leave --json and --csv out")
    charts: list[RenderableType] = []

    def drawn(scenario: Scenario, outcome: Outcome) -> None:
        charts.append(outcome_chart(outcome, scenario.time_unit, width()))

    with Progress() as progress:
        results = [
            run_scenario(
                file, policy, backend, placement=placement, options=chosen, trace=trace, params=params, changes=changes,
                page=page, seen=drawn if draw else None, progress=progress,
            )
            for policy in policies
        ]  # fmt: skip
    for policy, shown in zip(policies, charts, strict=False):
        tell(Group(line(f"{policy}:"), shown) if len(policies) > 1 else shown)
    if as_json:
        write(json_text(results[0] if len(results) == 1 else results))
    elif as_csv:
        write(to_csv(to_rows(results)))
    else:
        tell(to_table(results[0]) if len(results) == 1 else comparison(results))


def _option(text: str) -> tuple[str, Any]:
    name, _, value = text.partition("=")
    for kind in (int, float):
        try:
            return name, kind(value)
        except ValueError:
            continue
    raise UsageError(f"--option {text!r}: must be name=number, such as window=3")
