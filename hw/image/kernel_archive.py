"""Defines the container of a kernel library (``.ckl``): kernels of one model, images and range kernels, in one file.

Layout: a 64-byte header (magic, version, parts, bytes behind it, SHA-256 over these), then for each part an entry
(kind, a number, bytes in the file, bytes unpacked) and all parts, in order. A part is an array of weights,
compressed, that images share, the file of an image without its weights and the number of the array that they are, or
a range kernel.
"""

import hashlib
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hw.image.image import Image, ImageError
from hw.image.kernel_attributes import AttributeProblem, KernelAttributes
from hw.image.range_image import RangeImage

MAGIC = b"CKLB"
VERSION = 1
_HEADER = struct.Struct("<4sHHQ32s16x")  # magic, version, parts, bytes behind the header, digest
_ENTRY = struct.Struct("<IIQQ")  # kind, number of the weights of an image, bytes in the file, bytes unpacked
assert _HEADER.size == 64
_WEIGHTS, _IMAGE, _RANGE = range(3)
_MOST_BYTES = 1 << 31  #: of all weights unpacked, more than any device could hold

Kernel = Image | RangeImage


@dataclass(frozen=True)
class KernelArchive:
    """Holds kernels, each with attributes, which differ."""

    kernels: tuple[Kernel, ...]

    def to_bytes(self) -> bytes:
        """Return the content of the file."""
        entries, parts, known = list[tuple[int, int, int, int]](), list[bytes](), dict[bytes, int]()
        for kernel in self.kernels:
            if isinstance(kernel, RangeImage):
                raw, entry = kernel.to_bytes(), (_RANGE, 0)
            else:
                if kernel.weights not in known:
                    known[kernel.weights] = len(parts)
                    parts.append(zlib.compress(kernel.weights, 6))
                    entries.append((_WEIGHTS, 0, len(parts[-1]), len(kernel.weights)))
                whole = kernel.to_bytes()
                at, size = Image.weights_in(whole)
                raw, entry = whole[:at] + whole[at + size :], (_IMAGE, known[kernel.weights])
            parts.append(raw)
            entries.append((*entry, len(raw), len(raw)))
        body = b"".join([_ENTRY.pack(*entry) for entry in entries] + parts)
        return _HEADER.pack(MAGIC, VERSION, len(parts), len(body), hashlib.sha256(body).digest()) + body

    @classmethod
    def from_bytes(cls, raw: bytes, where: str = "kernel library") -> "KernelArchive":
        """Read and validate the content of a file; raises :class:`ImageError`."""
        if len(raw) < _HEADER.size or raw[:4] != MAGIC:
            raise ImageError(f"{where}: not a kernel library (no {MAGIC.decode()} header); build it again")
        _, version, count, size, digest = _HEADER.unpack_from(raw)
        if version != VERSION:
            raise ImageError(f"{where}: format version {version} cannot be read here ({VERSION} can); build it again")
        body = raw[_HEADER.size :]
        if len(body) != size or hashlib.sha256(body).digest() != digest:
            raise ImageError(f"{where}: checksum mismatch: the file is damaged; build the kernel library again")
        try:
            kernels = tuple(_kernels(body, count, where))
            keys = [(attributes.key, attributes.covered) for attributes in map(attributes_of, kernels)]
        except (AttributeProblem, struct.error, ValueError, zlib.error) as error:
            if isinstance(error, ImageError):
                raise
            raise ImageError(f"{where}: {error}") from error
        if len(set(keys)) < len(keys):
            raise ImageError(f"{where}: two kernels have the same attributes; build the kernel library again")
        return cls(kernels)

    @classmethod
    def load(cls, path: str | Path) -> "KernelArchive":
        """Read a file; raises :class:`ImageError`, also if it cannot be read."""
        try:
            raw = Path(path).read_bytes()
        except OSError as error:
            raise ImageError(f"{path}: cannot be read: {error.strerror}") from None
        return cls.from_bytes(raw, str(path))


def attributes_of(kernel: Kernel) -> KernelAttributes:
    """Return the attributes of a kernel; raises :class:`ImageError` for an image that has none, ``AttributeProblem`` if
    they are damaged."""
    if isinstance(kernel, RangeImage):
        return kernel.attributes
    if not kernel.meta.kernel_attributes:
        raise ImageError(f"image {kernel.meta.model!r} is no kernel: it has no kernel_attributes")
    return KernelAttributes.parse(kernel.meta.kernel_attributes)


def _kernels(body: bytes, count: int, where: str) -> Iterator[Kernel]:
    entries = [_ENTRY.unpack_from(body, number * _ENTRY.size) for number in range(count)]
    if count * _ENTRY.size + sum(size for _, _, size, _ in entries) != len(body):
        raise ValueError("the parts do not fill the file")
    if sum(unpacked for kind, _, _, unpacked in entries if kind == _WEIGHTS) > _MOST_BYTES:
        raise ValueError(f"more than {_MOST_BYTES:,} bytes of weights")
    at, weights = count * _ENTRY.size, dict[int, bytes]()
    for number, (kind, shared, size, unpacked) in enumerate(entries):
        part, place = body[at : at + size], f"{where}, part {number}"
        at += size
        if kind == _WEIGHTS:
            weights[number] = zlib.decompressobj().decompress(part, unpacked + 1)
            if len(weights[number]) != unpacked:
                raise ValueError(f"part {number} is not of the size that it says")
        elif kind == _IMAGE:
            if shared not in weights:
                raise ValueError(f"part {number} names part {shared}, which holds no weights before it")
            at_weights = Image.weights_in(part)[0]
            image = Image.from_bytes(part[:at_weights] + weights[shared] + part[at_weights:], place)
            image.weights = weights[shared]  # held once
            yield image
        elif kind == _RANGE:
            yield RangeImage.from_bytes(part, place)
        else:
            raise ValueError(f"part {number} is of an unknown kind, {kind}")


def all_lengths(kernels: Sequence[Kernel]) -> list[int]:
    """Return the lengths for which there is a kernel, in rising order."""
    found = {length for kernel in kernels if isinstance(kernel, RangeImage) for length in kernel.lengths}
    covered = [attributes_of(kernel).covered for kernel in kernels if isinstance(kernel, Image)]
    return sorted(found.union(*(range(each.low, each.high + 1) for each in covered)))
