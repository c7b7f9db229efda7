"""Objects of layers on disk, so that a model that was compiled before, or differs in few layers, compiles soon.

The name of a file is the digest of all that its object depends on: the question about a step, and the compiler's
source. Files carry a digest of what they hold, and are read only if it is right. They are pickles that may name nothing
but values of the compiler (frozen data classes, named tuples and enumerations), so that to read one runs no code.
"""

import dataclasses
import enum
import hashlib
import io
import pickle
import zlib
from pathlib import Path
from typing import Any

from compiler.emission.objects.step_object import RefusedRegion, StepObject
from sim import BoundedFolder, cache_dir, sources_digest

#: All code that an object comes from.
_SOURCES = ("compiler", "hw/contract", "hw/image", "sim/cost", "sim/functional")
_MOST_BYTES = 256 << 20
_MOST_UNPACKED = 1 << 30  #: bytes of an object
_DIGEST = hashlib.sha256().digest_size
_MODULES = ("compiler.emission.", "compiler.plan.", "hw.contract.")  #: where the classes of values are


class ObjectStore:
    """Objects in ``folder`` (default: in the cache folder), of ``most`` bytes together. A folder that cannot be written
    to costs the next compilation its time."""

    def __init__(self, folder: Path | None = None, most: int = _MOST_BYTES) -> None:
        self._files = BoundedFolder(folder or cache_dir() / "objects", most)
        self._written = False

    def find(self, key: str) -> StepObject | RefusedRegion | None:
        """Return the answer to the question with this key; None if there is none, or only a damaged one."""
        found = self._read(key)
        found = self._read(found) if isinstance(found, str) else found
        return found if isinstance(found, StepObject | RefusedRegion) else None

    def used(self, key: str) -> None:
        """Note that what is kept under this key is of use, so that other files are removed first."""
        self._files.used(_name(key))

    def _read(self, key: str) -> Any:
        """Return what the file of a key holds, an answer or the key of its question; None if nothing does."""
        name = _name(key)
        try:
            raw = self._files.read(name)
        except OSError:
            return None
        if hashlib.sha256(raw[_DIGEST:]).digest() != raw[:_DIGEST]:
            return None
        try:
            found = _Values(io.BytesIO(_unpacked(raw[_DIGEST:]))).load()
        except Exception:  # a pickle that is none can raise anything
            return None
        self._files.used(name)
        return found

    def keep(self, key: str, made: StepObject | RefusedRegion, answer: str | None = None) -> None:
        """Keep the answer to the question with this key; under the key ``answer`` it is found as well."""
        self._write(key, made)
        if answer is not None:
            self._write(answer, key)

    def _write(self, key: str, value: StepObject | RefusedRegion | str) -> None:
        packed = zlib.compress(pickle.dumps(value, pickle.HIGHEST_PROTOCOL), 1)
        self._written |= self._files.write(_name(key), hashlib.sha256(packed).digest() + packed)

    def prune(self) -> None:
        """Remove the files that have not been used for longest if there is too much, once something was written."""
        if self._written:
            self._files.prune()
            self._written = False


class _Values(pickle.Unpickler):
    """Reads pickles of values alone."""

    def find_class(self, module: str, name: str) -> Any:
        """Return the class of a value; refuses all else, functions above all."""
        if not f"{module}.".startswith(_MODULES) or "." in name:
            raise pickle.UnpicklingError(f"{module}.{name} is no value of the compiler")
        found = super().find_class(module, name)
        frozen = dataclasses.is_dataclass(found) and getattr(found, "__dataclass_params__").frozen  # noqa: B009
        if not isinstance(found, type) or found.__module__ != module:
            raise pickle.UnpicklingError(f"{module}.{name} is no class")
        named = issubclass(found, tuple) and hasattr(found, "_fields")
        if not frozen and not named and not issubclass(found, enum.Enum):
            raise pickle.UnpicklingError(f"{module}.{name} is no value")
        return found


def _unpacked(raw: bytes) -> bytes:
    """Return what was compressed. Raises ValueError if that is more than an object can be."""
    data = zlib.decompressobj().decompress(raw, _MOST_UNPACKED + 1)
    if len(data) > _MOST_UNPACKED:
        raise ValueError(f"more than {_MOST_UNPACKED:,} bytes")
    return data


def _name(key: str) -> str:
    whole = hashlib.sha256(f"{compiler_digest()} {key}".encode()).hexdigest()
    return f"{whole[:32]}.layer"


def compiler_digest() -> str:
    """Return the digest of the compiler's source, and the versions of what it runs on."""
    return sources_digest(*_SOURCES)
