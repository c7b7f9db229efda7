"""Defines the image container (``.cimg``): everything a driver needs to run one compiled model on one parameter set.

Layout: a 64-byte header, then four sections back to back: metadata (JSON, the dataclasses of ``image_tables``), code
(64-byte instructions, segment 0), weights (segment 1) and host models (ONNX parts that run on the CPU). The header
holds magic, format version, section sizes and a SHA-256 over all sections, so a truncated or altered file is refused.
"""

import hashlib
import os
import struct
from collections import Counter
from pathlib import Path
from typing import Any

import pydantic
from pydantic.dataclasses import dataclass

from hw.contract.html_table import html_table
from hw.contract.params import SocParams
from hw.contract.spaces import Space
from hw.image.check import problems
from hw.image.tables import (
    CancelPoint,
    ImageMeta,
    JobInfo,
    LayerInfo,
    LiveRange,
    PortInfo,
    Relocation,
    StepInfo,
    TensorInfo,
)

MAGIC = b"CIMG"
VERSION = 1
_HEADER = struct.Struct("<4sHHIIIIQ32s")  # magic, version, flags, sizes of meta, code, weights, host; reserved; digest
assert _HEADER.size == 64


class ImageError(ValueError):
    """Says why an image cannot be used; names the part of the file, what is wrong and the way out."""


_PER_PE = (Space.LV0_ACT, Space.LV0_WGT)  #: ranges of these count bytes of each PE
_META = pydantic.TypeAdapter(ImageMeta)


def meta_to_dict(meta: ImageMeta) -> dict[str, Any]:
    """Return metadata as values of JSON."""
    values: dict[str, Any] = _META.dump_python(meta, mode="json")
    return values


def meta_from_dict(values: object) -> ImageMeta:
    """Return the metadata that values of JSON stand for; raises ``ValueError`` if they are none."""
    return _META.validate_python(values)


@dataclass(config=pydantic.ConfigDict(arbitrary_types_allowed=True))
class Image:
    """Holds a compiled model. ``code`` and ``weights`` go to segments 0 and 1 as they are."""

    meta: ImageMeta
    code: bytes
    weights: bytes
    host_models: list[bytes] = pydantic.Field(default_factory=list)

    def __repr__(self) -> str:
        """Return in a line what it is; its fields have all of it."""
        meta = self.meta
        return (
            f"<Image {meta.model!r} for {meta.params.get('name')!r}: {len(meta.layers)} layers, {len(meta.jobs)} jobs, "
            f"{len(self.weights):,} bytes of weights>"
        )

    def _repr_html_(self) -> str:
        """Return a table of the layers with their reference durations in cycles, as notebooks show it."""
        jobs = Counter(job.layer for job in self.meta.jobs)
        rows = [
            (layer.name, layer.kind, layer.macs, jobs[index], layer.load + layer.stream, layer.compute)
            for index, layer in enumerate(self.meta.layers)
        ]
        heads = ("layer", "kind", "MACs", "jobs", "memory access, cycles", "compute, cycles")
        return html_table(self, heads, rows)

    @property
    def params(self) -> SocParams:
        """Return the parameters the image was built for."""
        return SocParams.from_dict(dict(self.meta.params))

    def tensor(self, name: str) -> TensorInfo:
        """Return the tensor called ``name``; KeyError if there is none."""
        for tensor in self.meta.tensors:
            if tensor.name == name:
                return tensor
        raise KeyError(f"image {self.meta.model!r} has no tensor {name!r}")

    def live_bytes(self, point: CancelPoint, *, dirty: bool) -> int:
        """Return the bytes of all memories and PEs together that are live at ``point``: those that a dump moves
        (``dirty``), or those that are loaded again."""
        pes = self.params.pes
        sizes = (r.size * (pes if r.space in _PER_PE else 1) for r in point.live if r.dirty == dirty)
        return sum(sizes)

    def to_bytes(self) -> bytes:
        """Return the content of the file."""
        self.meta.host_sizes = [len(m) for m in self.host_models]
        host = b"".join(self.host_models)
        meta = _META.dump_json(self.meta)
        body = meta + self.code + self.weights + host
        digest = hashlib.sha256(body).digest()
        return (
            _HEADER.pack(MAGIC, VERSION, 0, len(meta), len(self.code), len(self.weights), len(host), 0, digest) + body
        )

    @classmethod
    def from_bytes(cls, raw: bytes, where: str = "image") -> "Image":
        """Read and validate the content of a file; raises :class:`ImageError`."""
        if len(raw) < _HEADER.size or raw[:4] != MAGIC:
            raise ImageError(f"{where}: not a Caesura image (no {MAGIC.decode()} header); compile the model again")
        _, version, flags, n_meta, n_code, n_weights, n_host, reserved, digest = _HEADER.unpack_from(raw)
        if version != VERSION or flags or reserved:
            raise ImageError(
                f"{where}: format version {version} (flags {flags}) cannot be read here ({VERSION} can); compile again"
            )
        body = memoryview(raw)[_HEADER.size :]  # parts of an image are copied once
        if len(body) != n_meta + n_code + n_weights + n_host:
            raise ImageError(
                f"{where}: {len(body)} bytes after the header, {n_meta + n_code + n_weights + n_host} expected;"
                " truncated?"
            )
        if hashlib.sha256(body).digest() != digest:
            raise ImageError(f"{where}: checksum mismatch: the file is damaged; compile the model again")
        try:
            meta = _META.validate_json(bytes(body[:n_meta]))
        except pydantic.ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"])
            raise ImageError(f"{where}: metadata field {place or 'top level'}: {first['msg']}") from None
        code, weights = (
            bytes(body[n_meta : n_meta + n_code]),
            bytes(body[n_meta + n_code : n_meta + n_code + n_weights]),
        )
        host, models = body[n_meta + n_code + n_weights :], []
        for size in meta.host_sizes:
            models.append(bytes(host[:size]))
            host = host[size:]
        if len(host):
            raise ImageError(
                f"{where}: host models do not match host_sizes {meta.host_sizes}: {len(host)} bytes are in none"
            )
        image = cls(meta, code, weights, models)
        image.validate(where)
        return image

    @staticmethod
    def weights_in(raw: bytes) -> tuple[int, int]:
        """Return where the weights are in the content of a file, first byte and size, as its header says."""
        _, _, _, n_meta, n_code, n_weights, *_ = _HEADER.unpack_from(raw)
        return _HEADER.size + n_meta + n_code, n_weights

    @classmethod
    def load(cls, path: str | Path) -> "Image":
        """Read a ``.cimg`` file; raises :class:`ImageError`, also if the file cannot be read."""
        try:
            raw = Path(path).read_bytes()
        except OSError as error:
            raise ImageError(f"{path}: cannot be read: {error.strerror}") from None
        return cls.from_bytes(raw, str(path))

    def save(self, path: str | Path) -> None:
        """Write a ``.cimg`` file, whole or not at all. Raises OSError."""
        path = Path(path)
        if path.exists() and not path.is_file():  # a pipe, say
            path.write_bytes(self.to_bytes())
            return
        draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        try:
            draft.write_bytes(self.to_bytes())
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)

    def check_params(self, params: SocParams) -> None:
        """Raise :class:`ImageError` unless the image was built for hardware with these parameters."""
        if self.params.digest() != params.digest():
            raise ImageError(
                f"image {self.meta.model!r} was built for preset {self.meta.params.get('name')!r} "
                f"({self.params.digest()}), not for {params.name!r} ({params.digest()}): compile it for this device"
            )

    def validate(self, where: str = "image") -> None:
        """Check that every table refers to things that exist; raises :class:`ImageError`."""
        for problem in problems(self):
            raise ImageError(f"{where}: {problem}")


__all__ = [
    "MAGIC",
    "VERSION",
    "CancelPoint",
    "Image",
    "ImageError",
    "ImageMeta",
    "JobInfo",
    "LayerInfo",
    "LiveRange",
    "PortInfo",
    "Relocation",
    "StepInfo",
    "TensorInfo",
]
