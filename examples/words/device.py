"""The decoder on a device, token by token: alone, or with an urgent model that comes within each token."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

import caesura
from compiler import Options
from examples.digits import MODEL as DIGITS, SAMPLES as DIGITS_SAMPLES
from examples.digits.evaluate import reference_logits
from examples.words import CONTEXT, MODELS
from hw.contract.params import KIB, SocParams
from hw.image import Image
from sw.runtime import Mechanism, Runtime

_LV2_BYTES = 384 * KIB  #: with more, jobs are larger, and nothing is loaded while the last one computes
_ENGINES = {"int8": 1, "int4": 2}  #: that pay: a second gains nothing with int8
_SEED = 2025
_EARLIEST, _LATEST = 0.05, 0.8  #: share of an undisturbed step; the last point of a step comes before its end


def compiled(weights: str, params: SocParams, lv2_limit: int | str = _LV2_BYTES) -> Image:
    """Return the image of the model with such ``weights``, with memory for the whole context."""
    engines, options = min(_ENGINES[weights], params.engines), Options(lv2_limit=lv2_limit)
    return caesura.compile(MODELS[weights], params, engines=engines, options=options, sizes={"past": CONTEXT - 1})


@dataclass(frozen=True)
class TokenStep:
    """One step: the token that it read, and what it gave."""

    token: int
    scores: NDArray[np.float32]  #: [vocabulary], of the token that follows
    cycles: int  #: on the accelerator
    latency: int  #: with the host's part
    interrupted: int = 0  #: times it was suspended

    @property
    def choice(self) -> int:
        """Return the most likely token that follows; of equal scores the first."""
        return int(self.scores.argmax())


class Steps(Protocol):
    """Runs the steps of a text, in order."""

    def step(self, token: int) -> TokenStep:
        """Read a token."""
        ...


def write(steps: Steps, prompt: Sequence[int], count: int) -> Iterator[TokenStep]:
    """Run the steps that read a prompt and write ``count`` tokens, the most likely each time."""
    *before, token = prompt
    for earlier in before:
        yield steps.step(earlier)
    for _ in range(count):
        made = steps.step(token)
        yield made
        token = made.choice


class Undisturbed:
    """Runs steps while the device does nothing else. A context manager."""

    def __init__(self, model: caesura.Model) -> None:
        self._session = model.session()

    def step(self, token: int) -> TokenStep:
        """Read a token."""
        outputs, stats = self._session.step(token)
        return TokenStep(token, outputs["logits"].reshape(-1), stats.cycles, stats.latency)

    def __enter__(self) -> "Undisturbed":
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._session.close()


class Interrupted:
    """Runs steps, into each of which an image of ``digits`` comes as an urgent request, at a random time of the
    ``expected`` cycles that a step takes. ``responses``: cycles from arrival to result of each; ``correct``: how many
    were right. A context manager, as the device does nothing else meanwhile."""

    def __init__(self, device: caesura.Device, model: caesura.Model, expected: float) -> None:
        self._device, self._expected = device, expected
        self._urgent = device.load(caesura.compile(DIGITS, device.params, engines=1))
        self._session = model.session()
        self._runtime = Runtime(device, "fcfs", preemptive=True, rule=lambda _: Mechanism.DUMP, history=None)
        with np.load(DIGITS_SAMPLES) as file:
            self._images = file["input"]
        self._logits = reference_logits(DIGITS, self._images)
        self._random = random.Random(_SEED)
        self.responses: list[int] = []
        self.correct = 0

    def step(self, token: int) -> TokenStep:
        """Read a token."""
        number = len(self.responses) % len(self._images)
        step = self._runtime.submit(self._session, token)
        arrival = self._device.bus.cycle + int(self._expected * self._random.uniform(_EARLIEST, _LATEST))
        urgent = self._runtime.submit(self._urgent, self._images[number][np.newaxis], priority=1, arrival=arrival)
        scores, (logits,) = step.result()["logits"].reshape(-1), urgent.result()["logits"]
        assert urgent.ended is not None and step.ended is not None and step.stored is not None
        self.responses.append(urgent.ended - arrival)
        self.correct += bool(np.array_equal(logits, self._logits[number]))
        begin = min(job.prologue_start or job.start for job in step.results)
        cycles = max(job.end for job in step.results) - begin
        return TokenStep(token, scores, cycles, step.ended - step.stored, step.preempted)

    def __enter__(self) -> "Interrupted":
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._runtime.close()
        self._session.close()
        self._device.unload(self._urgent)
