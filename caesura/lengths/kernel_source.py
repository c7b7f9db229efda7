"""Gets the kernels of a model with a dynamic dimension from the cache folder, or from the compiler.

Each kernel is an image file of its own on disk. It is known, too, which lengths one for a longer length serves.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import onnx

from caesura.samples import Sample
from compiler import (
    ALL_LV2,
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
from hw.image import Image, ImageError, KernelAttributes, RangeImage, ValueRange, attributes_of
from sim import BoundedFolder, cache_dir
from sw.kernels import KernelDemand, LibraryKernel

_SUFFIX, _RANGE_SUFFIX = ".cimg", ".crng"
_Kernel = TypeVar("_Kernel", Image, RangeImage)


def read_kernels(folder: Path) -> list[Image]:
    """Return all kernels of ``folder``, by file name. Raises ``ImageError`` for a file that is damaged or no kernel,
    and names it."""
    images = []
    for path in sorted(folder.glob(f"*{_SUFFIX}")):
        image = Image.load(path)
        if not image.meta.kernel_attributes:
            raise ImageError(f"{path}: the image is no kernel: it has no kernel_attributes; remove it from the folder")
        images.append(image)
    return images


@dataclass
class DynamicPort:
    """Is an input of a model with a dynamic dimension; open sizes are 1."""

    name: str
    shape: list[int]


def dynamic_ports(dimension: DynamicDimension) -> list[DynamicPort]:
    """Return the inputs of a model with a dynamic dimension."""
    return [
        DynamicPort(value.name, [size.dim_value or 1 for size in value.type.tensor_type.shape.dim])
        for value in dimension.proto.graph.input
        if value.name in dimension.inputs
    ]


class KernelFiles:
    """Keeps kernels in ``folder``, of ``most`` bytes together: those not used for longest go first. Files are checked
    when read; a damaged one is removed, so that it is made again."""

    def __init__(self, folder: Path, most: int = 512 << 20) -> None:
        self._files = BoundedFolder(folder, most)

    @property
    def folder(self) -> Path:
        """Return the folder in which the kernels are."""
        return self._files.path

    def find(self, origin: str, attributes: KernelAttributes) -> Image | None:
        """Return the kernel with these attributes that was made from ``origin`` (all that it depends on, as text)."""
        told = attributes.to_dict()
        return self._kept(_name(origin, attributes), Image.from_bytes, lambda one: one.meta.kernel_attributes == told)

    def find_range(self, origin: str, attributes: KernelAttributes, lengths: range) -> RangeImage | None:
        """Return the range kernel with these attributes and ``lengths`` that was made from ``origin``."""
        name = _name(origin, attributes, _RANGE_SUFFIX)
        found = self._kept(name, RangeImage.from_bytes, lambda one: one.attributes == attributes)
        return None if found is None or found.lengths != sorted(lengths) else found  # they may have another step

    def keep_range(self, origin: str, image: RangeImage) -> None:
        """Keep a range kernel that was made from ``origin``."""
        self._files.write(_name(origin, image.attributes, _RANGE_SUFFIX), image.to_bytes())
        self._files.prune()

    def keep(self, origin: str, image: Image) -> None:
        """Keep a kernel that was made from ``origin``."""
        self._files.write(_name(origin, attributes_of(image)), image.to_bytes())
        self._files.prune()

    def _kept(
        self, name: str, parse: Callable[[bytes, str], _Kernel], fits: Callable[[_Kernel], bool]
    ) -> _Kernel | None:
        """Return what a file holds; one that is damaged, or of something else, is removed."""
        try:
            found = parse(self._files.read(name), name)
        except OSError:
            return None
        except ImageError:
            self._files.remove(name)
            return None
        if not fits(found):
            self._files.remove(name)
            return None
        self._files.used(name)
        return found


def _name(origin: str, attributes: KernelAttributes, suffix: str = _SUFFIX) -> str:
    named = "\0".join((origin, attributes.key, str(attributes.covered.written())))
    return f"{hashlib.sha256(named.encode()).hexdigest()[:32]}{suffix}"


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
        self._model = digest.hexdigest()
        digest.update("\0".join((onnx.__version__, *told)).encode())
        self._origin = digest.hexdigest()
        self._weights: dict[bytes, bytes] = {}  #: equal ones are held once
        self._files = KernelFiles(cache_dir() / "kernels") if self.cache else None

    def demand(self) -> KernelDemand:
        """Return what calls of the model ask for, all but the length. Whoever compiled a kernel, and with which
        options, plays no part."""
        class_1 = {"model": self._model[:32], "hardware": self.params.digest()}
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


def source_of(
    path: str | PathLike,
    params: SocParams,
    *,
    dimension: str | None,
    engines: int,
    fallback: bool = False,
    options: Options | None = None,
    cache: bool = True,
) -> KernelSource:
    """Return the source of kernels of the ONNX model ``path`` for machines with ``params``, as ``caesura.dynamic`` has
    them: unless ``options`` say less, a kernel has all of LV2. Raises ``CompileError``."""
    chosen = replace(options or Options(), engines=engines)
    if chosen.lv2_limit is None:  # weights stay there from call to call
        chosen = replace(chosen, lv2_limit=ALL_LV2)
    return KernelSource(DynamicDimension.of(Path(path), dimension), params, chosen, fallback, cache)


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
