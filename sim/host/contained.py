"""Runs steps of an image on the CPU in a process of their own: a model inside an image comes from whoever made the
image.

The process may use so much memory and time; a step that takes more ends with an error, the process with it, and the
next step gets a new one. It runs in the root folder with no way to write a file, and models that name external files
are refused before they are opened. What comes back is looked at: names, types and shapes must be those of the image.
Processes of the models used last are kept, so that loading an image again costs nothing.
"""

import functools
import math
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import onnx

from sim.host import frames
from sim.host.contained_process import ContainedProcess
from sim.host.onnx_models import ModelsKey, all_tensors

_KEPT = 16  #: processes
_SMALL = 1 << 20  #: bytes that an answer may have beyond what is expected: what is wrong with it can then be told
_START = 120.0  #: seconds within which a process has opened its models
_PROGRAM = "from sim.host.worker import serve; serve({seconds}, {memory})"


class HostStepError(RuntimeError):
    """Says that a step on the CPU failed, took too long or too much memory, or gave something else than the image
    says."""


class HostModelError(ValueError):
    """Says why a model is refused; ``number`` says which of the image's it is."""

    def __init__(self, number: int, reason: str) -> None:
        super().__init__(reason)
        self.number = number


@dataclass(frozen=True)
class HostLimits:
    """Bounds what a process of steps may use: ``seconds`` of real time for each step, and ``memory`` bytes of
    addresses."""

    seconds: float = 60.0
    memory: int = 8 << 30


DEFAULT_LIMITS = HostLimits()


class ContainedModels:
    """Runs serialised ONNX ``models`` in one process. Raises :class:`HostModelError` for one that cannot be opened."""

    def __init__(self, models: Sequence[bytes], limits: HostLimits = DEFAULT_LIMITS) -> None:
        for number, model in enumerate(models):
            _refuse_external(number, model)
        self._limits = limits
        self._process = _process(ModelsKey(*models), limits)
        if self._process.ended:
            self._process.start()

    def run(
        self, number: int, arrays: Mapping[str, npt.NDArray], outputs: Mapping[str, tuple[np.dtype, tuple[int, ...]]]
    ) -> frames.Arrays:
        """Return ``outputs`` of model ``number``, given as dtype and shape by name. Raises :class:`HostStepError`."""
        try:
            if self._process.ended:
                self._process.start()
            end = time.monotonic() + self._limits.seconds
            most = _SMALL + sum(dtype.itemsize * math.prod(shape) for dtype, shape in outputs.values())
            header, made = self._process.ask({"step": number, "outputs": list(outputs)}, arrays, end, most)
        except (OSError, EOFError, frames.FrameError, HostModelError) as error:
            self._process.kill()
            raise HostStepError(self._why(error)) from None
        if "error" in header:
            raise HostStepError(f"onnxruntime: {header['error']}")
        for name, (dtype, shape) in outputs.items():
            if name not in made or (made[name].dtype, made[name].shape) != (dtype, shape):
                got = f"{made[name].dtype} {made[name].shape}" if name in made else "nothing"
                raise HostStepError(f"it gave {got} for tensor {name!r}, the image says {dtype} {shape}")
        return made

    def _why(self, error: Exception) -> str:
        if isinstance(error, TimeoutError):
            return f"no result after {self._limits.seconds:g} seconds of real time, which is its limit"
        if isinstance(error, frames.FrameError):
            return f"its process sent {error}"
        return f"its process ended; it may use {self._limits.memory >> 20:,} MiB of memory"


@functools.lru_cache(maxsize=_KEPT)
def _process(key: ModelsKey, limits: HostLimits) -> "_Process":
    return _Process(key.models, limits)


class _Process:
    """Is a contained process with models, which it is started with. Threads take turns; a fork of this process gets one
    of its own."""

    def __init__(self, models: tuple[bytes, ...], limits: HostLimits) -> None:
        self._models, self._limits, self._turn = models, limits, threading.Lock()
        self.start()

    @property
    def ended(self) -> bool:
        """Return whether the process must be started again."""
        return self._process.ended

    def start(self) -> None:
        """Start the process and have it open the models. Raises :class:`HostModelError`."""
        self._process = ContainedProcess(
            _PROGRAM.format(seconds=math.ceil(self._limits.seconds), memory=self._limits.memory)
        )
        given = {str(number): np.frombuffer(model, np.uint8) for number, model in enumerate(self._models)}
        try:
            header, _ = self.ask({}, given, time.monotonic() + _START)
        except (OSError, EOFError, frames.FrameError):
            self.kill()
            raise HostModelError(0, "the process that opens it ended: it takes too much memory or time") from None
        if "error" in header:
            self.kill()
            number = header.get("model")
            refused = f"onnxruntime refuses the host model: {header['error']}"
            raise HostModelError(number if isinstance(number, int) else 0, refused)

    def ask(
        self, header: Mapping, arrays: Mapping[str, npt.NDArray], end: float, most: int = 0
    ) -> tuple[dict, frames.Arrays]:
        """Send a frame and wait for the answer, with arrays of up to ``most`` bytes, until ``end``. Raises what
        :mod:`sim.host.frames` raises."""
        with self._turn:
            self._process.send(header, arrays, end)
            return self._process.receive(end, most)

    def kill(self) -> None:
        """End the process now."""
        self._process.kill()


def _refuse_external(number: int, model: bytes) -> None:
    try:
        parsed = onnx.load_from_string(model)
    except Exception as error:  # protobuf's errors have no public base
        raise HostModelError(number, f"it is not an ONNX model: {error}") from None
    for tensor in all_tensors(parsed):
        if tensor.external_data or onnx.external_data_helper.uses_external_data(tensor):
            raise HostModelError(number, f"its tensor {tensor.name!r} names an external file; images hold all data")
