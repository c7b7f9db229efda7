"""Range kernels against exact ones: cycles at the same length, bytes on disk, and the time to build them."""

import functools
import time
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.figures import Figure, Measured, Target
from benchmarks.kernels_cases import same_network
from benchmarks.lab import ALONE, Lab
from compiler import DynamicDimension, compile_model, compile_range
from examples.encoder import LENGTHS, MODEL
from hw.image import Image, KernelAttributes, RangeImage

ENCODER_LENGTHS = LENGTHS  #: of the trained encoder: all of its data set
CONV_LENGTHS, CONV_SAMPLE = range(1, 257), 12  #: of the 1-D convolutions: the range, and how many of it are compared
RELOCATIONS = 5
RUNS = 8  #: of each kernel, at moments that are spread evenly between two refreshes of the DRAM


def figures() -> list[Figure]:
    """Return the rows of range kernels, in the order of the report."""
    return [
        Figure("range_against_exact", Target(5, 3, "% more cycles", at_most=True), _encoder_cycles),
        Figure("range_against_exact_conv", Target(5, 3, "% more cycles", at_most=True), _conv_cycles),
        Figure("range_kernel_file", Target(100, 20, "% of exact kernels' bytes", at_most=True), _file),
        Figure("range_kernel_build", Target(100, 50, "% of exact kernels' CPU time", at_most=True), _build),
    ]


@dataclass
class Ranged:
    """A range kernel, exact kernels for ``lengths`` of it, what all took to compile in seconds of CPU time, and the
    most that a relocation took."""

    dimension: DynamicDimension
    kernel: RangeImage
    exact: dict[int, Image]
    range_seconds: float
    exact_seconds: float
    relocation_ms: float = 0.0
    images: dict[int, Image] = field(default_factory=dict)


def _ranged(lab: Lab, path: Any, covered: range, lengths: list[int]) -> Ranged:
    dimension = DynamicDimension.of(path)
    options = replace(ALONE, engines=lab.params.engines)
    attributes = KernelAttributes.of({"model": dimension.model}, "length", f"{covered[0]}..{covered[-1]}")
    lab.progress.task(f"kernels: {dimension.model}, the range kernel of {len(covered)} lengths")
    begin = time.process_time()
    kernel = compile_range(dimension, lab.params, covered, attributes, options)
    range_seconds = time.process_time() - begin
    lab.progress.task(f"kernels: {dimension.model}, {len(lengths)} exact kernels")
    begin = time.process_time()
    exact = {
        length: compile_model(
            dimension.fixed(length), lab.params, name=dimension.model, options=options, jobs=1, cache=False
        )
        for length in lengths
    }
    made = Ranged(dimension, kernel, exact, range_seconds, time.process_time() - begin)
    for length in lengths:
        took = []
        for _ in range(RELOCATIONS):
            begin = time.process_time()
            made.images[length] = kernel.image(length)
            took.append(time.process_time() - begin)
        made.relocation_ms = max(made.relocation_ms, 1000 * float(np.median(took)))
    return made


@functools.lru_cache(maxsize=1)
def _encoder(lab: Lab) -> Ranged:
    return _ranged(lab, MODEL, ENCODER_LENGTHS, list(ENCODER_LENGTHS))


def _encoder_cycles(lab: Lab) -> Measured:
    """Of the trained encoder, at every length of its data set."""
    made = _encoder(lab)

    def tokens(length: int) -> npt.NDArray[Any]:
        (port,) = made.exact[length].meta.inputs
        return np.random.default_rng(length).standard_normal(port.shape).astype(port.dtype)

    return _cycles(lab, made, tokens)


def _conv_cycles(lab: Lab) -> Measured:
    """Of 1-D convolutions with padding on both sides, at a seeded sample of lengths."""
    lengths = sorted(int(each) for each in np.random.default_rng(0).choice(CONV_LENGTHS, CONV_SAMPLE, replace=False))
    made = _ranged(lab, same_network(), CONV_LENGTHS, lengths)
    return _cycles(
        lab, made, lambda length: np.random.default_rng(length).integers(-128, 128, (1, 16, length)).astype(np.int8)
    )


def _cycles(lab: Lab, made: Ranged, feed: Any) -> Measured:
    """Return the worst of all lengths. ``correct``: all outputs are the same bytes."""
    more: dict[int, float] = {}
    total, equal = [0, 0], 0
    for length, exact in made.exact.items():
        results = [_run(lab, image, feed(length)) for image in (exact, made.images[length])]
        cycles = [count for count, _ in results]
        total = [sum(pair) for pair in zip(total, cycles, strict=True)]
        more[length] = 100 * (cycles[1] / cycles[0] - 1)
        equal += results[0][1] == results[1][1]
    worst = max(more, key=lambda length: more[length])
    detail = {
        "lengths": len(more), "stretches": len(made.kernel.stretches), "worst_length": worst,
        "mean": float(np.mean(list(more.values()))), "least": min(more.values()),
        "cycles_of_exact_kernels": total[0], "cycles_of_the_range_kernel": total[1],
        "equal_outputs": f"{equal} of {len(more)}", "relocation_ms": made.relocation_ms,
    }  # fmt: skip
    return Measured(more[worst], equal == len(more), detail)


def _run(lab: Lab, image: Image, x: npt.NDArray[Any]) -> tuple[int, list[bytes]]:
    """Return the cycles, the mean of some runs, and the bytes of the outputs. A refresh in a run of two thousand cycles
    is a seventh of it."""
    model, bus, interval = lab.device.load(image), lab.device.bus, max(1, lab.params.dram_refresh_interval)
    lab.progress.task(f"kernels: {image.meta.model}, {image.meta.inputs[0].shape}")
    runs = []
    for number in range(RUNS):
        bus.advance((number * interval // RUNS - bus.cycle) % interval)
        runs.append(model.run(x))
    lab.device.unload(model)
    cycles = round(sum(stats.cycles for _, stats in runs) / RUNS)
    return cycles, [np.asarray(value).tobytes() for outputs, _ in runs for value in outputs.values()]


def _file(lab: Lab) -> Measured:
    """Of the trained encoder."""
    made = _encoder(lab)
    size, exact = len(made.kernel.to_bytes()), sum(len(image.to_bytes()) for image in made.exact.values())
    return Measured(100 * size / exact, True, {"bytes": size, "bytes_of_exact_kernels": exact})


def _build(lab: Lab) -> Measured:
    """Of the trained encoder, without the cache of layers."""
    made = _encoder(lab)
    detail = {"cpu_seconds": made.range_seconds, "cpu_seconds_of_exact_kernels": made.exact_seconds}
    return Measured(100 * made.range_seconds / made.exact_seconds, True, detail)
