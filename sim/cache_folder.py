"""Keeps everything that can be made again in one folder.

What lies there is loaded, and libraries are run, so the folder is trusted: it belongs to this user, nobody else may
write there, and anything else is refused. What is no plain file, such as a pipe, is as if it were not there.
"""

import contextlib
import functools
import hashlib
import os
import platform
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

_ROOT = Path(__file__).parents[1]
_COMPILED = "__pycache__"  #: made by Python from what is hashed

BLOCK = 4096  #: bytes that a file takes at least

_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH


class ForeignCacheError(RuntimeError):
    """Says that the cache folder is another user's, or that others may write there, and names the way out."""


def cache_dir() -> Path:
    """Return ``$XDG_CACHE_HOME/caesura``, by default ``~/.cache/caesura``, made for this user alone if it is missing
    and can be made. A relative ``$XDG_CACHE_HOME`` is ignored, as the XDG specification asks. Raises
    :class:`ForeignCacheError`."""
    configured = Path(os.environ.get("XDG_CACHE_HOME", ""))
    folder = (configured if configured.is_absolute() else Path.home() / ".cache") / "caesura"
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _refuse_foreign(folder)
    return folder


def _refuse_foreign(folder: Path) -> None:
    if not hasattr(os, "geteuid"):
        return
    try:
        about = folder.stat()
    except OSError:  # it is not there, and so holds nothing
        return
    way_out = "what is in it is run, so set XDG_CACHE_HOME to a folder of your own"
    if about.st_uid not in (0, os.geteuid()):  # the administrator can do all that this process can
        raise ForeignCacheError(f"the cache folder {folder} belongs to user {about.st_uid}: {way_out}")
    if about.st_mode & _OTHERS_MAY_WRITE:
        raise ForeignCacheError(
            f"others may write to the cache folder {folder}: {way_out}, or remove it, and it is made again"
        )


def read_kept(path: Path) -> bytes:
    """Return what a file in the cache holds. Raises OSError, also for what is no plain file, without waiting for it."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    with open(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(f"{path} is no plain file")
        return file.read()


def write_kept(path: Path, raw: bytes) -> None:
    """Keep ``raw`` as a file, in place of what was there, at once or not at all. Raises OSError."""
    handle, draft = tempfile.mkstemp(suffix=".tmp", prefix=f"{path.name}.", dir=path.parent)
    try:
        with open(handle, "wb") as file:
            file.write(raw)
        os.replace(draft, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(draft)
        raise


@functools.cache
def sources_digest(*folders: str, root: Path = _ROOT) -> str:
    """Return a digest of all files in ``folders`` of this project (at ``root``), in whatever language, and of the
    versions they run on: what they made is as good as new while the digest stays the same."""
    digest = hashlib.sha256(f"{platform.python_version()} {np.__version__}".encode())
    for folder in folders:
        for path in sorted((root / folder).rglob("*")):
            if _COMPILED not in path.parts and path.is_file():
                digest.update(f"\0{path.relative_to(root)}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


class BoundedFolder:
    """Keeps files in the folder ``path``, of ``most`` bytes together, where each takes a :data:`BLOCK` at least: those
    not used for longest go first. A file is written at once or not at all. A folder that cannot be written to is no
    error: what is kept there is made again."""

    def __init__(self, path: Path, most: int) -> None:
        self.path, self._most = path, most

    def used(self, name: str) -> None:
        """Note that a file was of use just now."""
        with contextlib.suppress(OSError):
            os.utime(self.path / name)

    def write(self, name: str, raw: bytes) -> bool:
        """Keep ``raw`` as a file; return False if that is impossible."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            write_kept(self.path / name, raw)
        except OSError:
            return False
        return True

    def read(self, name: str) -> bytes:
        """Return what a file holds. Raises OSError."""
        return read_kept(self.path / name)

    def remove(self, name: str) -> None:
        """Remove a file that is of no use."""
        with contextlib.suppress(OSError):
            (self.path / name).unlink()

    def prune(self) -> None:
        """Remove the oldest files until the rest fits."""
        total = 0
        for _, size, name in sorted(self._files(), reverse=True):
            total += max(size, BLOCK)
            if total > self._most:
                self.remove(name)

    def _files(self) -> Iterator[tuple[float, int, str]]:
        """Yield of each file when it was used, its size and its name; drafts of processes that died are among them."""
        with contextlib.suppress(OSError):
            for entry in os.scandir(self.path):
                with contextlib.suppress(OSError):  # another process may have removed it
                    about = entry.stat()
                    yield about.st_mtime, about.st_size, entry.name
