"""Defines the container of a range kernel (``.crng``): the images of a model for all lengths of a range, written down
once.

Lengths come in *stretches*, whose images have the same structure. A stretch holds one image, and how each number in
its code, weights, host models and metadata follows from the length (:mod:`hw.image.length_family`). So the image for
a length is made, *relocated*, in milliseconds: it is an image as any other, and checked as any other.

Layout: a 64-byte header (magic, version, sizes, SHA-256 over all that follows), an index (JSON, compressed), and the
arrays that it names, each compressed. What a file says of itself is compared with limits before anything is unpacked
or built from it.
"""

import copy
import hashlib
import json
import math
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path as FilePath
from typing import Any

import numpy as np
import numpy.typing as npt

from hw.image.image import Image, ImageError, meta_from_dict, meta_to_dict
from hw.image.kernel_attributes import AttributeProblem, KernelAttributes
from hw.image.length_family import ValueFamily, WordFamily

MAGIC = b"CRNG"
VERSION = 1
_HEADER = struct.Struct("<4sHHQQQ32s")  # magic, version, flags, bytes of the index, compressed and not; of the arrays
assert _HEADER.size == 64
_MOST_INDEX = 1 << 28  #: bytes of the index
_MOST_VALUES = 1 << 24  #: in it, each of which takes many times its bytes in memory
_MOST_BYTES = 1 << 31  #: of all arrays together, more than any device could hold
_MOST_LENGTHS = 1 << 16


@dataclass(frozen=True)
class Stretch:
    """Holds images of one structure, for ``lengths``, which go up."""

    lengths: range
    meta: ValueFamily
    code: WordFamily
    weights: WordFamily
    host_models: tuple[WordFamily, ...]

    @classmethod
    def of(cls, images: Mapping[int, Image]) -> "Stretch":
        """Return the stretch of images given by length. Raises ``ValueError`` unless the lengths are evenly spaced and
        the images have equally many host models."""
        lengths = sorted(images)
        step = lengths[1] - lengths[0] if len(lengths) > 1 else 1
        covered, sorted_images = range(lengths[0], lengths[-1] + 1, step), [images[length] for length in lengths]
        if list(covered) != lengths:
            raise ValueError(f"lengths {lengths} are not evenly spaced")
        hosts = zip(*(image.host_models for image in sorted_images), strict=True)
        return cls(
            covered,
            ValueFamily.of([meta_to_dict(image.meta) for image in sorted_images]),
            WordFamily.of([image.code for image in sorted_images]),
            WordFamily.of([image.weights for image in sorted_images]),
            tuple(WordFamily.of(models) for models in hosts),
        )

    def image(self, length: int) -> Image:
        """Return the image for one of the lengths; it is not checked yet."""
        k = self.lengths.index(length)
        meta = meta_from_dict(self.meta.set_in(copy.deepcopy(self.meta.base), k))
        return Image(meta, self.code.at(k), self.weights.at(k), [model.at(k) for model in self.host_models])


@dataclass(frozen=True)
class RangeImage:
    """Holds images for all lengths of a range: ``stretches`` from short to long, and the ``attributes`` of all."""

    attributes: KernelAttributes
    stretches: tuple[Stretch, ...]

    @property
    def lengths(self) -> list[int]:
        """Return all lengths in rising order."""
        return [length for stretch in self.stretches for length in stretch.lengths]

    def __contains__(self, length: int) -> bool:
        return any(length in stretch.lengths for stretch in self.stretches)

    def image(self, length: int) -> Image:
        """Return the image for ``length``, relocated and checked. Raises ``KeyError`` if no image has that length, and
        :class:`ImageError` if what was made is no valid image."""
        for stretch in self.stretches:
            if length in stretch.lengths:
                where = f"range kernel, length {length}"
                try:
                    image = stretch.image(length)
                except (LookupError, TypeError, ValueError) as error:
                    raise ImageError(f"{where}: {error}") from error
                image.validate(where)
                return image
        raise KeyError(f"there is no image for length {length}")

    def to_bytes(self) -> bytes:
        """Return the content of the file."""
        arrays = _Arrays()
        index = {
            "kernel_attributes": self.attributes.to_dict(),
            "stretches": [
                {
                    "lengths": [each.lengths.start, each.lengths.stop, each.lengths.step],
                    "meta": each.meta.base,
                    "curves": each.meta.curves,
                    "columns": each.meta.columns,
                    "words": [arrays.added(words) for words in (each.code, each.weights, *each.host_models)],
                }
                for each in self.stretches
            ],
            "arrays": arrays.sizes,
        }
        raw = json.dumps(index, separators=(",", ":")).encode()
        packed = zlib.compress(raw, 6)
        body = packed + b"".join(arrays.packed)
        digest = hashlib.sha256(body).digest()
        return _HEADER.pack(MAGIC, VERSION, 0, len(packed), len(raw), len(body) - len(packed), digest) + body

    @classmethod
    def from_bytes(cls, raw: bytes, where: str = "range kernel") -> "RangeImage":
        """Read and validate the content of a file; raises :class:`ImageError`."""
        if len(raw) < _HEADER.size or raw[:4] != MAGIC:
            raise ImageError(f"{where}: not a range kernel (no {MAGIC.decode()} header); build it again")
        _, version, flags, packed, unpacked, rest, digest = _HEADER.unpack_from(raw)
        if version != VERSION or flags:
            raise ImageError(f"{where}: format version {version} cannot be read here ({VERSION} can); build it again")
        body = raw[_HEADER.size :]
        if len(body) != packed + rest or hashlib.sha256(body).digest() != digest:
            raise ImageError(f"{where}: checksum mismatch: the file is damaged; build the range kernel again")
        try:
            index = _index(body[:packed], unpacked)
            return cls._parsed(index, _read(index["arrays"], body[packed:]))
        except (
            ArithmeticError,
            AttributeError,
            LookupError,
            RecursionError,
            TypeError,
            ValueError,
            zlib.error,
        ) as error:
            raise ImageError(f"{where}: {type(error).__name__}: {error}") from error

    @classmethod
    def _parsed(cls, index: Mapping[str, Any], arrays: Sequence[npt.NDArray[np.uint32]]) -> "RangeImage":
        stretches, ranges = list[Stretch](), [range(*each["lengths"]) for each in index["stretches"]]
        changed = 0
        if (count := sum(map(len, ranges))) > _MOST_LENGTHS:
            raise ValueError(f"{count:,} lengths, {_MOST_LENGTHS:,} at most")
        for each, lengths in zip(index["stretches"], ranges, strict=True):
            if lengths.step < 1 or not lengths or (stretches and lengths[0] <= stretches[-1].lengths[-1]):
                raise ValueError(f"lengths {each['lengths']} do not go up")
            words = [WordFamily(*(arrays[number] for number in numbers)) for numbers in each["words"]]
            if (whole := sum(family.base.nbytes for family in words)) > _MOST_BYTES:
                raise ValueError(f"images of {whole:,} bytes, {_MOST_BYTES:,} at most")
            changed += sum(len(family.curved) + len(family.listed) + len(family.sizes) for family in words)
            if changed > _MOST_BYTES:
                raise ValueError(f"more than {_MOST_BYTES:,} words that depend on the length")
            for family in words:
                if problem := family.problem(len(lengths)):
                    raise ValueError(problem)
            meta = ValueFamily(each["meta"], _paths(each["curves"]), _paths(each["columns"]))
            if any(len(curve) != 3 for _, curve in meta.curves):
                raise ValueError("a curve has not three numbers")
            if any(len(column) != len(lengths) for _, column in meta.columns):
                raise ValueError("a column has not a value for each length")
            stretches.append(Stretch(lengths, meta, words[0], words[1], tuple(words[2:])))
        made = cls(KernelAttributes.parse(index["kernel_attributes"]), tuple(stretches))
        covered = made.attributes.covered
        if not stretches or covered != type(covered)(made.lengths[0], made.lengths[-1]):
            raise AttributeProblem(f"the attributes say {covered.written()}, which the lengths do not")
        return made

    @classmethod
    def load(cls, path: str | FilePath) -> "RangeImage":
        """Read a file; raises :class:`ImageError`, also if it cannot be read."""
        try:
            raw = FilePath(path).read_bytes()
        except OSError as error:
            raise ImageError(f"{path}: cannot be read: {error.strerror}") from None
        return cls.from_bytes(raw, str(path))


def _paths(entries: Sequence[Any]) -> list[tuple[tuple[str | int, ...], Any]]:
    return [(tuple(path), value) for path, value in entries]


class _Arrays:
    """Collects arrays on their way to a file, equal ones once: ``sizes`` of each (its shape), and its bytes,
    compressed."""

    def __init__(self) -> None:
        self.sizes: list[list[int]] = []
        self.packed: list[bytes] = []
        self._known: dict[tuple[bytes, tuple[int, ...]], int] = {}

    def added(self, words: WordFamily) -> list[int]:
        """Return the numbers of the arrays of ``words``."""
        return [self._number(getattr(words, field.name)) for field in fields(words)]

    def _number(self, array: npt.NDArray[np.uint32]) -> int:
        raw = np.ascontiguousarray(array).astype("<u4", copy=False).tobytes()
        key = (hashlib.sha256(raw).digest(), array.shape)
        if key not in self._known:
            self._known[key] = len(self.sizes)
            self.packed.append(zlib.compress(raw, 6))
            self.sizes.append([len(self.packed[-1]), *array.shape])
        return self._known[key]


def _index(raw: bytes, size: int) -> Any:
    if size > _MOST_INDEX:
        raise ValueError(f"an index of {size:,} bytes, {_MOST_INDEX:,} at most")
    text = _unpacked(raw, size)
    if (values := sum(map(text.count, (b",", b"[", b"{")))) > _MOST_VALUES:
        raise ValueError(f"an index of {values:,} values, {_MOST_VALUES:,} at most")
    return json.loads(text)


def _read(sizes: Sequence[Sequence[int]], raw: bytes) -> list[npt.NDArray[np.uint32]]:
    for size, *shape in sizes:
        if size < 0 or min(shape, default=0) < 0:
            raise ValueError(f"an array of {size} bytes and shape {shape} is impossible")
    if (whole := sum(4 * math.prod(shape) for _, *shape in sizes)) > _MOST_BYTES:
        raise ValueError(f"{whole:,} bytes of arrays, {_MOST_BYTES:,} at most: more than any device could hold")
    if (packed := sum(size for size, *_ in sizes)) != len(raw):
        raise ValueError(f"{len(raw):,} bytes of arrays, {packed:,} expected")
    arrays, at = [], 0
    for size, *shape in sizes:
        values = np.frombuffer(_unpacked(raw[at : at + size], 4 * math.prod(shape)), "<u4")
        arrays.append(values.astype(np.uint32, copy=False).reshape(shape))
        at += size
    return arrays


def _unpacked(raw: bytes, size: int) -> bytes:
    """Return ``raw`` unpacked; that must be ``size`` bytes."""
    data = zlib.decompressobj().decompress(raw, size + 1)
    if len(data) != size:
        raise ValueError(f"{len(data)} bytes in place of {size}")
    return data
