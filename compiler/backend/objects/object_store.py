"""Objects of layers on disk, so that a model that was compiled before, or differs in few layers, compiles soon.

The name of a file is the digest of all that its object depends on: the layer's source, and the compiler's own. Files
carry a digest of what they hold, and are read only if it is right.
"""

import hashlib
import pickle
import zlib
from pathlib import Path

from compiler.backend.objects.layer_object import LayerObject
from sim.cache_folder import BoundedFolder, cache_dir, sources_digest

_SOURCES = ("compiler", "hw/contract", "sim/timing", "sim/functional")  #: all code that a layer's object comes from
_MOST_BYTES = 256 << 20
_DIGEST = hashlib.sha256().digest_size


class ObjectStore:
    """Objects in ``folder`` (default: in the cache folder), of ``most`` bytes together. A folder that cannot be written
    to costs the next compilation its time."""

    def __init__(self, folder: Path | None = None, most: int = _MOST_BYTES) -> None:
        self._files = BoundedFolder(folder or cache_dir() / "objects", most)
        self._written = False

    def find(self, key: str) -> LayerObject | None:
        """The object of the source with this key; None if there is none, or only a damaged one."""
        name = _name(key)
        try:
            raw = (self._files.path / name).read_bytes()
        except OSError:
            return None
        if hashlib.sha256(raw[_DIGEST:]).digest() != raw[:_DIGEST]:
            return None
        self._files.used(name)
        found = pickle.loads(zlib.decompress(raw[_DIGEST:]))
        return found if isinstance(found, LayerObject) else None

    def keep(self, key: str, made: LayerObject) -> None:
        """Keep the object of the source with this key."""
        packed = zlib.compress(pickle.dumps(made, pickle.HIGHEST_PROTOCOL), 1)
        self._written |= self._files.write(_name(key), hashlib.sha256(packed).digest() + packed)

    def prune(self) -> None:
        """Remove the files that have not been used for longest if there is too much, once something was written."""
        if self._written:
            self._files.prune()


def _name(key: str) -> str:
    whole = hashlib.sha256(f"{compiler_digest()} {key}".encode()).hexdigest()
    return f"{whole[:32]}.layer"


def compiler_digest() -> str:
    """Digest of the compiler's source, and the versions of what it runs on."""
    return sources_digest(*_SOURCES)
