"""Generated files, kept outside the repository, in the cache folder."""

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from sim import cache_dir


def folder() -> Path:
    """Return where generated models are kept; it may not exist yet."""
    return cache_dir() / "workloads"


def cached(name: str, parameters: object, write: Callable[[Path], None]) -> Path:
    """Return the file ``name``.onnx generated from ``parameters``, which are told apart by their ``repr``.

    When it is missing, ``write`` is called with a path in the same folder, and what it wrote is renamed into place: a
    generator that fails or is interrupted leaves nothing behind that looks finished.
    """
    digest = hashlib.sha256(repr(parameters).encode()).hexdigest()[:16]
    path = folder() / f"{name}-{digest}.onnx"
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{name}-") as scratch:
            draft = Path(scratch) / path.name
            write(draft)
            os.replace(draft, path)
    return path
