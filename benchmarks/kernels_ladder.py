"""Kernels for the length of each request against those for the next length of a ladder, on the same requests."""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.figures import Figure, Measured, Target
from benchmarks.kernels_cases import dynamic_encoder
from benchmarks.lab import ALONE, Lab, compare_by_operator
from benchmarks.workloads.encoders import parse
from caesura.lengths import LADDER
from compiler import DynamicDimension, compile_model, import_model
from hw.image import Image

ENCODER, ENCODED, LONGEST = "bert_tiny_2x128", 40, 384  #: workload, for any length; requests, longest of them

Inputs = dict[int, npt.NDArray[Any]]  #: by length


def figures() -> list[Figure]:
    """Return both rows."""
    return [
        Figure("encoder_against_ladder", Target(20, 30), _against_ladder),
        Figure("encoder_padding_waste", Target(5, 2, at_most=True), _padding_waste),
    ]


def _encoded_lengths() -> list[int]:
    """Return the lengths of requests to an encoder, from a distribution with a long tail."""
    drawn = np.random.default_rng(1).lognormal(np.log(48), 0.9, ENCODED)
    return [int(length) for length in np.clip(np.rint(drawn), 1, LONGEST)]


def _rung(length: int) -> int:
    return next(rung for rung in LADDER if rung >= length)


@dataclass(frozen=True)
class _Served:
    """Requests of the encoder in their order: cycles, multiply-accumulates and loads of weights that were left out."""

    cycles: int
    macs: int
    kept: int


def _serve(lab: Lab, lengths: Sequence[int], images: Mapping[int, Image], feed: Inputs) -> _Served:
    """Each request by the image of its length. Weights stay in LV2 from one to the next where they can, and the first
    finds none."""
    cycles = macs = kept = 0
    for length in lengths:
        lab.progress.task(f"kernels: the encoder, {length} tokens")
        model = lab.device.load(images[length], keep_weights=True)
        _, stats = model.run(feed[length])
        lab.device.unload(model)
        cycles, macs = cycles + stats.cycles, macs + stats.macs
        loads = {number for number, job in enumerate(images[length].meta.jobs) if job.prologue_pc is not None}
        kept += sum(job.job in loads and not job.prologue_start for job in stats.jobs)
    return _Served(cycles, macs, kept)


@functools.lru_cache(maxsize=1)
def _encoder(lab: Lab) -> tuple[list[int], DynamicDimension, dict[int, Image], Inputs]:
    """Lengths of the requests, the encoder, its images and inputs by length."""
    lengths, encoder = _encoded_lengths(), dynamic_encoder(ENCODER)
    images, feed = {}, {}
    for length in sorted({*lengths, *map(_rung, lengths)}):
        lab.progress.task(f"kernels: the encoder for {length} tokens: compiling")
        images[length] = compile_model(
            encoder.fixed(length), lab.params, name=encoder.model, options=replace(ALONE, engines=lab.params.engines)
        )
        (port,) = images[length].meta.inputs
        feed[length] = np.random.default_rng(length).standard_normal(port.shape).astype(port.dtype)
    return lengths, encoder, images, feed


def _against_ladder(lab: Lab) -> Measured:
    """Return the percent of the cycles saved by kernels for the length of each request, against those for the next
    length of the ladder. Both keep weights in LV2 from one request to the next. ``correct``: outputs of every length of
    a request."""
    lengths, encoder, images, feed = _encoder(lab)
    exact = _serve(lab, lengths, images, feed)
    ladder = _serve(lab, [_rung(length) for length in lengths], images, feed)
    wrong = [length for length in sorted(set(lengths)) if not _right(lab, encoder, images[length], feed[length])]
    detail = {
        "requests": len(lengths), "different_lengths": len(set(lengths)), "mean_length": float(np.mean(lengths)),
        "cycles": exact.cycles, "cycles_of_the_ladder": ladder.cycles, "macs": exact.macs,
        "macs_of_the_ladder": ladder.macs, "loads_left_out": exact.kept, "loads_left_out_of_the_ladder": ladder.kept,
        "wrong_lengths": wrong,
    }  # fmt: skip
    return Measured(100 * (1 - exact.cycles / ladder.cycles), not wrong and min(exact.kept, ladder.kept) > 0, detail)


def _right(lab: Lab, encoder: DynamicDimension, image: Image, x: npt.NDArray[Any]) -> bool:
    """Return whether two inferences, the second with weights that the first left in LV2, both give what they should."""
    (port,) = image.meta.inputs
    model = lab.device.load(image, keep_weights=True)
    outputs = [model.run(x)[0] for _ in range(2)]
    lab.device.unload(model)
    graph = import_model(encoder.fixed(port.shape[1]), name=encoder.model)
    return all(compare_by_operator(graph, {port.name: x}, each)[0] for each in outputs)


def _padding_waste(lab: Lab) -> Measured:
    """Return the percent of the multiply-accumulates of the same requests that a shorter input would not need."""
    lengths, _, images, _ = _encoder(lab)
    done = sum(layer.macs for length in lengths for layer in images[length].meta.layers)
    base = parse(ENCODER)
    assert base is not None
    needed = sum(replace(base, length=length).macs for length in lengths)
    return Measured(100 * (1 - needed / done), True, {"macs": done, "needed": needed})
