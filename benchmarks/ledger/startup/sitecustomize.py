"""Writes down which files of the project a process executes and reads, where ``benchmarks.ledger`` asks for it.

Python imports this module at the start of every process that has this folder on its path, workers that a benchmark
starts included. Each file is noted as it is seen, as a process may be killed or forked. Modules count when their code
is executed, whether it came from a source file or from a cache; reading a source as text does not count, since that is
how caches find out whether anything changed. A process of Python that is started where it does not import this module
is noted too: nobody knows what it ran.
"""

import contextlib
import os
import sys
from collections.abc import Mapping

_HERE = os.path.dirname(os.path.abspath(__file__))
LOG, ROOTS = "CAESURA_FILES_LOG", "CAESURA_FILES_ROOTS"  #: variables: a file, and folders with a separator between
COPY = "\t"  #: in ROOTS between a folder and that of which it is a copy: its files are noted as the other's
UNSEEN = "! "  #: how the line of a process that does not import this module begins


def watch(log: str, roots: Mapping[str, str]) -> None:
    """Append the path of every file below ``roots`` that this process executes or reads to ``log``, a line each. What
    each of them begins with is told as the root's value."""
    seen = set[str]()
    writes, flags = os.O_WRONLY | os.O_RDWR, os.O_WRONLY | os.O_APPEND
    fspath, fsdecode, absolute = os.fspath, os.fsdecode, os.path.abspath
    open_file, write, close = os.open, os.write, os.close

    def add(line: str) -> None:
        with contextlib.suppress(OSError):  # a process that may write no file, such as that of steps on the CPU
            descriptor = open_file(log, flags)
            write(descriptor, f"{line}\n".encode())
            close(descriptor)

    def note(event: str, arguments: tuple) -> None:
        if event == "exec":
            name = getattr(arguments[0], "co_filename", "")
        elif event == "open" and not isinstance(arguments[0], int) and not (arguments[2] or 0) & writes:
            name = fsdecode(fspath(arguments[0]))
            if name.endswith((".py", ".pyc")):
                return
        elif event == "subprocess.Popen" and _is_unseen(*arguments):
            add(f"{UNSEEN}{' '.join(map(str, arguments[1]))[:200]!r}")
            return
        else:
            return
        if name in seen or name.startswith("<"):  # code that came from no file
            return
        seen.add(name)
        path = absolute(name)
        for root, told in roots.items():
            if path.startswith(root):
                add(told + path[len(root) :])

    sys.addaudithook(note)


def _is_unseen(executable: object, command: object, folder: object, variables: Mapping[str, str] | None) -> bool:
    """Return whether this starts Python without this module."""
    if not isinstance(command, list | tuple) or not os.path.basename(str(command[0])).startswith("python"):
        return False
    inherited = os.environ if variables is None else variables
    found = _HERE in inherited.get("PYTHONPATH", "").split(os.pathsep) and LOG in inherited
    options = [one for one in command[1:3] if str(one).startswith("-") and not str(one).startswith("--")]
    return not found or any(letter in str(one) for one in options for letter in "IES")


def _roots(variable: str) -> dict[str, str]:
    """Return how paths of interest begin, and what is noted instead."""
    pairs = [entry.partition(COPY) for entry in variable.split(os.pathsep)]
    return {f"{folder}{os.sep}": f"{original or folder}{os.sep}" for folder, _, original in pairs}


if __name__ == "sitecustomize" and LOG in os.environ:
    watch(os.environ[LOG], _roots(os.environ[ROOTS]))
