"""The folder where everything that can be made again is kept."""

import contextlib
import functools
import hashlib
import os
import platform
from collections.abc import Iterator
from pathlib import Path

import numpy as np

_ROOT = Path(__file__).parents[1]


def cache_dir() -> Path:
    """``$XDG_CACHE_HOME/caesura``, by default ``~/.cache/caesura``."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "caesura"


@functools.cache
def sources_digest(*folders: str) -> str:
    """Digest of the Python files in ``folders`` of this project, and of the versions they run on: what they made is as
    good as new while it stays the same."""
    digest = hashlib.sha256(f"{platform.python_version()} {np.__version__}".encode())
    for folder in folders:
        for path in sorted((_ROOT / folder).rglob("*.py")):
            digest.update(f"\0{path.relative_to(_ROOT)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


class BoundedFolder:
    """Files in the folder ``path``, of ``most`` bytes together: those not used for longest go first. A file is written
    at once or not at all. A folder that cannot be written to is no error: what is kept there is made again."""

    def __init__(self, path: Path, most: int) -> None:
        self.path, self._most = path, most

    def used(self, name: str) -> None:
        """A file was of use just now."""
        with contextlib.suppress(OSError):
            os.utime(self.path / name)

    def write(self, name: str, raw: bytes) -> bool:
        """Keep ``raw`` as a file; False if that cannot be."""
        target = self.path / name
        draft = target.with_suffix(f".{os.getpid()}.tmp")
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            draft.write_bytes(raw)
            draft.replace(target)
        except OSError:
            return False
        return True

    def remove(self, name: str) -> None:
        """A file is of no use."""
        with contextlib.suppress(OSError):
            (self.path / name).unlink()

    def prune(self) -> None:
        """Remove what is too much."""
        total = 0
        for _, size, name in sorted(self._files(), reverse=True):
            total += size
            if total > self._most:
                self.remove(name)

    def _files(self) -> Iterator[tuple[float, int, str]]:
        """When each file was used, its size and its name; drafts of processes that died too."""
        with contextlib.suppress(OSError):
            for entry in os.scandir(self.path):
                with contextlib.suppress(OSError):  # another process may have removed it
                    about = entry.stat()
                    yield about.st_mtime, about.st_size, entry.name
