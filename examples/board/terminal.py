"""A pseudo-terminal with a simulated serial line behind it."""

import contextlib
import os
import pty
import select
import threading
import tty
from collections.abc import Iterator
from typing import Protocol

_MOST = 4096  #: bytes that are carried at a time
_SECONDS = 0.01  #: between two looks at whether it is to end


class Line(Protocol):
    """Is the host's end of a serial line."""

    def write(self, data: bytes) -> int:
        """Send bytes."""

    def read(self, size: int) -> bytes:
        """Return up to ``size`` bytes, fewer if the line falls silent."""


@contextlib.contextmanager
def terminal(line: Line | None) -> Iterator[str]:
    """Yield the name of a terminal at whose other end ``line`` is, or nobody, until the end of the block."""
    mine, theirs = pty.openpty()
    tty.setraw(theirs)
    ended = threading.Event()

    def carry() -> None:
        while line is not None and not ended.is_set():
            if select.select([mine], [], [], _SECONDS)[0]:
                line.write(os.read(mine, _MOST))
                while raw := line.read(1):
                    os.write(mine, raw)

    thread = threading.Thread(target=carry)
    thread.start()
    try:
        yield os.ttyname(theirs)
    finally:
        ended.set()
        thread.join()
        os.close(theirs)
        os.close(mine)
