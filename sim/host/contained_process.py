"""Runs a process with limits of its own, for work on what a stranger made; it talks to this one in frames."""

import os
import socket
import subprocess
import sys
import time
import weakref
from collections.abc import Mapping

import numpy.typing as npt

from sim.host import frames


class ContainedProcess:
    """Runs ``program``, Python whose standard input is a socket to this process, in an interpreter that ends when the
    socket closes. :func:`sim.host.worker.confine` gives it its limits. ``environment`` is added to that of this
    process."""

    def __init__(self, program: str, environment: Mapping[str, str] | None = None) -> None:
        self._socket, theirs = socket.socketpair()
        paths = os.pathsep.join(path or os.getcwd() for path in sys.path)
        with theirs:
            self._child = subprocess.Popen(
                [sys.executable, "-c", program], stdin=theirs.fileno(), stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL, env={**os.environ, **(environment or {}), "PYTHONPATH": paths},
            )  # fmt: skip
        self._owner = os.getpid()
        weakref.finalize(self, _end, self._child, self._socket, self._owner)

    @property
    def ended(self) -> bool:
        """Return whether the process does not run any more, or belongs to a process that this one was forked from."""
        return self._owner != os.getpid() or self._child.poll() is not None

    def send(self, header: Mapping, arrays: Mapping[str, npt.NDArray], end: float) -> None:
        """Send a frame until ``end``, on :func:`time.monotonic`. Raises what :mod:`sim.host.frames` raises."""
        self._socket.settimeout(max(end - time.monotonic(), 1e-3))
        frames.send(self._socket, header, arrays)

    def receive(self, end: float, most: int = 0) -> tuple[dict, frames.Arrays]:
        """Return the next frame, with arrays of up to ``most`` bytes, until ``end``. Raises what :mod:`sim.host.frames`
        raises."""
        return frames.receive(self._socket, end, most)

    def kill(self) -> None:
        """End the process now."""
        _end(self._child, self._socket, self._owner)


def _end(child: "subprocess.Popen[bytes]", ours: socket.socket, owner: int) -> None:
    ours.close()
    if owner == os.getpid():  # not for a fork of the process that started it
        child.kill()
        child.wait()
