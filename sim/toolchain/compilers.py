"""Runs compilers from pip, with a log."""

import importlib.metadata
import os
import shlex
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from sim.cache_folder import cache_dir


class BuildError(RuntimeError):
    """Says that a tool that builds a simulator is missing or failed; names the log."""


@dataclass(frozen=True)
class Compiler:
    """Is a compiler driver: ``language`` is ``cc`` or ``c++``; the environment variable ``variable`` replaces it."""

    language: str
    variable: str

    @property
    def command(self) -> tuple[str, ...]:
        """Return the command to run: the compiler of the variable if set, else the one of the ``ziglang`` package."""
        chosen = os.environ.get(self.variable)
        if chosen:
            return tuple(shlex.split(chosen))
        return (sys.executable, "-m", "ziglang", self.language, "-fno-sanitize=all")

    @property
    def version(self) -> str:
        """Return what tells compilers apart. Paths of the ``ziglang`` package are not part of it, so checkouts
        share."""
        return os.environ.get(self.variable) or f"ziglang {importlib.metadata.version('ziglang')}"


CC = Compiler("cc", "CAESURA_CC")
CXX = Compiler("c++", "CAESURA_CXX")


@dataclass(frozen=True)
class Source:
    """Names a file to compile, with flags of its own."""

    path: Path
    flags: tuple[str, ...] = ()


def compile_all(
    compiler: Compiler, sources: Iterable[Source], flags: Sequence[str], work: Path, log: Path
) -> list[str]:
    """Compile ``sources``, as many at a time as there are cores; return the names of the objects in ``work``.

    Paths of sources are absolute: the compiler's own cache must tell apart the files of builds that run side by side.
    """

    def compile_one(source: Source) -> str:
        target = f"{source.path.stem}.o"
        command = [*compiler.command, *flags, *source.flags, "-c", "-o", target, str(source.path)]
        run_tool(f"the compiler ({compiler.language})", command, work, log)
        return target

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        return list(pool.map(compile_one, sources))


def link(compiler: Compiler, objects: Sequence[str], flags: Sequence[str], work: Path, log: Path) -> Path:
    """Link a shared library ``work/simulator.so``."""
    name = "simulator.so"
    run_tool("the linker", [*compiler.command, "-shared", "-s", *flags, "-o", name, *objects], work, log)
    return work / name


def run_tool(
    what: str, command: Sequence[str], work: Path, log: Path, environment: Mapping[str, str] | None = None
) -> None:
    """Run ``command`` in the folder ``work``, appending its output to ``log``; ``environment`` is added to that of this
    process. Raises :class:`BuildError`, which says that ``what`` failed and why."""
    with open(log, "a") as output:
        output.write(shlex.join(command) + "\n")
        output.flush()
        start = output.tell()
        try:
            done = subprocess.run(
                command,
                cwd=work,
                stdout=output,
                stderr=output,
                env={**tool_environment(), **(environment or {})},
                check=False,
            )
        except OSError as error:
            raise BuildError(f"{what} could not be started ({command[0]}: {error.strerror})") from None
    if done.returncode:
        lines = log.read_bytes()[start:].decode(errors="replace").splitlines()
        reason = next((line for line in lines if "error:" in line.lower()), lines[-1] if lines else "no output")
        raise BuildError(f"{what} failed with exit code {done.returncode}: {reason.strip()} (log: {log})")


def tool_environment() -> dict[str, str]:
    """Return the environment of tools, in which zig keeps what it builds in our cache folder."""
    zig = str(cache_dir() / "zig")
    return {**os.environ, "ZIG_GLOBAL_CACHE_DIR": zig, "ZIG_LOCAL_CACHE_DIR": zig}
