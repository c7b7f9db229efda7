"""``caesura bench stale``: recorded figures that may no longer hold, and figures that were never recorded."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Group
from rich.text import Text

from benchmarks.ledger.file_digests import MODELS, located
from benchmarks.ledger.ledger import FILE, Ledger, RecordedFigure
from benchmarks.ledger.plan import PLAN, PlannedBench
from caesura.views import table_of

GONE = "no longer exists"
_SHOWN = 4  #: files, and rows, that a line of the table names


@dataclass(frozen=True)
class StaleRow:
    """A figure by its ``key`` (``NAME/ROW``), why it does not hold, and the files that changed since."""

    key: str
    why: str
    files: tuple[str, ...] = ()


def stale_rows(names: Mapping[str, Sequence[str]] | None = None, *, path: Path = FILE) -> list[StaleRow]:
    """Return all figures of the ledger in ``path`` that do not hold. ``names``: rows that exist by planned bench; by
    default, those of all."""
    ledger, plan = Ledger.read(path), {entry.name: entry for entry in PLAN}
    names = names or {entry.name: [figure.name for figure in entry.figures()] for entry in PLAN}
    existing = [f"{name}/{row}" for name, rows in names.items() for row in rows]
    changed, found = {one: one.path for one in ledger.changed()}, []
    for key in existing:
        row = ledger.rows.get(key)
        if row is None:
            found.append(StaleRow(key, "never recorded"))
        elif problem := _other_hardware(row, plan[key.partition("/")[0]]):
            found.append(StaleRow(key, problem))
        elif files := tuple(sorted(changed[one] for one in row.files if one in changed)):
            found.append(StaleRow(key, "files changed", files))
    known, benches = set(existing), set(names)
    for key, row in ledger.rows.items():
        gone = key.partition("/")[0] in benches or key.partition("/")[0] not in plan
        if gone and key not in known and not _lacks_models(row):
            found.append(StaleRow(key, GONE))
    return found


def _other_hardware(row: RecordedFigure, entry: PlannedBench) -> str:
    if (row.preset, row.backend) == (entry.preset, entry.backend):
        return ""
    return f"recorded on {row.preset} ({row.backend}), now measured on {entry.preset} ({entry.backend})"


def _lacks_models(row: RecordedFigure) -> bool:
    """Return whether a row is missing since a model is, which is not part of the project."""
    return any(one.path.startswith(MODELS) and not located(one.path).is_file() for one in row.files)


def to_table(rows: Sequence[StaleRow]) -> Group:
    """For a terminal: a line for each bench and reason."""
    reasons = defaultdict[tuple[str, str, tuple[str, ...]], list[str]](list)
    for row in rows:
        bench, _, name = row.key.partition("/")
        reasons[bench, row.why, row.files].append(name)
    heads = ("bench", ">rows", "which", "why", "files")
    lines = [(bench, len(names), _few(names), why, _few(files)) for (bench, why, files), names in reasons.items()]
    return Group(
        table_of("", heads, lines).rich(), Text(f"{len(rows)} stale rows: caesura bench all --record measures them")
    )


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
