"""Runs a model with a dynamic dimension operation by operation: in each inference a kernel is matched for each
(**Run-time kernel matching**)."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from caesura.api import Arrays, Device, Inputs, Model
from caesura.lengths.bucket_kernels import cropped, is_bucket, padded
from caesura.lengths.input_lengths import checked_inputs
from caesura.lengths.kernel_source import source_of
from caesura.lengths.loaded_kernels import Kernel, LoadedKernels
from caesura.lengths.operation_demands import OPERATORS, OperationDemands, OperationStep
from caesura.lengths.operation_stretches import OperationStretch, stretches_of
from compiler import CompileError, Options, golden, import_model, reference
from hw.image import Image, KernelArchive, RangeImage, attributes_of
from sw.driver import JobResult, LinkedModel, OutOfEvents, OutOfMemory
from sw.kernels import KernelLibrary, LibraryKernel, NoKernelError, kernel_name
from sw.runtime import Runtime

_MOST_PLANS = 64  #: of programs that are remembered


@dataclass(frozen=True)
class ServedOperation:
    """Says how an operation was served in an inference. ``how``: by a kernel of ``exact`` its length, by one for a
    ``range``, or by the ``cpu``; ``kernel``: what it covers, as attributes write it; ``cycles``: from the end of the
    operation before to the end of its jobs, None on the CPU. ``through_host``: why the host carried what it reads of
    operations before it; empty if that stayed on the device."""

    name: str
    operator: str
    how: str
    kernel: int | str | None = None
    cycles: int | None = None
    through_host: str = ""


class OperationModel:
    """Is a model on a device that runs each operation by the kernel of a library that fits its length. It compiles
    nothing. ``caesura.by_operation`` makes it; it is a context manager: at its end its kernels are unloaded.

    Kernels of operations that follow each other are linked to a program, which is queued at once, and in which tensors
    stay in DRAM; where that cannot be, the host carries them. ``kernel_library``: its kernels, also those added later.
    ``last``: how operations were served in the last inference; ``served``: how many were served how.
    """

    def __init__(
        self, operations: OperationDemands, device: Device, *, fallback: bool = False, most_loaded: int = 16,
        tenant: str | None = None, engines: Sequence[int] | None = None,
    ) -> None:  # fmt: skip
        self.operations, self.dimension, self.fallback = operations, operations.dimension, fallback
        self.kernel_library: KernelLibrary[Image | RangeImage] = KernelLibrary()
        self.kernels = LoadedKernels(device, most_loaded, tenant, engines)
        self.served: Counter[str] = Counter()
        self._plans: dict[tuple, list[OperationStretch]] = {}  #: by kernels, and by length where these are relocated
        self.last: list[ServedOperation] = []

    def add_kernels(self, path: str | PathLike) -> None:
        """Add the kernels of a library (``.ckl``). Those of other models are for other operations, and match none.
        Raises ``ImageError`` for a file that is damaged."""
        archive = KernelArchive.load(Path(path))
        told = map(attributes_of, archive.kernels)
        made = zip(told, archive.kernels, strict=True)
        name = self.dimension.model
        self.kernel_library.add(
            *(LibraryKernel(kernel_name(each.class_1, name), each, kernel) for each, kernel in made)
        )

    def match(self, length: int) -> dict[str, Kernel | None]:
        """Return the kernel of each operation that is marked, in order, for one inference of this length; None for one
        that the CPU computes. Raises ``NoKernelError``, naming the nearest, unless ``fallback`` allows the CPU."""
        label = self.dimension.label
        chosen = self.kernel_library.match_all(self.operations.demands, {label: length}, fallback=self.fallback)
        for demand in self.operations.demands:
            kernel = chosen[demand.operation]
            if kernel is not None and isinstance(kernel.content, RangeImage) and length not in kernel.content:
                if not self.fallback:
                    near = sorted(kernel.content.lengths, key=lambda each: abs(each - length))[:2]
                    told = " and ".join(map(str, sorted(near)))
                    raise NoKernelError(
                        demand, length, [kernel], f"{kernel} was built in steps; the nearest are {told}"
                    )
                chosen[demand.operation] = None
        return chosen

    def run(self, inputs: Inputs) -> Arrays:
        """Run one inference; return outputs by name. Raises ``InputError``, ``NoKernelError``, and what the device
        does."""
        inference = self.begin(inputs)
        while (part := inference.next_part()) is not None:
            model, given = part
            outputs, stats = model.run(given)
            inference.take(outputs, stats.jobs, stats.begin)
        return inference.outputs

    async def submit(self, runtime: Runtime, inputs: Inputs, *, arrival: int = 0, **how: Any) -> Arrays:
        """Run one inference among the requests of ``runtime``: each operation, or program of several, is one, as
        ``how`` says, so that others are scheduled beside them and suspend them. Returns and raises as :meth:`run` does,
        and what requests raise."""
        inference = self.begin(inputs)
        while (part := inference.next_part()) is not None:
            request = runtime.submit(*part, arrival=arrival, **how)
            outputs = await request
            assert request.started is not None
            inference.take(outputs, request.results, request.started)
            arrival = 0
        return inference.outputs

    def begin(self, inputs: Inputs) -> "OperationInference":
        """Return an inference that begins, for whoever runs its parts. Raises ``InputError`` and ``NoKernelError``."""
        values, length = checked_inputs(self.dimension, inputs)
        return OperationInference(self, values, length, self._stretches(length))

    def _stretches(self, length: int) -> Iterator[tuple[OperationStretch, Model | None]]:
        """Yield what runs one behind the other for this length, with the loaded model that runs it: None for what the
        CPU computes. Where not all kernels of a program have room, each of its operations runs alone."""
        for stretch in self._planned(length):
            parts = [(kernel, length) for kernel in stretch.kernels if kernel is not None]
            alone = [stretch]
            if stretch.plan is not None:
                try:
                    yield stretch, self.kernels.program(parts, stretch.plan)
                    continue
                except (OutOfMemory, OutOfEvents) as error:
                    alone = stretch.alone(f"not all kernels have room on the device at once: {error}")
            for one in alone:
                (kernel,) = one.kernels
                yield one, None if kernel is None else self.kernels.model(kernel, length)

    def _planned(self, length: int) -> list[OperationStretch]:
        chosen = self.match(length)
        ranges = any(kernel is not None and isinstance(kernel.content, RangeImage) for kernel in chosen.values())
        key = (length if ranges else 0, *chosen.values())
        if key not in self._plans:
            results = [value.name for value in self.dimension.proto.graph.output]
            self._plans[key] = stretches_of(
                self.operations.steps, chosen, results, lambda kernel: self.kernels.image(kernel, length),
                self.dimension.model,
            )  # fmt: skip
            while len(self._plans) > _MOST_PLANS:
                del self._plans[next(iter(self._plans))]
        return self._plans[key]

    def close(self) -> None:
        """Unload all its kernels."""
        self.kernels.close()

    def __enter__(self) -> "OperationModel":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ended(self, told: list[ServedOperation]) -> None:
        """Count how the operations of an inference were served."""
        self.last = told
        self.served.update(each.how for each in told)


class OperationInference:
    """Is one inference, part by part: what :meth:`next_part` gives is run on the device, and :meth:`take` takes what
    that gave. What the CPU computes in between is computed by then."""

    def __init__(
        self, model: OperationModel, values: Arrays, length: int,
        stretches: Iterator[tuple[OperationStretch, Model | None]],
    ) -> None:  # fmt: skip
        self._model, self._values, self._length, self._stretches = model, values, length, stretches
        self._told: list[ServedOperation] = []
        self._begun: tuple[OperationStretch, Model] | None = None
        self.outputs: Arrays = {}  #: by name, when there is no further part

    def next_part(self) -> tuple[Model, Arrays] | None:
        """Return the loaded model that runs next, and what it is given; None when all operations are done."""
        for stretch, model in self._stretches:
            if model is not None:
                self._begun = stretch, model
                return model, _given(stretch, self._length, self._values)
            self._told.append(_compute(stretch, self._length, self._values))
        self._model.ended(self._told)
        self.outputs = {value.name: self._values[value.name] for value in self._model.dimension.proto.graph.output}
        return None

    def take(self, outputs: Arrays, jobs: Sequence[JobResult], begin: int) -> None:
        """Take the outputs of the part that ran last, and its jobs, from cycle ``begin`` on."""
        assert self._begun is not None
        stretch, model = self._begun
        self._told += _taken(stretch, model, outputs, self._length, self._values, jobs, begin)


def _given(stretch: OperationStretch, length: int, values: Arrays) -> Arrays:
    """Return what a kernel, or a program, is given by the host."""
    if stretch.plan is None:
        (step,), (kernel,) = stretch.steps, stretch.kernels
        assert kernel is not None
        return _fitted(step, kernel, {own: values[name] for own, name in step.operation.inputs.items()}, length)
    given = {}
    for port in stretch.plan.inputs:
        step, kernel = stretch.steps[port.place], stretch.kernels[port.place]
        assert kernel is not None
        own = {port.port: values[port.name]} if port.name in values else {}
        given[port.name] = _fitted(step, kernel, own, length)[port.port]
    return given


def _fitted(step: OperationStep, kernel: Kernel, given: Arrays, length: int) -> Arrays:
    return padded(step.operation, kernel, given, length) if is_bucket(kernel) else given


def _taken(
    stretch: OperationStretch,
    model: Model,
    outputs: Arrays,
    length: int,
    values: Arrays,
    jobs: Sequence[JobResult],
    begin: int,
) -> list[ServedOperation]:
    """Keep what a kernel, or a program, gave; return how its operations were served."""
    made = [
        (0, own, name) for own, name in stretch.steps[0].operation.outputs.items()
    ] if stretch.plan is None else [(port.place, port.port, port.name) for port in stretch.plan.outputs]  # fmt: skip
    for place, own, name in made:
        step, kernel = stretch.steps[place], stretch.kernels[place]
        assert kernel is not None
        value = {own: outputs[own if stretch.plan is None else name]}
        values[name] = (cropped(step.operation, value, length) if is_bucket(kernel) else value)[own]
    loaded, ends = model.loaded, dict[int | None, int]()
    for job in jobs:
        at = loaded.place_of(job.job) if isinstance(loaded, LinkedModel) else 0
        ends[at] = max(ends.get(at, 0), job.end)
    told = []
    for place, (step, kernel) in enumerate(zip(stretch.steps, stretch.kernels, strict=True)):
        end = ends.get(place, begin)
        told.append(_served(step, kernel, end - begin, "" if place else stretch.why))
        begin = end
    return told


def _compute(stretch: OperationStretch, length: int, values: Arrays) -> ServedOperation:
    """Compute an operation on the CPU, and keep what it gives."""
    (step,) = stretch.steps
    outputs = _on_cpu(step, length, {own: values[name] for own, name in step.operation.inputs.items()})
    values.update({name: outputs[own] for own, name in step.operation.outputs.items()})
    return _served(step, None, None, stretch.why)


def _on_cpu(step: OperationStep, length: int, given: Arrays) -> Arrays:
    """Return what an operation gives: bit for bit what a kernel gives, where one could be compiled."""
    model = step.source.dimension.fixed(length)
    try:
        return reference.run(import_model(model, fallback=True), given)
    except CompileError:  # of one that only moves
        return golden.golden_outputs(model, given)


def _served(step: OperationStep, kernel: Kernel | None, cycles: int | None, why: str) -> ServedOperation:
    name, operator = step.operation.name, step.operation.operator
    if kernel is None:
        return ServedOperation(name, operator, "cpu", through_host=why)
    covered = kernel.attributes.covered
    how = "exact" if covered.exact else "range"
    return ServedOperation(name, operator, how, covered.written(), cycles, why)


def is_of_operations(path: str | PathLike) -> bool:
    """Return whether the kernels of a library are for operations, not for a whole model. Raises ``ImageError``."""
    kernels = KernelArchive.load(Path(path)).kernels
    return any("operator" in attributes_of(kernel).class_1 for kernel in kernels)


def by_operation(
    path: str | PathLike,
    device: Device,
    *,
    kernels: str | PathLike | None = None,
    operators: Sequence[str] = OPERATORS,
    dimension: str | None = None,
    most_loaded: int = 16,
    engines: int | Sequence[int] | None = None,
    fallback: bool = False,
    options: Options | None = None,
    tenant: str | None = None,
) -> OperationModel:
    """Return the ONNX model ``path``, which has a dynamic dimension, on ``device`` as operations, each of which asks
    for a kernel of its own in each inference.

    Parameters
    ----------
    kernels : a library that ``caesura kernels build --operations`` wrote (``.ckl``)
    operators : of operations that are accelerated, ``attention`` and ``layers``; others are left to the CPU
    fallback : the CPU computes operations for which the library has no kernel
    dimension, most_loaded, engines, options, tenant : as for ``caesura.dynamic``

    Raises ``CompileError`` for a model that cannot be cut into operations, ``ImageError`` for a damaged library.
    """
    listed = None if engines is None or isinstance(engines, int) else tuple(engines)
    number = engines if isinstance(engines, int) else len(listed or range(device.params.engines))
    source = source_of(
        path, device.params, dimension=dimension, engines=number, fallback=fallback, options=options, cache=False
    )
    model = OperationModel(
        OperationDemands(source, operators), device, fallback=fallback, most_loaded=most_loaded, tenant=tenant,
        engines=listed,
    )  # fmt: skip
    if kernels is not None:
        model.add_kernels(kernels)
    return model
