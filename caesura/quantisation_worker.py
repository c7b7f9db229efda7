"""Is the process in which ``caesura quantise`` works. See :mod:`caesura.contained_quantisation`."""

import os
import socket
from pathlib import Path

from caesura.api import UsageError
from caesura.quantisation import QuantisationRequest, quantised
from compiler import CompileError, OpenDimension
from sim.host import confine, end_after, frames
from sw.runtime import InputError

MADE = "quantised.onnx"  #: the file with the 8-bit model
_FILE = 1 << 32  #: bytes of a file that it may write
_SAID = 1 << 16  #: characters of an error


def serve(seconds: int, memory: int, folder: str) -> None:
    """Quantise what the one frame on standard input, a socket, asks for, within limits; files go to ``folder``."""
    confine(memory, _FILE)
    end_after(seconds)
    with socket.socket(fileno=os.dup(0)) as parent:
        header, _ = frames.receive(parent)
        try:
            found = quantised(
                QuantisationRequest(**header), Path(folder) / MADE,
                lambda what: frames.send(parent, {"told": what}, {}),
            )  # fmt: skip
        except Exception as error:
            frames.send(parent, {"error": _told(error, memory)[:_SAID], "kind": _kind(error)}, {})
        else:
            frames.send(parent, {"found": found}, {})


def _kind(error: Exception) -> str:
    known = (InputError, UsageError, CompileError, OSError)
    return next((one.__name__ for one in known if isinstance(error, one)), "")


def _told(error: Exception, memory: int) -> str:
    said = str(error) or type(error).__name__
    if isinstance(error, OpenDimension):
        said = error.told(f"--dim {error.label}=N,")
    if isinstance(error, MemoryError) or "alloc" in said:
        said += f" (it may use {memory >> 20:,} MiB of memory: raise --memory-limit)"
    return said
