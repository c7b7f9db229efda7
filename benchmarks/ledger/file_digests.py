"""Digests of the files that a figure depends on: a figure holds while they stay the same."""

import ast
import functools
import hashlib
import os
import subprocess
from collections.abc import Collection, Iterable
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from caesura import UsageError

ROOT = Path(__file__).resolve().parents[2]
#: How a path below the folder ``CAESURA_MODELS``, which is not part of the project, begins.
MODELS = "$CAESURA_MODELS/"
_DIGITS = 16
#: What says how text looks on a terminal. Every bench loads it to tell its progress, and no figure depends on it.
_SHOWN = frozenset({"caesura/views/terminal.py", "caesura/views/tables.py"})
_OFFERED = ".pyi:"  #: between the stub of a front and a name that it offers
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


class FileDigest(NamedTuple):
    """A file by its path from the root of the project. ``content`` is a digest of its bytes; ``code``, for Python, one
    of what it says without comments, docstrings and layout, else empty.

    Of the stub of a front each name is a file of its own, called ``STUB:NAME``, whose ``content`` is the module to
    which the name leads: a front that offers more names changes nothing for those who use the others."""

    path: str
    content: str
    code: str

    @property
    def holds(self) -> bool:
        """Return whether the file still says the same. A model that is not there now is taken to be what it was, and so
        is a name that a front does not offer any more: who used it uses another now, and has changed. So does what only
        says how text looks."""
        if self.path in _SHOWN:
            return True
        front, offered, name = self.path.partition(_OFFERED)
        if offered:
            return front_names(f"{front}.pyi").get(name, self.content) == self.content
        found = _read(located(self.path))
        if found is None:
            return self.path.startswith(MODELS)
        return _digest(found) == self.content or (self.code != "" and code_digest(found) == self.code)


def file_digest(path: str) -> FileDigest:
    """Return the digest of a file that is there; raises ``OSError``."""
    content = located(path).read_bytes()
    return FileDigest(path, _digest(content), code_digest(content) if path.endswith(".py") else "")


def front_digests(stub: str, files: Collection[str]) -> list[FileDigest]:
    """Return the digests of the names that a front's ``stub`` offers of the modules among ``files``."""
    front = stub.removesuffix(".pyi")
    names = front_names(stub).items()
    return [FileDigest(f"{front}{_OFFERED}{name}", module, "") for name, module in names if module in files]


def front_names(stub: str) -> dict[str, str]:
    """Return the modules, as paths, to which the names of a front's stub lead; there are none without the stub."""
    source, folder = _read(located(stub)), PurePosixPath(stub).parent
    lines = ast.parse(source or b"").body
    offers = [(line, alias.name) for line in lines if isinstance(line, ast.ImportFrom) for alias in line.names]
    return {name: _module(folder.joinpath(*(line.module or name).split("."))) for line, name in offers}


def _module(path: PurePosixPath) -> str:
    """Return the file of a module, which is a package's where ``path`` is a folder."""
    return str(path / "__init__.py" if located(str(path)).is_dir() else path.with_suffix(".py"))


def content_digests(paths: Iterable[str]) -> dict[str, str]:
    """Return the digests of bytes by path; files that are not there are left out."""
    found = {path: _read(located(path)) for path in paths}
    return {path: _digest(content) for path, content in found.items() if content is not None}


@functools.cache
def code_digest(source: bytes) -> str:
    """Return a digest of Python code that comments, docstrings and layout leave as it is; empty if it is no Python.
    Other versions of Python may give other digests."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return ""
    for node in ast.walk(tree):
        if isinstance(node, _DOCUMENTED):
            first = node.body[0] if node.body else None
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                first.value.value = ""
    return _digest(ast.dump(tree, annotate_fields=False).encode())


def models_folder() -> Path | None:
    """Return the folder ``CAESURA_MODELS``; None if it is not told, or not there."""
    told = os.environ.get("CAESURA_MODELS")
    return Path(told).resolve() if told and Path(told).is_dir() else None


def located(path: str) -> Path:
    """Return where the file of a digest lies."""
    if path.startswith(MODELS):
        return (models_folder() or Path(os.devnull)) / path.removeprefix(MODELS)
    return ROOT / path


def named(path: Path) -> str | None:
    """Return the inverse of :func:`located`; None for a file of neither the project nor its models."""
    models = models_folder()
    if path.is_relative_to(ROOT):
        return path.relative_to(ROOT).as_posix()
    if models is not None and path.is_relative_to(models):
        return MODELS + path.relative_to(models).as_posix()
    return None


def project_files() -> set[str]:
    """Return the paths of all files that git knows or would take up. Raises :class:`UsageError` outside a checkout."""
    return set(git("ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")) - {""}


def changed_files() -> set[str]:
    """Return the paths of files that differ from the last commit."""
    entries = git("status", "--porcelain", "-z", "--no-renames", "--untracked-files=all").split("\0")
    return {entry[3:] for entry in entries if entry}


def git(*arguments: str) -> str:
    """Return what git says in the project's checkout. Raises :class:`UsageError`."""
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError as error:
        raise UsageError(f"figures are recorded in a checkout, and git does not run: {error}") from None
    if done.returncode:
        raise UsageError(f"figures are recorded in a checkout: git {arguments[0]} in {ROOT} says {done.stderr.strip()}")
    return done.stdout


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:_DIGITS]
