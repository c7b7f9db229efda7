"""Runs a model with a dynamic dimension operation by operation: in each inference a kernel is matched for each
(**Run-time kernel matching**)."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

from caesura.api import Arrays, Device, Inputs
from caesura.lengths.bucket_kernels import cropped, is_bucket, padded
from caesura.lengths.input_lengths import checked_inputs
from caesura.lengths.kernel_source import KernelSource, source_of
from caesura.lengths.loaded_kernels import Kernel, LoadedKernels
from compiler import CompileError, ModelOperation, Options, golden, import_model, operations_of, reference
from hw.image import Image, KernelArchive, RangeImage, attributes_of
from sw.kernels import (
    KernelDemand,
    KernelLibrary,
    KernelOperation,
    LibraryKernel,
    NoKernelError,
    Parameter,
    Quotient,
    demands_of,
    kernel_name,
)
from sw.runtime import Runtime

OPERATORS = ("attention", "layers")  #: of operations that may be accelerated


@dataclass(frozen=True)
class ServedOperation:
    """Says how an operation was served in an inference. ``how``: by a kernel of ``exact`` its length, by one for a
    ``range``, or by the ``cpu``; ``kernel``: what it covers, as attributes write it; ``cycles``: until its results
    were there, None on the CPU."""

    name: str
    operator: str
    how: str
    kernel: int | str | None = None
    cycles: int | None = None


@dataclass(frozen=True)
class _Step:
    """Is an operation with what makes kernels for it, and what it asks for; None: it is left alone."""

    operation: ModelOperation
    source: KernelSource
    demand: KernelDemand | None


class OperationDemands:
    """Is a model as operations. ``demands``: what those ask for that are marked for acceleration, in order: those of
    ``operators``. ``description``: of the model, where demands come from."""

    def __init__(self, source: KernelSource, operators: Sequence[str] = OPERATORS) -> None:
        self.dimension = source.dimension
        found = operations_of(source.dimension)
        sources = [replace(source, dimension=each.dimension) for each in found]
        self.description = {f"{each.name}.{size}": value for each in found for size, value in each.sizes.items()}
        asked = [_asking(each, made, operators) for each, made in zip(found, sources, strict=True)]
        demands = {demand.operation: demand for demand in demands_of(asked, self.description)}
        self.steps = [_Step(each, made, demands.get(each.name)) for each, made in zip(found, sources, strict=True)]
        self.demands = list(demands.values())

    def different(self) -> list[tuple[KernelDemand, KernelSource, ModelOperation]]:
        """Return each demand once, with what makes kernels for it, and an operation that asks: equal ones share
        theirs."""
        found = {
            step.demand.key: (step.demand, step.source, step.operation)
            for step in self.steps
            if step.demand is not None
        }
        return list(found.values())


def _asking(operation: ModelOperation, source: KernelSource, operators: Sequence[str]) -> KernelOperation:
    name, class_1 = operation.name, dict[str, Any](operator=operation.operator)
    if operation.sizes:
        heads, width = f"{name}.heads", f"{name}.width"
        class_1 |= {"heads": Parameter(heads), "head_size": Quotient(width, heads)}
    class_1 |= source.demand().class_1
    return KernelOperation(name, class_1, ("length", source.dimension.label), operation.operator in operators)


class OperationModel:
    """Is a model on a device that runs each operation by the kernel of a library that fits its length. It compiles
    nothing. ``caesura.by_operation`` makes it; it is a context manager: at its end its kernels are unloaded.

    Results of an operation go to the next through the host. ``kernel_library``: its kernels, also those added later.
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
        values, length = checked_inputs(self.dimension, inputs)
        chosen, told = self.match(length), list[ServedOperation]()
        for step in self.operations.steps:
            kernel = chosen.get(step.operation.name)
            given = _given(step, values)
            if kernel is None:
                outputs, cycles = _on_cpu(step, length, given), None
            else:
                outputs, stats = self.kernels.model(kernel, length).run(_fitted(step, kernel, given, length))
                outputs, cycles = _taken(step, kernel, outputs, length), stats.latency
            _put(step, outputs, values)
            told.append(_served(step, kernel, cycles))
        return self._ended(told, values)

    async def submit(self, runtime: Runtime, inputs: Inputs, *, arrival: int = 0, **how: Any) -> Arrays:
        """Run one inference among the requests of ``runtime``: each operation is one, as ``how`` says, so that others
        are scheduled between them and suspend them. Returns and raises as :meth:`run` does, and what requests raise."""
        values, length = checked_inputs(self.dimension, inputs)
        chosen, told = self.match(length), list[ServedOperation]()
        for step in self.operations.steps:
            kernel = chosen.get(step.operation.name)
            given = _given(step, values)
            if kernel is None:
                outputs, cycles = _on_cpu(step, length, given), None
            else:
                fitted = _fitted(step, kernel, given, length)
                request = runtime.submit(self.kernels.model(kernel, length), fitted, arrival=arrival, **how)
                outputs = _taken(step, kernel, await request, length)
                assert request.ended is not None and request.started is not None
                cycles, arrival = request.ended - request.started, 0
            _put(step, outputs, values)
            told.append(_served(step, kernel, cycles))
        return self._ended(told, values)

    def close(self) -> None:
        """Unload all its kernels."""
        self.kernels.close()

    def __enter__(self) -> "OperationModel":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ended(self, told: list[ServedOperation], values: Arrays) -> Arrays:
        self.last = told
        self.served.update(each.how for each in told)
        return {value.name: values[value.name] for value in self.dimension.proto.graph.output}


def _given(step: _Step, values: Arrays) -> Arrays:
    return {own: values[name] for own, name in step.operation.inputs.items()}


def _fitted(step: _Step, kernel: Kernel, given: Arrays, length: int) -> Arrays:
    return padded(step.operation, kernel, given, length) if is_bucket(kernel) else given


def _taken(step: _Step, kernel: Kernel, outputs: Arrays, length: int) -> Arrays:
    return cropped(step.operation, outputs, length) if is_bucket(kernel) else outputs


def _put(step: _Step, outputs: Arrays, values: Arrays) -> None:
    values.update({name: outputs[own] for own, name in step.operation.outputs.items()})


def _on_cpu(step: _Step, length: int, given: Arrays) -> Arrays:
    """Return what an operation gives: bit for bit what a kernel gives, where one could be compiled."""
    model = step.source.dimension.fixed(length)
    try:
        return reference.run(import_model(model, fallback=True), given)
    except CompileError:  # of one that only moves
        return golden.golden_outputs(model, given)


def _served(step: _Step, kernel: Kernel | None, cycles: int | None) -> ServedOperation:
    name, operator = step.operation.name, step.operation.operator
    if kernel is None:
        return ServedOperation(name, operator, "cpu")
    covered = kernel.attributes.covered
    return ServedOperation(name, operator, "exact" if covered.exact else "range", covered.written(), cycles)


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
