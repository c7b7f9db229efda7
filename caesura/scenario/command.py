"""``caesura scenario``: from command-line arguments to output."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from caesura.api import UsageError
from caesura.scenario.report import to_table
from caesura.scenario.runner import run_scenario


def scenario_command(
    file: Path, policy: str, backend: str, placement: str, options: Sequence[str], as_json: bool, trace: Path | None,
    params: Path | None = None, changes: Sequence[str] = (), page: Path | None = None,
) -> None:  # fmt: skip
    """Run ``file`` and print its metrics. ``options`` of the policy are of the form ``name=number``."""
    chosen = dict(_option(text) for text in options)
    result = run_scenario(
        file,
        policy,
        backend,
        placement=placement,
        options=chosen,
        trace=trace,
        params=params,
        changes=changes,
        page=page,
    )
    if as_json:
        print(json.dumps(result))
    else:
        Console().print(to_table(result))


def _option(text: str) -> tuple[str, Any]:
    name, _, value = text.partition("=")
    for kind in (int, float):
        try:
            return name, kind(value)
        except ValueError:
            continue
    raise UsageError(f"--option {text!r}: must be name=number, such as window=3")
