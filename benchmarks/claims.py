"""What models lose by claiming the least LV2 that pays, and what a pair of them gains: rows of
``caesura bench scheduling``, measured on the fast model whatever backend and preset was asked for."""

from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import NamedTuple

import caesura
from benchmarks.baseline_cases import BaselineCase
from benchmarks.figures import Figure, Measured, Target
from benchmarks.lab import ALONE, Lab
from benchmarks.workloads import Inputs
from caesura import layer_cycles, load_samples
from compiler import CompileError, Options
from hw.contract.params import preset
from hw.image import Image
from sw.runtime import Runtime

BACKEND = "model"
ALONE_ON = (
    ("tiny", "digits"), ("tiny", "squeezenet_small"), ("tiny", "mobilenetv2_small"), ("tiny", "resnet50_small"),
    ("base", "digits"), ("base", "squeezenet"), ("base", "mobilenetv2"), ("base", "resnet50"),
    ("base", "bert_base_1x64"),
)  # fmt: skip
#: Of the first the row tells, the others stand in its detail: the claims of the last do not fit together.
PAIRS = (("digits", "squeezenet_small"), ("digits", "resnet50_small"), ("mobilenetv2_small", "squeezenet_small"))
#: Parts of LV2 that the first of two models gets by hand; the other gets the rest.
BY_HAND = tuple(Fraction(eighths, 8) for eighths in (2, 3, 4, 5, 6))
REQUESTS = 2  #: of each model, all at once


class _Ran(NamedTuple):
    cycles: int
    correct: bool
    claims: tuple[int, ...]


def figures() -> list[Figure]:
    """Return all rows, in the order of the report."""
    return [
        Figure("default_claim_cost", Target(2, 1, "%", at_most=True), _cost),
        Figure("default_claims_of_two", Target(2, 0, "% over limits by hand", at_most=True), _pairs),
    ]


def _cost(lab: Lab) -> Measured:
    """Return the most that a network alone loses by what it claims, of all its cycles with all of LV2. Programs are
    timed without data."""
    costs, claims = dict[str, float](), dict[str, float]()
    for machine, name in ALONE_ON:
        lab.progress.task(f"{name} on {machine}: compiling")
        path, _ = BaselineCase(machine, name).files()
        made, whole = (_compiled(path, machine, options) for options in (Options(), ALONE))
        costs[f"{machine} {name}"] = round(100 * (sum(layer_cycles(made)) / sum(layer_cycles(whole)) - 1), 3)
        claims[f"{machine} {name}"] = round(100 * made.meta.lv2_bytes / made.params.lv2_bytes, 1)
    worst = max(costs, key=lambda case: costs[case])
    detail = {"measured_on": BACKEND, "worst": worst, "percent_more": costs, "percent_of_lv2": claims}
    return Measured(costs[worst], True, detail)


def _pairs(lab: Lab) -> Measured:
    """Return how much longer two models together take by default than with the best limits chosen by hand: of the first
    pair, as by default each of its models once had all of LV2 and they took turns."""
    over, cycles, correct = dict[str, float](), dict[str, dict[str, int]](), True
    for pair in PAIRS:
        name = " + ".join(pair)
        lab.progress.task(f"{name}: by default and by hand")
        default, whole, by_hand = _together(pair, (None, None)), _together(pair, ("all", "all")), list(_by_hand(pair))
        best = min(one.cycles for one in by_hand)
        over[name] = round(100 * (default.cycles / best - 1), 3)
        cycles[name] = {"default": default.cycles, "by_hand": best, "all": whole.cycles}
        correct &= all(one.correct for one in (default, whole, *by_hand))
    detail = {"measured_on": f"{BACKEND}, tiny", "percent_over": over, "cycles": cycles}
    return Measured(next(iter(over.values())), correct, detail)


def _by_hand(pair: tuple[str, str]) -> Iterator[_Ran]:
    whole = preset("tiny").lv2_bytes
    for part in BY_HAND:
        try:
            yield _together(pair, (int(part * whole), whole - int(part * whole)))
        except CompileError:  # too little for one of them
            continue


@cache
def _together(pair: tuple[str, str], limits: tuple[int | str | None, int | str | None]) -> _Ran:
    """Return what requests for both models take from the first to the end of the last, and what the models claim."""
    files = [BaselineCase("tiny", name).files() for name in pair]
    images = [_compiled(path, "tiny", Options(lv2_limit=limit)) for (path, _), limit in zip(files, limits, strict=True)]
    feeds = [_fed(given, image) for (_, given), image in zip(files, images, strict=True)]
    with caesura.open("tiny", BACKEND) as device:
        models = [device.load(image) for image in images]
        expected = [model.run(feed)[0] for model, feed in zip(models, feeds, strict=True)]
        runtime, begin = Runtime(device), device.bus.cycle
        requests = [
            (runtime.submit(model, feed), wanted)
            for _ in range(REQUESTS)
            for model, feed, wanted in zip(models, feeds, expected, strict=True)
        ]
        outputs = [(request.result(), wanted) for request, wanted in requests]
        cycles = device.bus.cycle - begin
    correct = all((found[name] == value).all() for found, wanted in outputs for name, value in wanted.items())
    return _Ran(cycles, correct, tuple(image.meta.lv2_bytes for image in images))


def _compiled(path: Path, machine: str, options: Options) -> Image:
    return caesura.compile(path, machine, options=options)


def _fed(given: Inputs | Path, image: Image) -> Inputs:
    return load_samples(given, image, 1)[0] if isinstance(given, Path) else given
