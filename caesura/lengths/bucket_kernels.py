"""Makes kernels of operations for every length of a bucket: one image, that of the longest, which takes the length as a
number of the inference.

Inputs are padded. In an attention, keys behind the length get the weight 0, as the softmax leaves them out: where its
rows end follows from a parameter of the job. Other operations must give for the shorter input what they begin with for
the longer one, which is proved for each length when the kernel is made.
"""

import numpy as np

from caesura.api import Arrays
from caesura.lengths.kernel_source import KernelSource
from compiler import ATTENTION, LAST_ROW, CompileError, ModelOperation, compile_model, import_model, padding_problem
from hw.image import Image, KernelAttributes, RangeImage, ValueRange
from sw.kernels import KernelDemand, LibraryKernel

Kernel = LibraryKernel[Image | RangeImage]


def make_bucket(operation: ModelOperation, source: KernelSource, demand: KernelDemand, bucket: ValueRange) -> Kernel:
    """Return the kernel of an operation for all lengths of ``bucket``: a range kernel, of which each length was
    compiled, where one image would not be exact. Raises ``CompileError``."""
    if bucket.exact:
        return source.make(demand, bucket.low)
    if (image := _bounded(operation, source, bucket)) is None:
        return source.make_range(demand, range(bucket.low, bucket.high + 1))
    attributes = KernelAttributes.of(demand.class_1, demand.parameter, bucket)
    image.meta.kernel_attributes = attributes.to_dict()
    return LibraryKernel(operation.dimension.model, attributes, image)


def _bounded(operation: ModelOperation, source: KernelSource, bucket: ValueRange) -> Image | None:
    """Return the image for the longest length, if it is exact for all others."""
    attends = operation.operator == ATTENTION
    if operation.axes.keys() != operation.outputs.keys():
        return None
    if not (_keys_are_tokens(operation, bucket) if attends else _proved(source, bucket)):
        return None
    return compile_model(
        operation.dimension.fixed(bucket.high), source.params, fallback=source.fallback,
        name=operation.dimension.model, options=source.options, jobs=1, cache=source.cache, last_row=attends,
    )  # fmt: skip


def _proved(source: KernelSource, bucket: ValueRange) -> bool:
    """Return whether an operation gives for each length what it begins with for the longest."""
    whole = source.graph(bucket.high)
    shorter = (source.graph(length) for length in range(bucket.low, bucket.high))
    return all(padding_problem(each, whole) is None for each in shorter)


def _keys_are_tokens(operation: ModelOperation, bucket: ValueRange) -> bool:
    """Return whether an attention has a key for each token: not those of something else, of which all count."""
    lengths = (bucket.low, bucket.high)
    try:
        graphs = [import_model(operation.dimension.fixed(length), last_row=True) for length in lengths]
    except CompileError:  # not as keys can be bounded
        return False
    return [graph.numbers[LAST_ROW].high + 1 for graph in graphs] == [*lengths]


def is_bucket(kernel: Kernel) -> bool:
    """Return whether a kernel is one image for several lengths."""
    return isinstance(kernel.content, Image) and not kernel.attributes.covered.exact


def takes_last_row(operation: ModelOperation, kernel: Kernel) -> bool:
    """Return whether a kernel of an operation is told the number of the last token."""
    return is_bucket(kernel) and operation.operator == ATTENTION


def padded(operation: ModelOperation, kernel: Kernel, given: Arrays, length: int) -> Arrays:
    """Return inputs of an operation, or some of them, as a bucket's kernel takes them: zeros behind, and the number of
    the last token."""
    count, made = kernel.attributes.covered.high - length, dict(given)
    for name, axis in operation.dimension.axes:
        if name in made:
            pads = [(0, count if each == axis else 0) for each in range(made[name].ndim)]
            made[name] = np.pad(made[name], pads)
    if takes_last_row(operation, kernel):
        made[LAST_ROW] = np.array([length - 1])
    return made


def cropped(operation: ModelOperation, outputs: Arrays, length: int) -> Arrays:
    """Return the part of outputs of a bucket's kernel that belongs to ``length``."""
    return {
        name: np.ascontiguousarray(value[(slice(None),) * operation.axes[name] + (slice(length),)])
        for name, value in outputs.items()
    }
