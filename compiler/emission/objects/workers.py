"""Processes that share the work of a compilation, this one among them.

Each worker is an interpreter of its own that is told what to do through a pipe. So it does not matter which threads or
locks this process has, nor whether its main module may be imported again. Workers end when their pipe does.
"""

import contextlib
import gc
import os
import pickle
import signal
import subprocess
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from typing import IO, Any, TypeVar

from compiler.ir import CompileError

Item = TypeVar("Item")
Result = TypeVar("Result")
Outcome = tuple[bool, Any]  #: a result, or the exception instead of one

_PROGRAM = "from compiler.emission.objects.workers import serve; serve()"


def cpus() -> int:
    """Return how many CPUs this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Workers:
    """``count`` processes, this one included; a context manager. The others start with :meth:`start`."""

    def __init__(self, count: int) -> None:
        self._count = count if sys.executable else 1
        self._others: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, *_: object) -> None:
        for other in self._others:
            other.kill()  # it holds nothing that would have to be put away
        for other in self._others:
            other.wait()
            for pipe in (other.stdin, other.stdout):
                assert pipe is not None
                with contextlib.suppress(OSError):  # what was not yet written has no reader
                    pipe.close()

    def start(self) -> None:
        """Start the other processes, unless they have been."""
        paths = os.pathsep.join(path or os.getcwd() for path in sys.path)
        while len(self._others) < self._count - 1:
            self._others.append(
                subprocess.Popen(
                    [sys.executable, "-c", _PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                    env={**os.environ, "PYTHONPATH": paths},
                )
            )  # fmt: skip

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result | Exception]:
        """``function``, one that can be imported, of all ``items``, each in one of the processes; results are in their
        order, or exceptions in place of them. Raises :class:`CompileError` if a process dies."""
        outcomes: list[Any] = [None] * len(items)
        left, failures = deque(range(len(items))), list[str]()

        def served(other: "subprocess.Popen[bytes]") -> None:
            while not failures:
                try:
                    number = left.popleft()
                except IndexError:
                    return
                try:
                    outcomes[number] = _asked(other, function, items[number])
                except (EOFError, OSError, pickle.UnpicklingError):
                    failures.append(
                        f"a worker process ended with status {other.wait()} in the middle of its work; is there enough "
                        "memory? With jobs=1 (caesura compile --jobs 1) the model is compiled in one process"
                    )

        threads = [threading.Thread(target=served, args=(other,), daemon=True) for other in self._others]
        for thread in threads:
            thread.start()
        while left and not failures:
            try:
                number = left.popleft()
            except IndexError:
                break
            outcomes[number] = _outcome(function, items[number])
        for thread in threads:
            thread.join()
        if failures:
            raise CompileError(failures[0])
        return [value for _, value in outcomes]


def _asked(other: "subprocess.Popen[bytes]", function: Callable[[Item], Result], item: Item) -> Outcome:
    assert other.stdin is not None and other.stdout is not None
    pickle.dump((function, item), other.stdin, pickle.HIGHEST_PROTOCOL)
    other.stdin.flush()
    outcome: Outcome = pickle.load(other.stdout)
    return outcome


def _outcome(function: Callable[[Item], Result], item: Item) -> Outcome:
    try:
        return True, function(item)
    except CompileError as error:
        return False, error.with_traceback(None)  # is kept, and its frames hold all the work that was in vain
    except Exception as error:
        return False, error


def serve() -> None:
    """What a worker does: answer until its input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that asks ends, and this one with it
    gc.disable()
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what is printed must not meet answers
    while True:
        try:
            function, item = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        _answer(answers, _outcome(function, item))


def _answer(answers: IO[bytes], outcome: Outcome) -> None:
    try:
        raw = pickle.dumps(outcome, pickle.HIGHEST_PROTOCOL)
    except Exception:  # an exception that cannot travel
        told = "".join(traceback.format_exception(outcome[1])) if isinstance(outcome[1], Exception) else ""
        raw = pickle.dumps((False, RuntimeError(told or "a result cannot be sent")), pickle.HIGHEST_PROTOCOL)
    answers.write(raw)
    answers.flush()
