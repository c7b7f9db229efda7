"""Defines a model in device memory: its segments, LV2 windows, events and tensors."""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from hw.contract.bus import Bus
from hw.contract.isa import INSN_BYTES, LV2_SEGMENTS, Insn, IsaError, Segment
from hw.image import Image, NumberProblem, PortInfo, TensorInfo, parameter_values, window_weights
from sw.driver.errors import DriverError
from sw.driver.limits import BODY, body_limits, code_limits
from sw.driver.memory.placement import ImagePlacement, relocate
from sw.driver.memory.ranges import Range
from sw.driver.models.job_order import EdgeWaits, predecessors
from sw.driver.queues.descriptor import Descriptor, EventCount
from sw.driver.queues.events import EventLease

EventUse = tuple[tuple[EventCount, ...], int | None]  #: what a job waits for, and the event that it signals


class LoadedModel:
    """Is an image whose segments have addresses. ``Device.load`` makes it, ``Device.unload`` gives it back.

    ``number`` tells loaded models apart in completions and traces. ``engines``: the engine of the device that stands
    for each engine of the image. ``kernels``: the models that it is a program of.
    """

    kernels: "tuple[LoadedModel, ...]" = ()

    def __init__(
        self, bus: Bus, image: Image, placement: ImagePlacement, events: EventLease, number: int,
        engines: tuple[int, ...], tenant: str | None = None, *, keep_weights: bool = False,
        body_cycles: int | Sequence[int] = BODY,
    ) -> None:  # fmt: skip
        self.image = image
        self.tenant = tenant
        self.placement = placement
        self.events = events
        self.number = number
        self.engines = engines
        self.predecessors = predecessors(image)
        self._kept = window_weights(image) if keep_weights else {}
        self.cycle_limits = body_limits(image, bus.params, body_cycles)
        self._code_limits = code_limits(image)
        self.chain: EventLease | None = None  #: keeps jobs in order that are placed on any engine
        self._placed: int | None = None  #: engine of the latest job in the chain
        self._edges = EdgeWaits(image.meta.parts)
        self._layers: dict[int, int] = {}  #: of a placed model: engine by layer, of those queued in this inference
        self._latest: dict[int, int] = {}  #: likewise: the layer queued last, by engine
        self._left = 0  #: jobs of this inference that have not ended
        self._parameters: tuple[int, ...] = ()  #: of this inference
        self.users: list[str] = []  #: requests that have not ended, which it may not vanish under
        self.loaded = True  #: its memory is its own: False once it was unloaded
        self._bus = bus
        self._scratch = placement.segments[Segment.SCRATCH][0]

    def __repr__(self) -> str:
        """Return in a line what it is and where it runs."""
        where = f"engines {', '.join(map(str, self.engines))}" if self.loaded else "no engine: it was unloaded"
        return f"<LoadedModel {self.number} {self.name!r} on {where}>"

    @property
    def segments(self) -> list[tuple[int, int]]:
        """Return (first byte, size) of each segment."""
        return self.placement.segments

    @property
    def code(self) -> bytes:
        """Return the code as it lies in device memory: relocated."""
        return relocate(self.image, self.segments)

    def code_of(self, job: int) -> bytes:
        """Return the code that ``job`` runs, relocated, by the PCs of its tables."""
        return self.code

    def code_limit(self, job: int) -> int:
        """Return the bytes of the code segment that ``job`` reaches."""
        return self._code_limits[job]

    def point_number(self, job: int, number: int) -> int:
        """Return the place in the image's table of the cancellation point that ``job`` calls ``number``."""
        return number

    def engine_of(self, job: int) -> int:
        """Return the engine of the device on which job ``job`` runs unless it is placed. In a placed model, jobs of a
        layer follow the first of them."""
        info = self.image.meta.jobs[job]
        return self._layers.get(info.layer, self.engines[info.engine])

    def torn(self, job: int, engine: int) -> bool:
        """Return whether the layer of ``job``, of a placed model, would be torn if ``job`` came next on ``engine``:
        jobs of the layer were queued elsewhere, or another layer was queued behind them."""
        layer = self.image.meta.jobs[job].layer
        before = self._layers.get(layer)
        return before is not None and (before != engine or self._latest[engine] != layer)

    @property
    def placed(self) -> bool:
        """Return whether the layers may be spread over the model's engines, by the edges of its image."""
        return self.image.meta.parts > 0

    @property
    def roles(self) -> list[tuple[int, int]]:
        """Return (engine as the job table names it, engine of the device) of all engines of the model."""
        return [(0 if self.placed else number, engine) for number, engine in enumerate(self.engines)]

    def segments_on(self, engine: int) -> list[tuple[int, int]]:
        """Return (first byte, size) of each segment as a job on ``engine`` sees it: of segment 7 of a placed model, the
        part of that engine."""
        if not self.placed:
            return list(self.segments)
        base, size = self.segments[Segment.WINDOWS]
        part = size // self.image.meta.parts
        return [*self.segments[: Segment.WINDOWS], (base + self.engines.index(engine) * part, part)]

    @property
    def movable(self) -> bool:
        """Return whether the LV2 windows may lie elsewhere at the next inference, as no code names their addresses."""
        fixed = {f"segment{i}" for i in LV2_SEGMENTS}
        return not any(entry.symbol in fixed for entry in self.image.meta.relocations)

    def lv2_parts(self) -> list[tuple[int, int]]:
        """Return (first byte, size) of the two parts of LV2 that may lie anywhere: segments 6 and 7, or nothing and
        segment 7 if that has all of 6."""
        first, second = (self.segments[i] for i in LV2_SEGMENTS)
        return [(0, 0) if self.image.meta.overlaid else first, second]

    def move_windows(self, first: int, second: int) -> None:
        """Put the :meth:`lv2_parts` at these addresses. Only while no job of the model is queued or suspended."""
        bases = (second if self.image.meta.overlaid else first, second)
        for i, base in zip(LV2_SEGMENTS, bases, strict=True):
            self.segments[i] = (base, self.segments[i][1])

    def use_state(self, base: int | None = None) -> None:
        """Have the next inference find its state, and leave its spills, in segment 4 at ``base``, by default where the
        model was loaded. Only while no job of the model is queued or suspended."""
        scratch = int(Segment.SCRATCH)
        self.segments[scratch] = (self._scratch if base is None else base, self.segments[scratch][1])

    def clear_state(self, base: int, tensors: Sequence[TensorInfo]) -> None:
        """Write zeros to ``tensors`` of the state at ``base``, which no job uses. The access is not charged."""
        for tensor in tensors:
            size = math.prod(tensor.shape) * np.dtype(tensor.dtype).itemsize
            self._bus.write_mem(base + tensor.offset, bytes(size), charge=False)

    @property
    def name(self) -> str:
        """Return the model's name, from the image."""
        return self.image.meta.model

    def write_tensor(self, name: str, value: npt.NDArray) -> None:
        """Store an array of the tensor's own shape and dtype; raises :class:`DriverError` for another, or once the
        model was unloaded. The access is not charged, as ``Bus.write_mem`` explains."""
        info = self.image.tensor(name)
        if list(value.shape) != info.shape or value.dtype != info.dtype:
            raise DriverError(
                f"tensor {name!r} of model {self.name!r} is {info.dtype}{info.shape}, "
                f"not {value.dtype}{list(value.shape)}"
            )
        self._bus.write_mem(self._address(info), np.ascontiguousarray(value).tobytes(), charge=False)

    def read_tensor(self, name: str) -> npt.NDArray:
        """Return an array of the tensor's shape and dtype; raises :class:`DriverError` once the model was unloaded. The
        access is not charged, as ``Bus.read_mem`` explains."""
        info = self.image.tensor(name)
        size = int(np.prod(info.shape, dtype=np.int64)) * np.dtype(info.dtype).itemsize
        raw = self._bus.read_mem(self._address(info), size, charge=False)
        return np.frombuffer(raw, info.dtype).reshape(info.shape)

    def _address(self, info: TensorInfo) -> int:
        if not self.loaded:
            raise DriverError(f"model {self.name!r} was unloaded, so tensor {info.name!r} has no memory: load it again")
        return self.segments[info.segment][0] + info.offset

    def overlaps(self, other: "LoadedModel") -> bool:
        """Return whether the two models use common LV2 bytes, so that their jobs may not be mixed."""
        mine, theirs = self.windows(), other.windows()
        return any(a < d and c < b for a, b in mine for c, d in theirs)

    def windows(self) -> list[tuple[int, int]]:
        """Return the LV2 windows as (first, end). A model that the CPU computes whole has none."""
        parts = self.lv2_parts() if self.image.meta.jobs else []
        return [(base, base + size) for base, size in parts if size]

    def kept_weights(self, job: int) -> tuple[Range, bytes] | None:
        """Return where the weights of ``job`` stay in LV2 for the next inference, and their digest, or None if they do
        not."""
        kept = self._kept.get(job)
        if kept is None:
            return None
        base = self.segments[Segment.WINDOWS][0]
        return (base + kept.offset, base + kept.end), kept.digest

    def port(self, name: str) -> PortInfo:
        """Return the input or output called ``name``; raises KeyError if there is none."""
        for port in self.image.meta.inputs + self.image.meta.outputs:
            if port.name == name:
                return port
        raise KeyError(f"model {self.name!r} has no input or output {name!r}")

    def describe_job(self, index: int) -> str:
        """Return the job as text: ``job 3 of 'digits' (layer 'conv2')``."""
        layer = self.image.meta.layers[self.image.meta.jobs[index].layer]
        return f"job {index} of {self.name!r} (layer {layer.name!r})"

    def disassemble(self, job: int, pc: int, parameters: Sequence[int] = ()) -> str:
        """Return assembler text of the instruction at ``pc`` of ``job``, and what it is with ``parameters`` if it names
        any; or a text that says that there is none."""
        raw = self.code_of(job)[pc * INSN_BYTES : (pc + 1) * INSN_BYTES]
        try:
            insn = Insn.decode(raw)
            return f"{insn} = {insn.resolve(parameters)}" if insn.added else str(insn)
        except IsaError as error:
            return f"({error})"

    def work(self, index: int, engine: int, events: EventUse, cycle_limit: int) -> Descriptor:
        """Return what job ``index`` is to do on ``engine``, where it uses these ``events``."""
        job, (code, *others) = self.image.meta.jobs[index], self.segments_on(engine)
        return Descriptor(
            segments=((code[0], self.code_limit(index)), *others),
            cycle_limit=cycle_limit,
            tag=(self.number & 0xFFFF) << 16 | (index & 0xFFFF),
            body_pc=job.body_pc,
            prologue_pc=job.prologue_pc,
            waits=events[0],
            signal=events[1],
            parameters=tuple(self._parameters[number] for number in job.parameters),
        )

    @property
    def in_flight(self) -> bool:
        """Return whether an inference has begun of which not all jobs have ended, so that its windows hold its data."""
        return self._left > 0

    def parameters_of(self, numbers: Mapping[str, int]) -> tuple[int, ...]:
        """Return all parameters of jobs of an inference with these ``numbers``; raises :class:`DriverError` for one
        that is missing, out of its range, or not known."""
        try:
            return parameter_values(self.image.meta.parameters, numbers)
        except NumberProblem as problem:
            raise DriverError(f"model {self.name!r}: number {problem}") from None

    def begin(self, parameters: tuple[int, ...] = ()) -> None:
        """Begin an inference whose jobs have some of these ``parameters``: waits for events count from here."""
        self._parameters = parameters
        self.events.begin()
        self._forget()
        self._left = len(self.image.meta.jobs)

    def job_ended(self) -> None:
        """Note that a job of the inference has ended."""
        self._left = max(0, self._left - 1)

    def end(self) -> None:
        """End the inference, of which no job will be queued any more."""
        self._left = 0

    def _forget(self) -> None:
        """Forget the queued jobs: no job of this inference has been queued."""
        self._placed = None
        self._edges.begin()
        self._layers, self._latest = {}, {}

    def synchronise(self) -> None:
        """Take event counters as they stand. Only while no job of the model is outstanding."""
        for lease in (self.events, self.chain):
            if lease is not None:
                lease.synchronise()
        self._forget()
        self.end()

    def edge_waits(self, index: int, engine: int, ended: Callable[[int], bool]) -> list[tuple[int, int]]:
        """Return the events, as the lease of a placed model counts them, that job ``index`` would have to wait for on
        ``engine``; ``ended`` tells whether an earlier job is known to have ended."""
        return self._edges.waits(self.image.meta.jobs[index].after, self.engines.index(engine), ended)

    def put(self, index: int, engine: int, waits: Sequence[tuple[int, int]]) -> EventUse:
        """Enter job ``index`` of a placed model as the next on ``engine``; return the events that it uses, with these
        ``waits``."""
        part, job = self.engines.index(engine), self.image.meta.jobs[index]
        self._edges.queue(index, job.after, part)
        self._layers[job.layer], self._latest[engine] = engine, job.layer
        return tuple(self.events.wait(event, count) for event, count in waits), self.events.signalled(part)

    def follow(self, engine: int) -> EventUse:
        """Return the events that a job on ``engine`` uses to wait for the model's job before, if that is on another
        one."""
        assert self.chain is not None
        waits = () if self._placed in (None, engine) else (self.chain.all_signalled(0),)
        self._placed = engine
        return waits, self.chain.signalled(0)

    def image_events(self, index: int) -> EventUse:
        """Return the events that job ``index`` uses by its image."""
        job = self.image.meta.jobs[index]
        waits = tuple(self.events.wait(event, times) for event, times in job.waits)
        return waits, None if job.signal is None else self.events.signalled(job.signal)


def weights_of_like(image: Image, like: Sequence[LoadedModel]) -> int | None:
    """Return where a model of ``like`` has the weights of ``image``, or None if none has."""
    same = (model for model in like if model.image.weights == image.weights)
    base, size = next((model.segments[Segment.WEIGHTS] for model in same), (None, 0))
    return base if size == image.meta.segment_sizes[Segment.WEIGHTS] else None
