"""Compile the C driver with the compiler that the simulators use: as a library that Python can load."""

from pathlib import Path

from sim.toolchain import CC, Source, compile_all, link

HERE = Path(__file__).parent
HEADER_FOLDER = HERE.parent.parent / "docs"  #: of caesura.h
FLAGS = ("-std=c99", "-O2", "-fPIC", "-Wall", "-Wextra", "-Werror", "-pedantic")


def build(work: Path) -> Path:
    """The shared library, made in the folder ``work``. Raises ``sim.toolchain.compilers.BuildError``."""
    work, log = work.resolve(), work.resolve() / "build.log"
    sources = [Source(path) for path in sorted(HERE.glob("*.c"))]
    objects = compile_all(CC, sources, [*FLAGS, f"-I{HEADER_FOLDER}", f"-I{HERE}"], work, log)
    return link(CC, objects, ("-nostdlib",), work, log)  # what it needs of C is in the process that loads it
