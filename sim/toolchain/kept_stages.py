"""Keeps what each stage made, named by a digest of all that it depends on: a run that was stopped goes on where it
was."""

import gzip
import hashlib
import os
import shutil
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from sim.cache_folder import BoundedFolder, cache_dir

_Made = TypeVar("_Made")

MOST = 4 << 30  #: bytes of all that is kept in one folder


class KeptStages:
    """Makes what a stage makes, once: it is kept in ``folder`` of the cache, whose files stay below ``MOST`` bytes."""

    def __init__(self, folder: str) -> None:
        self._root = cache_dir() / folder
        self._files = BoundedFolder(self._root, MOST)

    def find(self, key: str) -> bytes | None:
        """Return what was kept as ``key``, or None; what is damaged was not kept."""
        try:
            raw = gzip.decompress(self._files.read(key))
        except (OSError, EOFError, ValueError, zlib.error):
            return None
        self._files.used(key)
        return raw

    def keep(self, key: str, raw: bytes) -> None:
        """Keep ``raw`` as ``key``."""
        self._files.write(key, gzip.compress(raw, 1, mtime=0))
        self._files.prune()

    def worked(self, key: str, make: Callable[[Path], _Made]) -> _Made:
        """Return what ``make`` makes in a folder of its own, which stays only where it fails: the logs are there.
        Another process may make the same at the same time; what one has left that is gone is removed."""
        for left in self._root.glob(f"work-{key}-*"):
            if not _runs(left.name.rpartition("-")[2]):
                shutil.rmtree(left, ignore_errors=True)
        folder = self._root / f"work-{key}-{os.getpid()}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        made = make(folder)
        with suppress(OSError):
            shutil.rmtree(folder)
        return made


def _runs(process: str) -> bool:
    """Return whether a process of that number is there."""
    try:
        os.kill(int(process), 0)
    except (ValueError, ProcessLookupError):
        return False
    except PermissionError:
        pass
    return True


def key_of(stage: str, *parts: object) -> str:
    """Return the name under which a stage keeps what it makes of ``parts``."""
    text = "\0".join(map(str, parts))
    return f"{stage}-{hashlib.sha256(text.encode()).hexdigest()[:32]}"
