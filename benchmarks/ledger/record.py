"""``caesura bench all --record``: measures rows and writes each to the ledger at once, so that it can go on later."""

import fnmatch
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.ledger.file_digests import (
    MODELS,
    ROOT,
    changed_files,
    content_digests,
    file_digest,
    front_digests,
    git,
    models_folder,
    named,
    project_files,
)
from benchmarks.ledger.ledger import FILE, RecordedFigure, updated
from benchmarks.ledger.plan import PLAN, PlannedBench, planned
from benchmarks.ledger.stale import GONE, stale_rows
from benchmarks.ledger.startup.sitecustomize import LOG, ROOTS, UNSEEN
from caesura import UsageError

_STARTUP = ROOT / "benchmarks" / "ledger" / "startup"
_OWN = "benchmarks/ledger/"  #: files that record figures change none
_COMMIT_DIGITS = 10


@dataclass
class Recording:
    """What a call recorded, row by row; ``failed`` names rows without a figure and says why, ``left`` those for which
    there was no time."""

    rows: dict[str, RecordedFigure] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Return whether all that was measured meets what it must, and nothing failed."""
        return not self.failed and all(row.ok for row in self.rows.values())


def record(
    bench: str,
    only: Sequence[str] = (),
    *,
    seconds: float = float("inf"),
    told: Callable[[str], None] = lambda line: None,
    path: Path = FILE,
) -> Recording:
    """Measure the rows of a bench that match a pattern of ``only``; of ``all``, those that are missing or stale, by
    patterns of ``NAME/ROW``. No row begins after ``seconds``. ``told`` is called with a line for each row.

    Raises :class:`UsageError` for an unknown bench, a pattern that nothing matches, and outside a git checkout.
    """
    deadline = time.time() + seconds
    result = Recording()
    if bench == "all":
        _remove_what_is_gone(only, told, path)
    chosen = list(_chosen(bench, only, path))
    if not chosen:
        told("nothing to measure: all these figures hold")
    for entry, rows in chosen:
        measured = set[str]()
        if time.time() >= deadline:
            result.left += [f"{entry.name}/{row}" for row in rows]
            continue
        failed = dict[str, str]()
        for key, figure in _measured(entry, rows, deadline, failed):
            with updated(path) as ledger:
                ledger.rows[key] = figure
            result.rows[key] = figure
            measured.add(figure.name)
            told(_line(key, figure))
        keys = [f"{entry.name}/{row}" for row in rows if row not in measured]
        result.left += [key for key in keys if key not in failed]
        for key, problem in failed.items():
            told(f"{key}: not recorded: {problem}")
        result.failed |= failed
    return result


def _chosen(bench: str, only: Sequence[str], path: Path) -> Iterator[tuple[PlannedBench, list[str]]]:
    """Yield what is to be measured, by bench."""
    names = {one.name: [figure.name for figure in one.figures()] for one in planned(bench)}
    if not names:
        known = ", ".join(dict.fromkeys(one.bench for one in PLAN))
        raise UsageError(f"no benchmark named {bench!r}; recorded are {known}")
    keys = {f"{name}/{row}": row for name, rows in names.items() for row in rows}
    for pattern in only:
        if not any(_matches(key, row, pattern, bench) for key, row in keys.items()):
            form = "'utilisation/gemm_*'" if bench == "all" else ", ".join(keys.values())
            raise UsageError(f"no figure of {bench} matches {pattern!r}; patterns are such as {form}")
    if bench == "all":
        stale = {row.key for row in stale_rows(names, path=path)}
        keys = {key: row for key, row in keys.items() if key in stale}
    wanted = [key for key, row in keys.items() if not only or any(_matches(key, row, one, bench) for one in only)]
    for entry in planned(bench):
        rows = [row for row in names[entry.name] if f"{entry.name}/{row}" in wanted]
        if rows:
            yield entry, rows


def _remove_what_is_gone(only: Sequence[str], told: Callable[[str], None], path: Path) -> None:
    """Take rows that benches no longer have out of the ledger."""
    gone = [row.key for row in stale_rows(path=path) if row.why == GONE]
    gone = [key for key in gone if not only or any(_matches(key, "", one, "all") for one in only)]
    if gone:
        with updated(path) as ledger:
            for key in gone:
                del ledger.rows[key]
                told(f"{key}: no longer exists, and was taken out")


def _matches(key: str, row: str, pattern: str, bench: str) -> bool:
    return fnmatch.fnmatchcase(key, pattern) or (bench != "all" and fnmatch.fnmatchcase(row, pattern))


def _measured(
    entry: PlannedBench, rows: Sequence[str], deadline: float, failed: dict[str, str]
) -> Iterator[tuple[str, RecordedFigure]]:
    """Yield the figures as a process of their own measures them. A row that has none is noted in ``failed``."""
    commit, project = git("rev-parse", "HEAD")[:_COMMIT_DIGITS], project_files()
    before, changed = content_digests(project), changed_files()
    models = models_folder()
    roots = [str(ROOT), *([str(models)] if models else [])]
    waiting, files, unseen = list(rows), set[str](), list[str]()
    with tempfile.NamedTemporaryFile(prefix="caesura-files-") as log:
        variables = {
            **os.environ, LOG: log.name, ROOTS: os.pathsep.join(roots),
            "PYTHONPATH": os.pathsep.join([str(_STARTUP), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]),
        }  # fmt: skip
        command = [sys.executable, "-m", "benchmarks.ledger.measure", entry.name, str(deadline), *rows]
        with subprocess.Popen(command, cwd=ROOT, env=variables, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                for line in process.stdout:
                    told = json.loads(line)
                    waiting.remove(told["name"])
                    lines = told.pop("files")
                    unseen += [line.removeprefix(UNSEEN) for line in lines if line.startswith(UNSEEN)]
                    found = {named(Path(line)) for line in lines if not line.startswith(UNSEEN)}
                    files |= {one for one in found if one is not None and _counts(one, project)}
                    key = f"{entry.name}/{told['name']}"
                    now = content_digests(files & project)
                    moved = sorted(one for one in now.keys() | files & project if now.get(one) != before.get(one))
                    if "error" in told:
                        failed[key] = told["error"]
                    elif unseen:
                        failed[key] = f"what it started was not watched: {', '.join(unseen)}"
                    elif moved:
                        failed[key] = f"{', '.join(moved)} changed while it was measured"
                    else:
                        yield key, _figure(entry, told, commit, files, changed)
            except BaseException:
                process.kill()
                raise
        if process.returncode:
            key = f"{entry.name}/{waiting[0]}" if waiting else entry.name
            failed[key] = f"the process that measured it ended with status {process.returncode}"


def _counts(path: str, project: set[str]) -> bool:
    """Return whether a figure depends on a file that was seen: caches and what runs leave behind are no part of it."""
    return path.startswith(MODELS) or (path in project and not path.startswith(_OWN))


def _figure(
    entry: PlannedBench, told: dict[str, Any], commit: str, files: set[str], changed: set[str]
) -> RecordedFigure:
    place = [figure.name for figure in entry.figures()].index(told["name"])
    stubs = {file for file in files if file.endswith(".pyi")}
    names = [one for stub in stubs for one in front_digests(stub, files)]
    return RecordedFigure(
        bench=entry.bench, preset=entry.preset, backend=entry.backend, commit=commit, dirty=bool(files & changed),
        machine=this_machine() if entry.is_timed(told["name"]) else None, place=place,
        files=tuple(sorted([*names, *map(file_digest, files - stubs)])), **told,
    )  # fmt: skip


def this_machine() -> dict[str, Any]:
    """Return what a time depends on: how many processors a process may use, and what they are called."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        cpu = next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        cpu = platform.processor() or platform.machine()
    return {"cores": cores, "cpu": cpu}


def _line(key: str, figure: RecordedFigure) -> str:
    value = "no value" if figure.value is None else f"{figure.value:,g} {figure.unit}"
    mark = "skipped" if figure.skipped else "ok" if figure.ok else "NOT OK"
    return f"{key}: {value}, {mark}, {figure.seconds:,g} s"
