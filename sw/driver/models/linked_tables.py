"""Joins the tables of loaded kernels that run one behind the other to those of one program. Code stays where it is.

Tables of a program speak of LV2 as segment 7 and of DRAM as segment 5, whole, so that ranges of different kernels can
stand in one table. What a job can reach is not said there: each has the segments of its own kernel. Where several
engines run it, each kernel begins with two jobs on each of them that do nothing: the first tells that the engine is
done with the kernel before, the second waits until all are."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from hw.contract.isa import LV2_SEGMENTS, SEGMENTS, Insn, Op, Segment
from hw.contract.params import SocParams
from hw.contract.spaces import Space
from hw.image import (
    CancelPoint,
    Image,
    ImageMeta,
    JobInfo,
    LayerInfo,
    LiveRange,
    ParameterInfo,
    PortInfo,
    StepInfo,
    TensorInfo,
)
from sw.driver.memory.ranges import Range, overlap

NOTHING = Insn(Op.END).encode()  #: the code of a program's own: that of jobs that do nothing


@dataclass(frozen=True)
class PlacedKernel:
    """Is a kernel at its place in a program. ``segments``: first byte and size of each, as its jobs reach them;
    ``windows``: the bytes of LV2 that it uses. ``name``: what its layers are called by."""

    name: str
    image: Image
    segments: Sequence[tuple[int, int]]
    windows: Sequence[Range]


@dataclass
class ProgramTables:
    """Holds the tables of a program. By job: ``kernel``, the place of its kernel in the program, or None for a job that
    does nothing, and ``own``, its number there. ``points``: by kernel, where its cancellation points begin."""

    image: Image
    kernel: list[int | None]
    own: list[int]
    points: list[int]


def join_tables(
    name: str, kernels: Sequence[PlacedKernel], params: SocParams, inputs: Sequence[tuple[PortInfo, TensorInfo]],
    outputs: Sequence[tuple[PortInfo, TensorInfo]],
) -> ProgramTables:  # fmt: skip
    """Return the tables of a program called ``name``. ``inputs`` and ``outputs`` are with tensors that lie in DRAM at
    their ``offset``."""
    made = _Tables(kernels)
    for place in range(len(kernels)):
        made.add(place)
    sizes = [0] * SEGMENTS
    sizes[Segment.SHARED], sizes[Segment.WINDOWS] = params.dram_bytes, params.lv2_bytes
    sizes[Segment.LV2] = max(kernel.image.meta.segment_sizes[Segment.LV2] for kernel in kernels)
    meta = ImageMeta(
        model=name, params=kernels[0].image.meta.params, segment_sizes=sizes,
        tensors=[tensor for _, tensor in (*inputs, *outputs)],
        inputs=[port for port, _ in inputs], outputs=[port for port, _ in outputs],
        layers=made.layers, jobs=made.jobs, steps=[StepInfo("jobs", 0, len(made.jobs))], events=made.turn + 1,
        overlaid=True, cancel_points=made.points, parameters=made.parameters,
    )  # fmt: skip
    return ProgramTables(Image(meta, NOTHING, b""), made.kernel, made.own, made.first_points)


@dataclass
class _Tables:
    kernels: Sequence[PlacedKernel]
    layers: list[LayerInfo] = field(default_factory=list)
    jobs: list[JobInfo] = field(default_factory=list)
    points: list[CancelPoint] = field(default_factory=list)
    parameters: list[ParameterInfo] = field(default_factory=list)
    kernel: list[int | None] = field(default_factory=list)
    own: list[int] = field(default_factory=list)
    first_points: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        metas = [kernel.image.meta for kernel in self.kernels]
        self._engines = 1 + max(job.engine for meta in metas for job in meta.jobs)
        self.turn = max(meta.events for meta in metas)  #: the event of jobs that do nothing
        self._signals = [0] * self.turn  #: of each event, by jobs so far
        self._queues: list[list[int]] = [[] for _ in range(self._engines)]
        self._ends: list[list[int]] = []  #: by kernel and engine: the place in its queue behind which all have ended

    def add(self, place: int) -> None:
        """Append the jobs of a kernel, behind those of the kernel before."""
        if place:
            self._take_turns(place)
        kernel, meta = self.kernels[place], self.kernels[place].image.meta
        before = [i for i in range(place) if overlap(kernel.windows, self.kernels[i].windows)]
        holders, begun = self._ends[before[-1]] if before else None, [len(queue) for queue in self._queues]
        first_layer, first_point, first_job = len(self.layers), len(self.points), len(self.jobs)
        self.first_points.append(first_point)
        self.layers += [replace(layer, name=f"{kernel.name}: {layer.name}") for layer in meta.layers]
        numbers = [self._parameter(info) for info in meta.parameters]
        signals = [*self._signals]
        for number, job in enumerate(meta.jobs):
            window_after, length = job.window_after, len(self._queues[job.engine])
            if window_after > length - begun[job.engine]:  # of the inference before
                window_after = 0
            if not window_after and holders is not None and job.prologue_pc is not None:
                window_after = length - holders[job.engine]
            if job.signal is not None:
                self._signals[job.signal] += 1
            moved = replace(
                job, layer=first_layer + job.layer, window_after=window_after,
                waits=[(event, signals[event] + times) for event, times in job.waits],
                window=(kernel.segments[Segment.WINDOWS][0] + job.window[0], job.window[1]),
                live=[_moved(kernel, live) for live in job.live],
                parameters=[numbers[one] for one in job.parameters],
            )  # fmt: skip
            self._append(moved, place, number)
        self.points += [
            replace(
                point, point=first_point + point.point, job=first_job + point.job,
                live=[_moved(kernel, live) for live in point.live],
            )
            for point in meta.cancel_points
        ]  # fmt: skip
        if self._engines == 1:
            self._ends.append([len(self._queues[0]) - 1])

    def _take_turns(self, place: int) -> None:
        """Append the jobs behind which everything before this kernel has ended."""
        if self._engines == 1:  # its jobs run in order anyway
            return
        self.layers.append(LayerInfo(f"{self.kernels[place].name}: its turn", "turn", [], ""))
        own = JobInfo(len(self.layers) - 1, 0, 0)
        for engine in range(self._engines):
            self._append(replace(own, engine=engine, signal=self.turn), None, 0)
        for engine in range(self._engines):
            self._append(replace(own, engine=engine, waits=[(self.turn, self._engines * place)]), None, 0)
        self._ends.append([len(queue) - 1 for queue in self._queues])

    def _append(self, job: JobInfo, kernel: int | None, own: int) -> None:
        self._queues[job.engine].append(len(self.jobs))
        self.jobs.append(job)
        self.kernel.append(kernel)
        self.own.append(own)

    def _parameter(self, info: ParameterInfo) -> int:
        if info not in self.parameters:
            self.parameters.append(info)
        return self.parameters.index(info)


def _moved(kernel: PlacedKernel, live: LiveRange) -> LiveRange:
    """Return a live range with all of LV2, and of DRAM, as segments."""
    if live.space != Space.LV2 or live.segment not in LV2_SEGMENTS:
        return live
    moved = replace(live, segment=int(Segment.WINDOWS), offset=kernel.segments[live.segment][0] + live.offset)
    if live.dirty:
        return moved
    source = kernel.segments[live.source_segment][0] + live.source_offset
    return replace(moved, source_segment=int(Segment.SHARED), source_offset=source)
