"""The image container (``.cimg``): everything a driver needs to run one compiled model on one parameter set.

Layout: a 64-byte header, then four sections back to back: metadata (JSON, the dataclasses below), code
(64-byte instructions, segment 0), weights (segment 1) and host models (ONNX parts that run on the CPU). The header
holds magic, format version, section sizes and a SHA-256 over all sections, so a truncated or altered file is refused.
This module imports no RTL.
"""

import hashlib
import struct
from pathlib import Path
from typing import Literal

import pydantic
from pydantic.dataclasses import dataclass

from hw.image_check import problems
from hw.params import SocParams

MAGIC = b"CIMG"
VERSION = 1
_HEADER = struct.Struct("<4sHHIIIIQ32s")  # magic, version, flags, sizes of meta, code, weights, host; reserved; digest
assert _HEADER.size == 64

_STRICT = pydantic.ConfigDict(extra="forbid")


class ImageError(ValueError):
    """An image that cannot be used; names the part of the file, what is wrong and the way out."""


@dataclass(config=_STRICT)
class TensorInfo:
    """A tensor with a home in DRAM: dense, row-major, channels last, at ``offset`` of ``segment`` (2 to 5)."""

    name: str
    dtype: Literal["int8", "uint8", "float32", "int64", "int32"]
    shape: list[int]
    segment: int
    offset: int
    scale: float = 1.0
    zero_point: int = 0


@dataclass(config=_STRICT)
class PortInfo:
    """A model input or output as the user sees it, and how the host converts it to or from ``tensor``.

    Input: x (``shape``, ``dtype``) is quantised if ``quantise`` (saturate(round_half_even(x / scale) + zero_point)),
    then transposed by ``perm`` and stored. Output: the inverse order (transpose by ``perm``, dequantise), then
    reshaped to ``shape``.
    """

    name: str
    dtype: str
    shape: list[int]
    tensor: str
    perm: list[int]
    quantise: bool = False


@dataclass(config=_STRICT)
class LayerInfo:
    """A layer (operator after fusion). Durations in cycles; measured ones are None until profiled."""

    name: str
    kind: str
    nodes: list[str]  #: names of the ONNX nodes it stands for
    output: str  #: ONNX name of the tensor it computes
    macs: int = 0
    input_bytes: int = 0
    weight_bytes: int = 0
    output_bytes: int = 0
    estimated_load: int = 0
    estimated_compute: int = 0
    measured_load: int | None = None
    measured_compute: int | None = None


@dataclass(config=_STRICT)
class LiveRange:
    """On-chip bytes needed after a cancellation point. ``dirty``: no copy elsewhere, so dump and restore.

    Clean ranges of LV2 are reloaded from ``source_offset`` of DRAM segment ``source_segment``, all others by the
    point's ``reload`` instructions. Offsets: in ``segment`` (LV2), in LV1, in the memory of each PE (``lv0_act``,
    ``lv0_wgt``), or 4 * ``out_channels`` times the accumulator row (``lv0_acc``; all PEs together).
    """

    space: Literal["lv1", "lv2", "lv0_act", "lv0_wgt", "lv0_acc"]
    segment: int  #: 6 or 7 in LV2, 0 elsewhere
    offset: int
    size: int
    dirty: bool
    source_segment: int = 0
    source_offset: int = 0


@dataclass(config=_STRICT)
class JobInfo:
    """A job to submit, in ring order of its ``engine`` slot. Events are numbered within the image; the driver maps
    them to hardware events: before the body starts event ``wait[i][0]`` must have been signalled ``wait[i][1]``
    times since the inference began. ``live``: ranges of LV2 that hold data before the body starts, the job's own weight
    window (``window``: offset in segment 7 and size, filled by the prologue) left out."""

    layer: int
    engine: int
    body_pc: int
    prologue_pc: int | None = None
    window_after: int = 0
    waits: list[tuple[int, int]] = pydantic.Field(default_factory=list)
    signal: int | None = None
    window: tuple[int, int] = (0, 0)
    worst_cycles: int = 0  #: bound on the cycles from its start, or its last cancellation point, to its end
    live: list[LiveRange] = pydantic.Field(default_factory=list)


@dataclass(config=_STRICT)
class StepInfo:
    """One step of an inference, in order: jobs ``first`` to ``first + count`` of the job table on the accelerator, or
    ONNX model ``host`` (index into the host models) on the CPU, reading and writing tensors by name."""

    kind: Literal["jobs", "host"]
    first: int = 0
    count: int = 0
    host: int = 0
    inputs: list[str] = pydantic.Field(default_factory=list)
    outputs: list[str] = pydantic.Field(default_factory=list)
    reason: str = ""  #: why it runs on the CPU


@dataclass(config=_STRICT)
class CancelPoint:
    """A cancellation point: CANCEL instruction ``point`` (its index in the table) at ``pc`` of job ``job``.

    Once dirty ranges are back and ``reload`` (PCs of LD2, LD1 and LD0 instructions) has run again in this order, waits
    and signals left out, the job goes on at ``pc`` + 1 with ``semaphores`` (number, count; the others zero).
    """

    point: int
    job: int
    pc: int
    estimated_interval: int = 0  #: cycles from the point or job start before
    live: list[LiveRange] = pydantic.Field(default_factory=list)
    reload: list[int] = pydantic.Field(default_factory=list)
    semaphores: list[tuple[int, int]] = pydantic.Field(default_factory=list)
    worst_interval: int = 0  #: bound on the cycles from a pause after the point before to HALTED here


@dataclass(config=_STRICT)
class Relocation:
    """A field of the instruction at ``pc`` to which the loader adds the value of ``symbol``."""

    pc: int
    field: str
    symbol: str


@dataclass(config=_STRICT)
class ImageMeta:
    """The metadata section."""

    model: str
    params: dict[str, int | str]
    segment_sizes: list[int]  #: bytes of each of the eight segments; 6 and 7 lie in LV2
    tensors: list[TensorInfo]
    inputs: list[PortInfo]
    outputs: list[PortInfo]
    layers: list[LayerInfo]
    jobs: list[JobInfo]
    steps: list[StepInfo]
    events: int = 0  #: events the jobs use
    cancel_points: list[CancelPoint] = pydantic.Field(default_factory=list)
    relocations: list[Relocation] = pydantic.Field(default_factory=list)
    kernel_attributes: dict[str, str | int] = pydantic.Field(default_factory=dict)
    host_sizes: list[int] = pydantic.Field(default_factory=list)  #: bytes of each host model


_META = pydantic.TypeAdapter(ImageMeta)


@dataclass(config=pydantic.ConfigDict(arbitrary_types_allowed=True))
class Image:
    """A compiled model. ``code`` and ``weights`` go to segments 0 and 1 as they are."""

    meta: ImageMeta
    code: bytes
    weights: bytes
    host_models: list[bytes] = pydantic.Field(default_factory=list)

    @property
    def params(self) -> SocParams:
        """The parameters the image was built for."""
        return SocParams.from_dict(dict(self.meta.params))

    def tensor(self, name: str) -> TensorInfo:
        """The tensor called ``name``; KeyError if there is none."""
        for tensor in self.meta.tensors:
            if tensor.name == name:
                return tensor
        raise KeyError(f"image {self.meta.model!r} has no tensor {name!r}")

    def to_bytes(self) -> bytes:
        """The file's content."""
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
        """Parse and validate everything; raises :class:`ImageError`."""
        if len(raw) < _HEADER.size or raw[:4] != MAGIC:
            raise ImageError(f"{where}: not a Caesura image (no {MAGIC.decode()} header); compile the model again")
        _, version, flags, n_meta, n_code, n_weights, n_host, reserved, digest = _HEADER.unpack_from(raw)
        if version != VERSION or flags or reserved:
            raise ImageError(
                f"{where}: format version {version} (flags {flags}) cannot be read here ({VERSION} can); compile again"
            )
        body = raw[_HEADER.size :]
        if len(body) != n_meta + n_code + n_weights + n_host:
            raise ImageError(
                f"{where}: {len(body)} bytes after the header, {n_meta + n_code + n_weights + n_host} expected;"
                " truncated?"
            )
        if hashlib.sha256(body).digest() != digest:
            raise ImageError(f"{where}: checksum mismatch: the file is damaged; compile the model again")
        try:
            meta = _META.validate_json(body[:n_meta])
        except pydantic.ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"])
            raise ImageError(f"{where}: metadata field {place or 'top level'}: {first['msg']}") from None
        code, weights = body[n_meta : n_meta + n_code], body[n_meta + n_code : n_meta + n_code + n_weights]
        host, models = body[n_meta + n_code + n_weights :], []
        for size in meta.host_sizes:
            models.append(host[:size])
            host = host[size:]
        image = cls(meta, code, weights, models)
        image.validate(where)
        return image

    @classmethod
    def load(cls, path: str | Path) -> "Image":
        """Read a ``.cimg`` file; raises :class:`ImageError`, also if the file cannot be read."""
        try:
            raw = Path(path).read_bytes()
        except OSError as error:
            raise ImageError(f"{path}: cannot be read: {error.strerror}") from None
        return cls.from_bytes(raw, str(path))

    def save(self, path: str | Path) -> None:
        """Write a ``.cimg`` file."""
        Path(path).write_bytes(self.to_bytes())

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
