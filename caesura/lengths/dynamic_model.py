"""Serves a model with a dynamic dimension as one model: for each call a kernel is matched (**Run-time kernel
matching**)."""

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy.typing as npt

from caesura.api import Arrays, Device, Inputs, Model, UsageError
from caesura.lengths.input_lengths import sized_inputs
from caesura.lengths.kernel_source import ExactPadding, KernelSource, source_of
from caesura.lengths.loaded_kernels import Kernel, LoadedKernels
from compiler import CompileError, Options, Told
from hw.image import LARGEST, Image, ImageError, KernelArchive, RangeImage, attributes_of
from sw.driver import LoadedModel
from sw.kernels import KernelLibrary, LibraryKernel, OnDemandKernels
from sw.runtime import InputError, RunStats

LADDER = (32, 64, 96, 128, 192, 256, 384)  #: lengths of prior practice
_NAMED = 3  #: kernels that an error names


@dataclass(frozen=True)
class ServedCall:
    """Says how a call was served. ``exact``: by a kernel for its length that was there; ``range``: by one for a range;
    ``ladder``: padded, by one for ``kernel_length``; ``compiled``: by one that it waited for; ``file``: by one that was
    read from the cache folder."""

    length: int
    kernel_length: int
    how: str


class DynamicModel:
    """Is a model on a device that takes inputs of any length in ``lengths``, and is called as a loaded model is.
    ``caesura.dynamic`` makes it. It is a context manager: at its end its kernels are unloaded.

    ``kernel_library``: its kernels; what is added there is used from the next call on, if it fits ``demand``.
    ``served``: how many calls were served how; ``last``: how the last one was.
    """

    def __init__(
        self,
        source: KernelSource,
        device: Device,
        lengths: range,
        ladder: Sequence[int] = (),
        *,
        background: bool = False,
        most_loaded: int = 16,
        tenant: str | None = None,
        engines: Sequence[int] | None = None,
    ) -> None:
        self.dimension, self.lengths = source.dimension, _checked(lengths)
        self.kernel_library: KernelLibrary[Image | RangeImage] = KernelLibrary()
        self.served: Counter[str] = Counter()
        self.last: ServedCall | None = None
        self.kernels = LoadedKernels(device, most_loaded, tenant, engines)
        self._source, self.demand = source, source.demand()
        self._ladder = sorted(rung for rung in set(ladder) if rung in self.lengths)
        self._background = background
        self._padding = ExactPadding(source)
        self._makers = OnDemandKernels(self.kernel_library, source.make)
        self._stats: RunStats | None = None
        self._at: dict[int, Kernel] = {}  #: by length, what stays loaded

    def __call__(self, inputs: Inputs) -> npt.NDArray | Arrays:
        """Run one inference as ``Model`` does. Raises ``InputError`` for a length outside of the range too, and
        ``CompileError`` if there is no kernel for it and none can be compiled."""
        outputs, _ = self.run(inputs)
        return next(iter(outputs.values())) if len(outputs) == 1 else outputs

    def run(self, inputs: Inputs) -> tuple[Arrays, RunStats]:
        """Run one inference as a call does, but always return outputs by name, with the statistics."""
        given, length = self._read(inputs)
        kernel, served = self._match(length)
        if served.kernel_length > length:
            given = self._padding.padded(given, served.kernel_length - length)
        outputs, self._stats = self.kernels.model(kernel, served.kernel_length).run(given)
        if served.kernel_length > length:
            outputs = self._padding.cropped(outputs, length)
        self.served[served.how] += 1
        self.last = served
        return outputs, self._stats

    @property
    def stats(self) -> RunStats | None:
        """Return cycles and counters of the last inference, or None before the first."""
        return self._stats

    def prepare(self, *lengths: int) -> None:
        """Have kernels for exactly these lengths, so that no call waits for them. Errors as those of calls."""
        for length in lengths:
            self._check(length)
        made = {length: self._makers.want(self.demand, length) for length in lengths}
        for length, future in made.items():
            self._result(length, future)

    def prepare_range(self, lengths: range | None = None, told: Told | None = None) -> None:
        """Have a range kernel for ``lengths``, all by default, so that no call waits for a kernel. It serves those that
        have no exact one; with ``background`` an exact one is made for the next call. ``told`` hears of each length
        that was compiled, and whether it took decisions of its own. Errors as those of calls."""
        covered = self.lengths if lengths is None else _checked(lengths)
        for length in covered:
            self._check(length)
        if len(covered) == 1:
            self.prepare(covered[0])
            return
        if any(sorted(covered) == _lengths_of(kernel) for kernel in self.kernel_library.candidates(self.demand)):
            return
        try:
            made = self._source.make_range(self.demand, covered, told)
        except CompileError as error:
            raise CompileError(f"model {self.dimension.model!r} has no range kernel: {error}") from error
        self.kernel_library.add(made)

    def add_kernels(self, path: str | PathLike) -> None:
        """Add the kernels of a library (``.ckl``), which calls find from now on. Raises ``ImageError`` for a file that
        is damaged, and for one whose kernels are of another model, or for other hardware."""
        archive = KernelArchive.load(Path(path))
        made = [LibraryKernel(self.dimension.model, attributes_of(kernel), kernel) for kernel in archive.kernels]
        for kernel in made:
            if kernel.attributes.class_1 != self.demand.class_1:
                theirs, mine = kernel.attributes.class_1, self.demand.class_1
                what = next(name for name in (*mine, *theirs) if mine.get(name) != theirs.get(name))
                raise ImageError(
                    f"{path}: its kernels are for {what} {theirs.get(what)!r}, and model {self.dimension.model!r} here "
                    f"has {mine.get(what)!r}: build a library of this model for this machine"
                )
        self.kernel_library.add(*made)

    def at(self, length: int) -> Model:
        """Return the loaded model for exactly ``length``, which stays loaded until :meth:`release`: to be scheduled and
        preempted as any other."""
        kernel = self._at.setdefault(length, self._exact(length))
        self.kernels.keep(kernel, length)
        return self.kernels.model(kernel, length)

    def release(self, length: int) -> None:
        """Allow that what :meth:`at` gave for ``length`` is unloaded where others need its room."""
        self._check(length)
        kernel = self._at.pop(length, None)
        if kernel is not None:
            self.kernels.release(kernel, length)

    def loaded_for(self, inputs: Inputs) -> LoadedModel:
        """Return the loaded model for exactly the length of ``inputs``: what ``Runtime.submit`` asks for. It stays
        loaded as long as requests for it have not ended."""
        length = self._read(inputs)[1]
        return self.kernels.model(self._exact(length), length).loaded

    def _exact(self, length: int) -> Kernel:
        self._check(length)
        kernel = self._found(length)
        return self._result(length, self._makers.want(self.demand, length)) if kernel is None else kernel

    def padding_problem(self, length: int, longer: int) -> str | None:
        """Return why a kernel for ``longer`` cannot serve ``length``, or None if it can."""
        for each in (length, longer):
            self._check(each)
        return self._padding.problem(length, longer)

    def close(self) -> None:
        """Unload all its kernels, and compile no more."""
        self._makers.close()
        self.kernels.close()

    def __enter__(self) -> "DynamicModel":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- the choice ------------------------------------------------------------------------------------------
    def _match(self, length: int) -> tuple[Kernel, ServedCall]:
        found = self._found(length)
        if found is not None:
            exact = found.attributes.covered.exact
            if self._background and not exact:
                self._makers.want(self.demand, length)
            return found, ServedCall(length, length, "exact" if exact else "range")
        rung = next((rung for rung in self._ladder if rung > length), None)
        if rung is None or self._proved(length, rung) is not None:
            kernel = self._result(length, self._makers.want(self.demand, length))
            return kernel, ServedCall(length, length, "file" if length in self._source.from_files else "compiled")
        longer = self.kernel_library.find(self.demand, rung)
        if longer is None:
            longer = self._result(rung, self._makers.want(self.demand, rung))
        if self._background:
            self._makers.want(self.demand, length)
        return longer, ServedCall(length, rung, "ladder")

    def _found(self, length: int) -> Kernel | None:
        """Return the kernel that the library has for ``length``; None for a length that a range kernel leaves out."""
        found = self.kernel_library.find(self.demand, length)
        left_out = found is not None and isinstance(found.content, RangeImage) and length not in found.content
        return None if left_out else found

    def _proved(self, length: int, rung: int) -> str | None:
        try:
            return self._padding.problem(length, rung)
        except CompileError as error:
            raise self._no_kernel(length, error) from error

    def _result(self, length: int, future: "Future[Kernel]") -> Kernel:
        try:
            return future.result()
        except CompileError as error:
            raise self._no_kernel(length, error) from error

    def _no_kernel(self, length: int, error: CompileError) -> CompileError:
        return CompileError(f"{self._told(length)}, and none can be compiled for it: {error}")

    def _told(self, length: int) -> str:
        """Return as text the length, the range, and the kernels that come nearest."""
        low, high = _ends(self.lengths)
        step = f" in steps of {abs(self.lengths.step)}" if abs(self.lengths.step) > 1 else ""
        covered = (kernel.attributes.covered for kernel in self.kernel_library.candidates(self.demand))
        near = sorted(covered, key=lambda each: each.distance(length) if length > 0 else each.low)[:_NAMED]
        kernels = ", ".join(str(each.written()) for each in near) or "none so far"
        return (
            f"model {self.dimension.model!r}: length {length} of dimension {self.dimension.label!r} "
            f"(range {low} to {high}{step}; nearest kernels: {kernels})"
        )

    # -- inputs ----------------------------------------------------------------------------------------------
    def _read(self, inputs: Inputs) -> tuple[Arrays, int]:
        """Return inputs by name, and their length."""
        arrays, length = sized_inputs(self.dimension, inputs)
        self._check(length)
        return arrays, length

    def _check(self, length: int) -> None:
        if isinstance(length, bool) or not isinstance(length, int) or length not in self.lengths:
            raise InputError(f"{self._told(length) if isinstance(length, int) else repr(length)} is not in the range")


def _lengths_of(kernel: Kernel) -> list[int]:
    """Return the lengths of a range kernel; another kernel has none."""
    return kernel.content.lengths if isinstance(kernel.content, RangeImage) else []


def _ends(lengths: range) -> tuple[int, int]:
    return min(lengths[0], lengths[-1]), max(lengths[0], lengths[-1])


def _checked(lengths: range) -> range:
    if not isinstance(lengths, range) or not lengths or not all(1 <= end <= LARGEST for end in _ends(lengths)):
        raise UsageError(
            f"lengths must be a range of numbers from 1 to {LARGEST}, such as range(1, 385), not {lengths!r}"
        )
    return lengths


def dynamic(
    path: str | PathLike,
    device: Device,
    lengths: range,
    *,
    dimension: str | None = None,
    ladder: Sequence[int] = LADDER,
    background: bool = False,
    most_loaded: int = 16,
    engines: int | Sequence[int] | None = None,
    fallback: bool = False,
    options: Options | None = None,
    cache: bool = True,
    tenant: str | None = None,
    kernels: str | PathLike | None = None,
) -> DynamicModel:
    """Return the ONNX model ``path``, which has a dynamic dimension, as one model on ``device`` for all of ``lengths``.

    Parameters
    ----------
    dimension : name of the dynamic dimension, if several inputs' dimensions behind the first are dynamic
    ladder : lengths whose kernels serve the shorter ones, padded, where that is exact; empty: no input is padded
    background : a length that was served so gets a kernel of its own, in the background, for the next call
    most_loaded : kernels that are in device memory at a time
    engines : how many share each layer, the first of the device, or the numbers of those that do
    fallback, options, cache : as for ``caesura.compile``; unless options say less, kernels have all of LV2
    tenant : as for ``Device.load``
    kernels : a library that ``caesura kernels build`` wrote (``.ckl``), whose kernels are there from the beginning

    Raises ``CompileError`` for a model that cannot be read or has no such dimension, ``UsageError`` for lengths that
    are none. Kernels are compiled when a call, or ``DynamicModel.prepare``, asks for them.
    """
    listed = None if engines is None or isinstance(engines, int) else tuple(engines)
    number = engines if isinstance(engines, int) else len(listed or range(device.params.engines))
    source = source_of(
        path, device.params, dimension=dimension, engines=number, fallback=fallback, options=options, cache=cache
    )
    model = DynamicModel(
        source, device, lengths, ladder, background=background, most_loaded=most_loaded, tenant=tenant, engines=listed
    )
    if kernels is not None:
        model.add_kernels(kernels)
    return model
