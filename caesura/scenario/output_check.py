"""Compares outputs of requests with those of their models alone, bit for bit."""

import hashlib
from collections.abc import Callable

import numpy as np

from caesura.samples import Sample

Key = tuple[str, int]  #: a model, and the number of its sample


class OutputCheck:
    """Knows the outputs that requests shall have, and which had others. ``checked`` counts those that were compared."""

    def __init__(self) -> None:
        self._expected: dict[Key, str] = {}
        self._found: dict[Key, list[tuple[str, str]]] = {}

    def expect(self, key: Key, outputs: Sample) -> None:
        """Take ``outputs`` for those that every request for ``key`` shall have."""
        self._expected[key] = digest_of(outputs)

    def add(self, key: Key, request: str, outputs: Sample) -> None:
        """Take the outputs of a request, called ``request``, for ``key``."""
        self._found.setdefault(key, []).append((request, digest_of(outputs)))

    def complete(self, alone: Callable[[str, int], Sample]) -> None:
        """Have what no one has run alone so far run by ``alone``."""
        for name, sample in self._found.keys() - self._expected.keys():
            self.expect((name, sample), alone(name, sample))

    @property
    def checked(self) -> int:
        """Return how many requests were compared."""
        return sum(len(found) for key, found in self._found.items() if key in self._expected)

    @property
    def mismatches(self) -> list[str]:
        """Return a line for each request whose outputs are others than those of its model alone."""
        return [
            f"{request}: outputs of {key[0]} differ"
            for key, found in self._found.items()
            for request, digest in found
            if self._expected.get(key, digest) != digest
        ]


def digest_of(outputs: Sample) -> str:
    """Return a digest of arrays by name, with their types and shapes."""
    digest = hashlib.sha256()
    for name, value in sorted(outputs.items()):
        array = np.ascontiguousarray(value)
        digest.update(f"{name} {array.dtype.str} {value.shape} ".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
