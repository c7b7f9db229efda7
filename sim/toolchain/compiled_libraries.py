"""Keeps one compiled simulator per design in the cache folder, built once, checked before each use.

``<key>.so`` is a library and ``<key>.sum`` its size and digest; ``<key>.ref`` names the library of a design that need
not even be elaborated again; ``<key>.lock`` holds the number of the process that builds; ``<key>/`` is where it builds.
"""

import fcntl
import functools
import hashlib
import os
import platform
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from sim.cache_folder import cache_dir, read_kept, write_kept
from sim.toolchain.compilers import BuildError
from sim.toolchain.stages import Stages
from sim.visible_text import visible

Files = Mapping[str, str]  #: file name -> text


@dataclass(frozen=True)
class Recipe:
    """Says how a library is made. Recipes that differ in anything that shows in the result have different ``tools``."""

    name: str
    tools: tuple[str, ...]  #: versions, flags and sources that the library depends on besides the design
    prepare: Callable[[Stages], Files]  #: writes the design down
    build: Callable[[Files, Path, Path, Stages], Path]  #: makes a library of it in a folder, with a log


def library(recipe: Recipe, *, source: str | None = None, stages: Stages | None = None) -> Path:
    """Return the library of ``recipe``, built unless it is in the cache.

    ``source`` identifies what the design is made from: where it is known, the design is not even prepared. Safe to
    call from several processes at once: one builds, the others wait. A library that was damaged is built again. Raises
    :class:`sim.toolchain.compilers.BuildError`.
    """
    root = cache_dir()
    try:
        root.mkdir(parents=True, exist_ok=True)
        return _library(recipe, root, source, stages or Stages())
    except OSError as error:
        raise BuildError(
            f"the simulator cannot be kept in the cache folder {root}: {error.strerror or error}; "
            "set XDG_CACHE_HOME to a folder that can be written to and has room, or use --backend model"
        ) from error


def _library(recipe: Recipe, root: Path, source: str | None, stages: Stages) -> Path:
    if source is None:
        return _built(recipe, root, stages)
    reference = _reference(recipe, root, source)
    known = _known(reference)
    if known is None:
        with _locked(reference.with_suffix(".lock"), recipe.name, stages):
            known = _known(reference)
            if known is None:
                known = _built(recipe, root, stages)
                write_kept(reference, known.name.encode())
    return known


def is_built(recipe: Recipe, source: str) -> bool:
    """Return whether :func:`library` would find the library of ``recipe``, made from ``source``, in the cache."""
    return _known(_reference(recipe, cache_dir(), source)) is not None


def _reference(recipe: Recipe, root: Path, source: str) -> Path:
    return root / f"{_key(recipe, {'': source})}.ref"


def _built(recipe: Recipe, root: Path, stages: Stages) -> Path:
    files = recipe.prepare(stages)
    key = _key(recipe, files)
    target = root / f"{key}.so"
    if not intact(target):
        with _locked(root / f"{key}.lock", recipe.name, stages):
            if not intact(target):
                work = root / key
                shutil.rmtree(work, ignore_errors=True)
                work.mkdir()
                log = work / "build.log"
                log.write_text("")
                _publish(recipe.build(files, work, log, stages), target)
                shutil.rmtree(work)
    return target


def _known(reference: Path) -> Path | None:
    """Return the library that ``reference`` names, if it is there and intact."""
    try:
        target = reference.with_name(read_kept(reference).decode())
    except (OSError, ValueError):
        return None
    return target if intact(target) else None


def _publish(built: Path, target: Path) -> None:
    """Put a library in place before its sum: a library without its sum is not used."""
    sum_ = _sum(built)
    os.replace(built, target)
    write_kept(target.with_suffix(".sum"), sum_.encode())


def intact(target: Path) -> bool:
    """Return whether the library ``target`` is as it was published. To load a damaged one may end the process."""
    try:
        return read_kept(target.with_suffix(".sum")).decode() == _sum(target)
    except (OSError, ValueError):
        return False


def _sum(path: Path) -> str:
    raw = read_kept(path)
    return f"{len(raw)} {hashlib.sha256(raw).hexdigest()}"


def _key(recipe: Recipe, files: Files) -> str:
    digest = hashlib.sha256("\0".join((recipe.name, *recipe.tools, *_target_cpu())).encode())
    for name, text in sorted(files.items()):
        digest.update(f"\0{name}\0{len(text)}\0{text}".encode())
    return digest.hexdigest()[:32]


@functools.cache
def _target_cpu() -> tuple[str, ...]:
    """Return operating system and instruction set: code is compiled for this very processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    features = next((line for line in lines if line.startswith(("flags", "Features"))), platform.processor())
    return platform.system(), platform.machine(), features


def _opened(path: Path) -> IO[str]:
    """Return a lock to read and to write, made if it is missing. Raises OSError for what is no plain file, without
    waiting."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(f"{path} is no plain file: remove it")
    return open(handle, "a+")


@contextmanager
def _locked(path: Path, name: str, stages: Stages) -> Iterator[None]:
    with _opened(path) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            owner = visible(lock.read().strip()[:20]) or "unknown"
            with stages.waiting(f"process {owner}, which builds the same simulator ({name})"):
                fcntl.flock(lock, fcntl.LOCK_EX)
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield
