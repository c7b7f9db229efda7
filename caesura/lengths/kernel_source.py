"""Gets the kernels of a model with a dynamic dimension from the cache folder, or from the compiler, and knows which
lengths one for a longer length serves."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import onnx

from caesura.lengths.kernel_files import KernelFiles
from caesura.samples import Sample
from compiler import (
    DynamicDimension,
    Graph,
    ObjectStore,
    Options,
    Told,
    compile_model,
    compile_range,
    compiler_digest,
    import_model,
    padding_problem,
)
from hw.contract.params import SocParams
from hw.image import Image, KernelAttributes, RangeImage, ValueRange
from sim import cache_dir
from sw.kernels import KernelDemand, LibraryKernel


@dataclass(eq=False)
class KernelSource:
    """Makes kernels of a model for hardware with ``params``. ``cache``: kernels, and layers of them, are taken from the
    cache folder and kept there. ``from_files``: lengths whose kernels were found there."""

    dimension: DynamicDimension
    params: SocParams
    options: Options
    fallback: bool = False
    cache: bool = True
    from_files: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        told = (self.params.digest(), repr(self.options), str(self.fallback), self.dimension.label, compiler_digest())
        digest = hashlib.sha256(self.dimension.proto.SerializeToString(deterministic=True))
        digest.update("\0".join((onnx.__version__, *told)).encode())
        self._origin = digest.hexdigest()
        self._weights: dict[bytes, bytes] = {}  #: equal ones are held once
        self._files = KernelFiles(cache_dir() / "kernels") if self.cache else None

    def demand(self) -> KernelDemand:
        """Return what calls of the model ask for, all but the length."""
        class_1 = {"model": self._origin[:32], "hardware": self.params.digest()}
        return KernelDemand(self.dimension.model, class_1, "length", self.dimension.label)

    def make(self, demand: KernelDemand, length: int) -> LibraryKernel[Image | RangeImage]:
        """Return the kernel for one length. Raises ``CompileError``."""
        name = self.dimension.model
        attributes = KernelAttributes.of(demand.class_1, demand.parameter, length)
        image = self._files.find(self._origin, attributes) if self._files else None
        if image is not None:
            self.from_files.add(length)
        else:
            image = compile_model(
                self.dimension.fixed(length), self.params, fallback=self.fallback, name=name, options=self.options,
                jobs=1, cache=self.cache,
            )  # fmt: skip
            image.meta.kernel_attributes = attributes.to_dict()
            if self._files:
                self._files.keep(self._origin, image)
        image.weights = self._weights.setdefault(image.weights, image.weights)
        return LibraryKernel(name, attributes, image)

    def make_range(
        self, demand: KernelDemand, lengths: range, told: Told | None = None
    ) -> LibraryKernel[Image | RangeImage]:
        """Return the range kernel for ``lengths``, which are more than one. Raises ``CompileError``."""
        name, covered = self.dimension.model, ValueRange(min(lengths), max(lengths))
        attributes = KernelAttributes.of(demand.class_1, demand.parameter, covered)
        made = self._files.find_range(self._origin, attributes, lengths) if self._files else None
        if made is None:
            made = compile_range(
                self.dimension, self.params, lengths, attributes, self.options, fallback=self.fallback,
                store=ObjectStore() if self.cache else None, told=told,
            )  # fmt: skip
            if self._files:
                self._files.keep_range(self._origin, made)
        return LibraryKernel(name, attributes, made)

    def graph(self, length: int) -> Graph:
        """Return the model for one length as the compiler sees it. Raises ``CompileError``."""
        return import_model(self.dimension.fixed(length), fallback=self.fallback, name=self.dimension.model)


class ExactPadding:
    """Knows of one model which lengths may be padded to which, and how. Each pair of lengths is proved once."""

    def __init__(self, source: KernelSource) -> None:
        self._source = source
        self._problems: dict[tuple[int, int], str | None] = {}
        self._outputs: dict[int, dict[str, tuple[int, ...]]] = {}

    def problem(self, length: int, longer: int) -> str | None:
        """Return why results for ``length`` are not the beginning of those for ``longer``, or None if they are."""
        if (length, longer) not in self._problems:
            short = self._source.graph(length)
            self._problems[length, longer] = padding_problem(short, self._source.graph(longer))
            self._outputs[length] = {port.name: tuple(port.shape) for port in short.outputs}
        return self._problems[length, longer]

    def padded(self, inputs: Mapping[str, npt.NDArray], count: int) -> Sample:
        """Return the inputs with ``count`` zeros behind the end."""
        padded = dict(inputs)
        for name, axis in self._source.dimension.axes:
            pads = [(0, count if each == axis else 0) for each in range(padded[name].ndim)]
            padded[name] = np.pad(padded[name], pads)
        return padded

    def cropped(self, outputs: Sample, length: int) -> Sample:
        """Return the beginning of outputs that belongs to ``length``, of which :meth:`problem` was asked before."""
        shapes = self._outputs[length]
        return {name: value[tuple(slice(size) for size in shapes[name])].copy() for name, value in outputs.items()}
