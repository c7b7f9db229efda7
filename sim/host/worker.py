"""Is the process in which steps of an image run on the CPU; what it says is not trusted. See
:mod:`sim.host.contained`."""

import contextlib
import os
import signal
import socket
import sys

from sim.host import frames
from sim.host.onnx_session import HostSession

_GRACE = 5  #: seconds in which the parent should have ended this process


def serve(seconds: int, memory: int) -> None:
    """Answer on standard input, a socket, until it closes: first the models, then a step after the other. A step may
    take ``seconds``, this process ``memory`` bytes, and it may write no file."""
    os.chdir("/")
    confine(memory)
    with socket.socket(fileno=os.dup(0)) as parent, contextlib.suppress(EOFError, OSError):
        sessions = _opened(parent)
        while sessions is not None:
            header, values = frames.receive(parent)
            end_after(seconds)
            try:
                made = sessions[header["step"]](values)
                frames.send(parent, {}, {name: made[name] for name in header["outputs"]})
            except Exception as error:  # onnxruntime's exceptions have no common base of their own
                frames.send(parent, {"error": _said(error)}, {})
            end_after(0)


def _opened(parent: socket.socket) -> list[HostSession] | None:
    """Return the sessions of the models that the first frame holds, or None if one is refused."""
    _, models = frames.receive(parent)
    sessions: list[HostSession] = []
    for model in models.values():
        try:
            sessions.append(HostSession(model.tobytes()))
        except Exception as error:
            frames.send(parent, {"error": _said(error), "model": len(sessions)}, {})
            return None
    frames.send(parent, {}, {})
    return sessions


def end_after(seconds: int) -> None:
    """Have the system end this process after ``seconds``, for a step whose parent is gone; 0: never."""
    if hasattr(signal, "alarm"):
        signal.alarm(seconds + _GRACE if seconds else 0)


def _said(error: Exception) -> str:
    return str(error)[:2000] or type(error).__name__


def confine(memory: int, file: int = 0) -> None:
    """Limit this process to ``memory`` bytes of addresses, and to files of ``file`` bytes."""
    if sys.platform == "win32":
        return
    import resource

    for what, most in ((resource.RLIMIT_AS, memory), (resource.RLIMIT_FSIZE, file), (resource.RLIMIT_CORE, 0)):
        with contextlib.suppress(ValueError, OSError):  # a limit that is set already and lower
            resource.setrlimit(what, (most, most))
