"""``benchmarks/figures.json``: figures that were measured, and the digests of the files that each of them ran."""

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from benchmarks.ledger.file_digests import FileDigest
from caesura import UsageError
from caesura.views import json_text

FILE = Path(__file__).parents[1] / "figures.json"
_ABOUT = "Written by `caesura bench ... --record`. Do not edit: docs/figures.md"


@dataclass(frozen=True)
class RecordedFigure:
    """One row of one bench as it was measured. ``value`` is None if it could not be, and ``skipped`` says that nobody
    is to blame. ``machine`` is told where the figure depends on the machine."""

    bench: str
    name: str
    value: float | None
    unit: str
    must: float
    aim: float
    at_most: bool
    ok: bool
    skipped: bool
    explanation: str
    preset: str
    backend: str
    commit: str
    dirty: bool  #: whether a file that it ran differed from the commit
    place: int  #: in the report of its bench
    seconds: float  #: that it took, runs that rows before it had made not counted again
    machine: Mapping[str, Any] | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)
    files: tuple[FileDigest, ...] = ()


class Ledger:
    """Recorded figures by ``NAME/ROW``, where NAME is that of :class:`benchmarks.ledger.plan.PlannedBench`."""

    def __init__(self, rows: Mapping[str, RecordedFigure] | None = None) -> None:
        self.rows = dict(rows or {})

    @classmethod
    def read(cls, path: Path = FILE) -> "Ledger":
        """Return what a file holds; empty if there is none. Raises :class:`UsageError` for one that ``write`` did not
        make."""
        if not path.exists():
            return cls()
        try:
            told = json.loads(path.read_text())
            files = [FileDigest(*one) for one in told["files"]]
            sets = {name: tuple(files[number] for number in _numbers(text)) for name, text in told["sets"].items()}
            rows = {key: RecordedFigure(**row | {"files": sets[row["files"]]}) for key, row in told["rows"].items()}
        except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
            raise UsageError(f"{path}: holds no recorded figures ({error!r}); take it back from git") from None
        return cls(rows)

    def write(self, path: Path = FILE) -> None:
        """Replace a file as a whole. Each row, set of files and file has a line, so that differences can be read."""
        files = sorted({one for row in self.rows.values() for one in row.files})
        number = {one: place for place, one in enumerate(files)}
        sets = {_set_name(row.files): _ranges(number[one] for one in row.files) for row in self.rows.values()}
        rows = {key: _to_fields(row) for key, row in sorted(self.rows.items())}
        listed = ",\n".join(json.dumps(one) for one in files)
        text = (
            f'{{\n"about": {json.dumps(_ABOUT)},\n"rows": {{\n{_lines(rows)}\n}},\n'
            f'"sets": {{\n{_lines(dict(sorted(sets.items())))}\n}},\n"files": [\n{listed}\n]\n}}\n'
        )
        draft = path.with_name(f".{path.name}.{os.getpid()}")
        draft.write_text(text)
        draft.replace(path)

    def changed(self) -> set[FileDigest]:
        """Return all files of the rows that do not say what they said when they ran."""
        return {one for one in {one for row in self.rows.values() for one in row.files} if not one.holds}


@contextlib.contextmanager
def updated(path: Path = FILE) -> Iterator[Ledger]:
    """The ledger in a file, which is written back afterwards; others that do the same wait meanwhile."""
    import fcntl  # which Windows has not; only recording needs it

    folder = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        ledger = Ledger.read(path)
        yield ledger
        ledger.write(path)
    finally:
        os.close(folder)


def _to_fields(row: RecordedFigure) -> dict[str, Any]:
    told = {one.name: getattr(row, one.name) for one in fields(row)} | {"files": _set_name(row.files)}
    return {name: value for name, value in told.items() if name != "machine" or value is not None}


def _lines(entries: Mapping[str, Any]) -> str:
    return ",\n".join(f"{json.dumps(key)}: {json_text(value)}" for key, value in entries.items())


def _set_name(files: Sequence[FileDigest]) -> str:
    return hashlib.sha256(repr(sorted(files)).encode()).hexdigest()[:12]


def _ranges(numbers: Iterable[int]) -> str:
    """Return the numbers as text: ``0-3,7``."""
    spans: list[list[int]] = []
    for number in sorted(numbers):
        if spans and spans[-1][1] == number - 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in spans)


def _numbers(text: str) -> Iterator[int]:
    """Yield the inverse of :func:`_ranges`."""
    for span in filter(None, text.split(",")):
        first, _, last = span.partition("-")
        yield from range(int(first), int(last or first) + 1)
