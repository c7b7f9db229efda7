"""Runs ``caesura quantise`` in a process of its own: a model of a stranger may take all time and memory there is."""

import dataclasses
import math
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from caesura.api import UsageError
from caesura.quantisation import QuantisationRequest
from caesura.quantisation_worker import MADE
from compiler import CompileError
from sim.host import ContainedProcess, frames
from sw.runtime import InputError

_PROGRAM = "from caesura.quantisation_worker import serve; serve({seconds}, {memory}, {folder!r})"
_ERRORS: dict[str, type[Exception]] = {one.__name__: one for one in (UsageError, InputError, CompileError, OSError)}


@dataclasses.dataclass(frozen=True)
class QuantisationLimits:
    """Bounds what a quantisation may use: ``seconds`` of real time, and ``memory`` bytes of addresses."""

    seconds: float = 600.0
    memory: int = 8 << 30


def contained_quantisation(
    asked: QuantisationRequest, limits: QuantisationLimits, told: Callable[[str], None]
) -> tuple[bytes, dict[str, Any]]:
    """Return the 8-bit model as a file, and what :func:`caesura.quantisation.quantised` says of it. Raises
    :class:`UsageError` if it takes too much, and what that raises."""
    end = time.monotonic() + limits.seconds
    with tempfile.TemporaryDirectory(prefix="caesura-") as folder:
        program = _PROGRAM.format(seconds=math.ceil(limits.seconds), memory=limits.memory, folder=folder)
        # What it leaves when it is killed goes with the folder.
        process = ContainedProcess(program, {"TMPDIR": folder})
        try:
            process.send(dataclasses.asdict(asked), {}, end)
            while "told" in (header := process.receive(end)[0]):
                told(header["told"])
            if "error" in header:
                raise _ERRORS.get(header["kind"], UsageError)(header["error"])
            return (Path(folder) / MADE).read_bytes(), header["found"]
        except TimeoutError:
            raise UsageError(
                f"{asked.model}: not quantised after {limits.seconds:g} seconds of real time, which is the limit: give "
                "fewer --samples, or raise --time-limit"
            ) from None
        except (EOFError, ConnectionError, frames.FrameError):
            raise UsageError(
                f"{asked.model}: the process that quantises it ended; it may use {limits.memory >> 20:,} MiB of memory "
                "(--memory-limit)"
            ) from None
        finally:
            process.kill()
