"""Defines the tables of an image: tensors, ports, layers, jobs, steps and cancellation points."""

from typing import Any, Literal, Protocol

import pydantic
from pydantic.dataclasses import dataclass

from hw.contract.isa import LV2_SEGMENTS
from hw.contract.params import SocParams
from hw.contract.spaces import OnChip
from hw.image.numbers import ParameterInfo

_STRICT = pydantic.ConfigDict(extra="forbid")


def _nothing(value: object) -> bool:
    """Return whether a field has no value, and is left out of the file: only some images have it."""
    return not value


def _no_bytes(value: tuple[int, int]) -> bool:
    """Return whether a range is empty, and is left out of the file."""
    return value == (0, 0)


@dataclass(config=_STRICT)
class TensorInfo:
    """Describes a tensor that lies in DRAM: dense, row-major, channels last, at ``offset`` of ``segment`` (2 to 5)."""

    name: str
    dtype: Literal["int8", "uint8", "float32", "int64", "int32"]
    shape: list[int]
    segment: int
    offset: int
    scale: float = 1.0
    zero_point: int = 0


@dataclass(config=_STRICT)
class PortInfo:
    """Describes a model input or output as the user sees it, and how the host converts it to or from ``tensor``.

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
    """Describes a layer (operator after fusion). Durations are cycles; measured ones are None until it ran alone.

    ``load``: memory access of its prologues, before it computes; ``stream``: that of its bodies, meanwhile (weights,
    inputs and results that come from or go to DRAM). Both together are its memory access.
    """

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
    estimated_stream: int = 0
    measured_load: int | None = None
    measured_compute: int | None = None
    measured_stream: int | None = None

    @property
    def load(self) -> int:
        """Return the reference duration of memory access before it computes: measured, or estimated until then."""
        return self.estimated_load if self.measured_load is None else self.measured_load

    @property
    def compute(self) -> int:
        """Return the reference duration of compute: measured, or estimated until then."""
        return self.estimated_compute if self.measured_compute is None else self.measured_compute

    @property
    def stream(self) -> int:
        """Return the reference duration of memory access while it computes: measured, or estimated until then."""
        return self.estimated_stream if self.measured_stream is None else self.measured_stream


@dataclass(config=_STRICT)
class LiveRange:
    """Describes on-chip bytes that are needed after a cancellation point. ``dirty`` ones have no copy elsewhere, so
    they are dumped and restored.

    Clean ranges of LV2 are reloaded from ``source_offset`` of DRAM segment ``source_segment``, all others by the
    point's ``reload`` instructions. Offsets: in ``segment`` (LV2), in LV1, in the memory of each PE (``lv0_act``,
    ``lv0_wgt``), or 4 * ``out_channels`` times the accumulator row (``lv0_acc``; all PEs together).
    """

    space: OnChip
    segment: int  #: 6 or 7 in LV2, 0 elsewhere
    offset: int
    size: int
    dirty: bool
    source_segment: int = 0
    source_offset: int = 0


@dataclass(config=_STRICT)
class JobInfo:
    """Describes a job to submit, in ring order of its ``engine`` slot. Events are numbered within the image; the driver
    maps them to hardware events: before the body starts event ``wait[i][0]`` must have been signalled ``wait[i][1]``
    times since the inference began. ``live``: ranges of LV2 that hold data before the body starts, the job's own weight
    window (``window``: offset in segment 7 and size, filled by the prologue) left out. ``after``, in a placed image:
    earlier jobs that must have retired before the body starts, whichever engine runs them."""

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
    after: list[int] = pydantic.Field(default_factory=list, exclude_if=_nothing)
    #: By the index that its instructions name, parameters of the image: entries of its table.
    parameters: list[int] = pydantic.Field(default_factory=list, exclude_if=_nothing)


@dataclass(config=_STRICT)
class StepInfo:
    """Describes one step of an inference, in order: jobs ``first`` to ``first + count`` of the job table on the
    accelerator, or ONNX model ``host`` (index into the host models) on the CPU, reading and writing tensors by name."""

    kind: Literal["jobs", "host"]
    first: int = 0
    count: int = 0
    host: int = 0
    inputs: list[str] = pydantic.Field(default_factory=list)
    outputs: list[str] = pydantic.Field(default_factory=list)
    reason: str = ""  #: why it runs on the CPU


@dataclass(config=_STRICT)
class CancelPoint:
    """Describes a cancellation point: the instruction CANCEL ``point`` (its index in the table) at ``pc`` of job
    ``job``.

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
    """Names a field of the instruction at ``pc`` to which the loader adds the value of ``symbol``."""

    pc: int
    field: str
    symbol: str


@dataclass(config=_STRICT)
class ImageMeta:
    """Holds the metadata section of an image."""

    model: str
    params: dict[str, int | str]
    #: Bytes of each of the eight segments; 6 and 7 lie in LV2: one beside the other, or both from the same byte on.
    segment_sizes: list[int]
    tensors: list[TensorInfo]
    inputs: list[PortInfo]
    outputs: list[PortInfo]
    layers: list[LayerInfo]
    jobs: list[JobInfo]
    steps: list[StepInfo]
    events: int = 0  #: events the jobs use
    #: Of a placed image: engines over which its layers may be spread, all jobs of a layer on one. Each has an equal
    #: part of segment 7 to itself, in which the jobs that it runs have their addresses. 0: jobs name their engines.
    parts: int = pydantic.Field(default=0, exclude_if=_nothing)
    #: Segments 6 and 7 begin at the same byte of LV2, and 7 has all of 6: weight windows may lie where no tensor does
    #: just then. False: nothing is in both.
    overlaid: bool = pydantic.Field(default=False, exclude_if=_nothing)
    #: First byte and size of the part of segment 7 that prologues alone write, each the window of its own job: see
    #: ``hw.image.windows``.
    weights_only: tuple[int, int] = pydantic.Field(default=(0, 0), exclude_if=_no_bytes)
    cancel_points: list[CancelPoint] = pydantic.Field(default_factory=list)
    relocations: list[Relocation] = pydantic.Field(default_factory=list)
    #: Of its jobs, each of which has some of them; none: jobs have no parameters.
    parameters: list[ParameterInfo] = pydantic.Field(default_factory=list, exclude_if=_nothing)
    #: Of an image that is a kernel: see ``hw.image.kernel_attributes``, which checks it; empty otherwise.
    kernel_attributes: dict[str, Any] = pydantic.Field(default_factory=dict)
    host_sizes: list[int] = pydantic.Field(default_factory=list)  #: bytes of each host model

    @property
    def lv2_bytes(self) -> int:
        """Return the bytes of LV2 that segments 6 and 7 take together."""
        tensors, windows = (self.segment_sizes[i] for i in LV2_SEGMENTS)
        return windows if self.overlaid else tensors + windows


class Contents(Protocol):
    """Holds all parts of an image, as its checks see it."""

    meta: ImageMeta
    code: bytes
    weights: bytes
    host_models: list[bytes]

    @property
    def params(self) -> SocParams:
        """Return the parameters that the image was built for."""
