"""The process that measures rows of one bench, started by ``benchmarks.ledger.record``.

    python -m benchmarks.ledger.measure ENTRY DEADLINE ROW...

It writes a line of JSON for each row: what was measured, and the files that this process and those that it started have
executed or read since the line before. Later rows find the modules of earlier ones, and their runs, so a row depends on
all files up to its own line.
"""

import json
import os
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.figures import Figure
from benchmarks.lab import Lab
from benchmarks.ledger.plan import PLAN, PlannedBench
from benchmarks.ledger.startup.sitecustomize import LOG
from caesura import resolve
from caesura.views import Progress, json_text
from hw.contract.params import SocParams

_MOST_DETAIL = 500  #: characters of a member of a row's details that are kept; longer ones are tables of their own


def main(name: str, deadline: float, rows: list[str]) -> None:
    """Measure ``rows`` in the order of the report; none begins after ``deadline`` on the system's clock."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a bench prints is for people
    entry = next(one for one in PLAN if one.name == name)
    figures = [figure for figure in entry.figures() if figure.name in rows]
    seen = _new_lines(Path(os.environ[LOG]))
    with Progress() as progress, Lab(_params(entry), entry.backend, progress) as lab:
        for figure in figures:
            if time.time() >= deadline:
                return
            progress.task(figure.name)
            told = _measured(figure, lab)
            print(json_text(told | {"name": figure.name, "files": next(seen)}), file=answers, flush=True)


def _params(entry: PlannedBench) -> SocParams:
    if entry.bench == "trust":
        from benchmarks.trust.soc import PARAMS

        return PARAMS
    return resolve(entry.preset)


def _measured(figure: Figure, lab: Lab) -> dict[str, Any]:
    """Return the members of a ``RecordedFigure`` that are known here, or the ``error`` for which there is none."""
    begin = time.monotonic()
    try:
        row = figure.row(lab)
    except Exception as error:
        traceback.print_exc()
        return {"error": f"{type(error).__name__}: {error}"}
    told = row.to_dict()
    return {
        **{name: told[name] for name in ("value", "unit", "must", "aim", "ok")},
        "at_most": row.target.at_most, "skipped": row.skipped, "explanation": row.explanation,
        "seconds": round(time.monotonic() - begin, 1), "detail": _short(row.detail),
    }  # fmt: skip


def _short(detail: dict[str, Any]) -> dict[str, Any]:
    """``detail`` without the members that are long, and without the explanation, which is told apart."""
    whole = json.loads(json_text(detail))
    return {name: v for name, v in whole.items() if name != "explanation" and len(json.dumps(v)) <= _MOST_DETAIL}


def _new_lines(log: Path) -> Iterator[list[str]]:
    """Each time the lines of a file that no list before had."""
    known = set[str]()
    while True:
        lines = set(log.read_text().splitlines())
        yield sorted(lines - known)
        known |= lines


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), sys.argv[3:])
