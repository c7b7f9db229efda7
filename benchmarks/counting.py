"""Counts what benches cost, calls and accesses, while they run; and the small networks that they run for it."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from benchmarks.accuracy_cases import whole_networks
from benchmarks.lab import ALONE
from compiler import compile_model
from hw.contract.params import preset
from hw.image import Image
from sim.model import Agenda, ModelBus

Counts = dict[str, int]

ROOT = Path(__file__).parents[1]
TINY = preset("tiny")
TWO = TINY.replace(name="two engines", engines=2)
SEED = 1


# -- networks ------------------------------------------------------------------------------------------------
def small(name: str) -> Path:
    """A network of few channels of the bench of accuracy."""
    return next(case for case in whole_networks(TINY) if case.name == name).path()


@cache
def resnet() -> Image:
    """Return a ResNet-50 of few channels for two engines."""
    return compile_model(small("resnet50_small"), TWO, jobs=1, options=ALONE)


def inputs(image: Image) -> dict[str, Any]:
    """Return random inputs of a model."""
    rng = np.random.default_rng(SEED)
    return {port.name: rng.integers(0, 100, port.shape).astype(port.dtype) for port in image.meta.inputs}


# -- counting ------------------------------------------------------------------------------------------------
@contextmanager
def host_work() -> Iterator[Callable[[], Counts]]:
    """What run time and driver do: their calls, and their accesses to the device."""
    with (
        python_calls("sw") as calls,
        calls_of(ModelBus, "read_reg", "write_reg") as registers,
        calls_of(ModelBus, "read_mem", "write_mem") as memory,
    ):
        yield lambda: {"calls of the host": calls(), "registers": registers(), "memory accesses": memory()}


@contextmanager
def planned() -> Iterator[Callable[[], int]]:
    """How many events fast models plan while they run."""
    count, run = 0, Agenda.run

    def counted(self: Agenda, last: int) -> None:
        nonlocal count
        before = self.planned
        try:
            run(self, last)
        finally:
            count += self.planned - before

    Agenda.run = counted  # type: ignore[method-assign]
    try:
        yield lambda: count
    finally:
        Agenda.run = run  # type: ignore[method-assign]


@contextmanager
def calls_of(owner: type, *names: str, told: Callable[..., object] | None = None) -> Iterator[Callable[[], int]]:
    """How often methods of a class are called; ``told`` hears of each call when it has ended, with its arguments."""
    count = 0

    def counted(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            nonlocal count
            count += 1
            result = method(*given, **named)
            if told is not None:
                told(*given)
            return result

        return call

    methods = {name: getattr(owner, name) for name in names}
    own = {name: vars(owner).get(name) for name in names}
    for name, method in methods.items():
        setattr(owner, name, counted(method))
    try:
        yield lambda: count
    finally:
        for name, method in own.items():
            if method is None:
                delattr(owner, name)
            else:
                setattr(owner, name, method)


@contextmanager
def python_calls(*folders: str) -> Iterator[Callable[[], int]]:
    """How many functions of files in ``folders`` are called. May be used within itself."""
    count, inside = 0, tuple(f"{ROOT / folder}/" for folder in folders)
    before = sys.getprofile()
    known: dict[str, bool] = {}

    def noted(frame: FrameType, event: Any, argument: Any) -> None:
        nonlocal count
        if before is not None:
            before(frame, event, argument)
        if event == "call":
            name = frame.f_code.co_filename
            if name not in known:
                known[name] = name.startswith(inside)
            count += known[name]

    sys.setprofile(noted)
    try:
        yield lambda: count
    finally:
        sys.setprofile(before)
