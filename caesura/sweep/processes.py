"""Starts processes of this computer that run points of a sweep.

They are told what to do through pipes: nothing listens, so that nobody else can have something run by them. They end
with the process that started them.
"""

import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from caesura.sweep.measure import measure
from caesura.sweep.spec import Point
from caesura.sweep.store import Figures

Task = tuple[Point, bytes]  #: what :func:`measure` is given


class ProcessDied(RuntimeError):
    """Says that the process that ran a point ended in the middle of it."""


def in_processes(tasks: Sequence[Task], count: int) -> Iterator[tuple[Point, Figures | BaseException]]:
    """Yield points as they end, ``count`` at a time, with their figures, or the exception instead. When a process dies,
    those that ran at that time run again one by one, so that it is known which one it died of."""
    left = deque(tasks)
    while left:
        for task in (yield from _until_one_dies(left, count)):
            if (yield from _until_one_dies(deque([task]), 1)):
                yield task[0], ProcessDied("its process ended in the middle of it; is there enough memory?")


def _until_one_dies(
    left: deque[Task], count: int
) -> Generator[tuple[Point, Figures | BaseException], None, list[Task]]:
    """Run what is ``left``; return the points that ran when a process died."""
    running: dict[Future[dict[str, Any]], Task] = {}
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(count, len(left)), mp_context=context, initializer=_end_with_parent) as pool:
        while left or running:
            try:
                while left and len(running) < count:
                    running[pool.submit(measure, *left[0])] = left[0]
                    left.popleft()
            except BrokenProcessPool:
                return list(running.values())
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                failure = future.exception()
                if isinstance(failure, BrokenProcessPool):
                    return list(running.values())
                point, _ = running.pop(future)
                yield point, future.result() if failure is None else failure
    return []


def _end_with_parent() -> None:
    """Have this process end with the one that started it, however that ends."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # without a traceback
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch(sentinel: int) -> None:
        multiprocessing.connection.wait([sentinel])
        os._exit(1)

    threading.Thread(target=watch, args=(parent.sentinel,), daemon=True).start()
