"""Runs a model twice, before and after a change of the machine or of the sources, each in a process of its own."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from caesura import api
from caesura.result_diff import ResultDiff, is_run, result_diff
from sim import DEFAULT_BACKEND

_HERE = Path(__file__).parents[1]
_MOST_TOLD = 6  #: lines of what a run that failed has said


def by_parameters(model: Path, options: Sequence[str], changes: Sequence[str]) -> ResultDiff:
    """Return what ``changes`` of parameters make of a run of ``model``; ``options``: of ``caesura run``, which runs on
    the RTL unless they name another backend. Both run at the same time. Raises :class:`caesura.api.UsageError` with
    what a run has told that failed."""
    before, after = _both(
        Side(_HERE, _arguments(model, options), "the run before the change"),
        Side(_HERE, _arguments(model, options, changes), "the run after the change"),
    )
    return result_diff(before, after)


def by_sources(model: Path, options: Sequence[str], changes: Sequence[str], commit: str) -> ResultDiff:
    """Return what the sources of this checkout make of a run of ``model`` against those of ``commit``; ``changes``: of
    parameters, in both. Raises :class:`caesura.api.UsageError` likewise, and where this is no checkout."""
    arguments = _arguments(model, options, changes)
    with _checked_out(commit) as (folder, name):
        before, after = _both(
            Side(folder, arguments, f"the run of {name}"), Side(_HERE, arguments, "the run of this tree")
        )
    found = result_diff(before, after)
    first, second = found.titles
    return replace(found, titles=(f"{first} of {name}", f"{second} of this tree"))


def _arguments(model: Path, options: Sequence[str], changes: Sequence[str] = ()) -> list[str]:
    """Return arguments of a run. A backend is always named: a run that may choose takes the fast model for RTL that
    is not built yet, and the fast model knows nothing of a change of the RTL."""
    named = any(one.partition("=")[0] == "--backend" for one in options)
    backend = [] if named else ["--backend", DEFAULT_BACKEND]
    return [str(model), *options, *backend, *(argument for one in changes for argument in ("--set", one))]


@contextmanager
def _checked_out(commit: str) -> Iterator[tuple[Path, str]]:
    """Yield a folder with the sources of ``commit``, and its short name."""
    if not _HERE.joinpath("pyproject.toml").is_file() or not _HERE.joinpath(".git").exists():
        raise api.UsageError("caesura whatif compares sources in a checkout of Caesura only: say --set elsewhere")
    if commit.startswith("-"):
        raise api.UsageError(f"--against must be a commit, not {commit!r}")
    name = _git("rev-parse", "--short", "--verify", f"{commit}^{{commit}}").strip()
    with tempfile.TemporaryDirectory(prefix="caesura-whatif-") as kept:
        folder = Path(kept) / "before"
        _git("worktree", "add", "--detach", "--quiet", str(folder), name)
        try:
            yield folder, f"commit {name}"
        finally:
            _git("worktree", "remove", "--force", str(folder))


def _git(*arguments: str) -> str:
    found = subprocess.run(["git", "-C", str(_HERE), *arguments], capture_output=True, text=True, check=False)
    if found.returncode:
        raise api.UsageError(f"git {arguments[0]}: {found.stderr.strip()}")
    return found.stdout


class Side(NamedTuple):
    """Describes one of two runs: a folder with sources, arguments of ``caesura run``, and what errors call it."""

    folder: Path
    arguments: Sequence[str]
    name: str


def _both(before: Side, after: Side) -> tuple[dict[str, Any], dict[str, Any]]:
    first, second = _started(before), _started(after)
    try:
        return _result(first, before.name), _result(second, after.name)
    finally:
        for one in (first, second):
            one.kill()


def _started(side: Side) -> "subprocess.Popen[str]":
    path = os.pathsep.join([str(side.folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "caesura", "run", *side.arguments, "--json"], stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip


def _result(process: "subprocess.Popen[str]", name: str) -> dict[str, Any]:
    out, error = process.communicate()
    if process.returncode:
        told = "\n".join(error.strip().splitlines()[-_MOST_TOLD:])
        raise api.UsageError(f"{name}: {told.removeprefix('error: ') or f'it ended with code {process.returncode}'}")
    try:
        found = json.loads(out)
    except ValueError:
        found = None
    if not is_run(found):
        raise api.UsageError(f"{name} tells nothing that can be compared; say --against a later commit")
    run: dict[str, Any] = found
    return run
