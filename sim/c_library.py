"""Compiles C files of ours to libraries: once, in a second, and keeps them with the simulators."""

import ctypes
from pathlib import Path
from typing import Any

from sim.toolchain.compiled_libraries import Recipe, library
from sim.toolchain.compilers import CC, Source, compile_all, link
from sim.toolchain.stages import Stages

_FLAGS = ("-O2", "-fPIC")
_STANDARD, _ALONE = "-fvisibility=hidden", "-nostdlib"


def c_library(*sources: Path, standard: bool = False) -> Any:
    """Return the functions of ``sources``, compiled with the headers beside them. With ``standard`` they need the
    standard library, and say which functions are seen. Raises :class:`sim.toolchain.compilers.BuildError` if they
    cannot be compiled."""
    flags = (*_FLAGS, _STANDARD if standard else _ALONE)
    texts = {*sources, *(path for source in sources for path in source.parent.glob("*.h"))}

    def build(files: Any, work: Path, log: Path, stages: Stages) -> Path:
        return link(CC, compile_all(CC, map(Source, sources), flags, work, log), flags, work, log)

    recipe = Recipe(
        sources[0].stem, (CC.version, *flags), lambda _: {path.name: path.read_text() for path in sorted(texts)}, build
    )
    return ctypes.CDLL(str(library(recipe, stages=Stages(quiet=True))))


def structure(name: str, numbers: str, pointers: str = "") -> type[ctypes.Structure]:
    """Return a C structure with the names of its members: integers of 64 bits, and pointers behind them."""
    fields = [(one, ctypes.c_int64) for one in numbers.split()] + [(one, ctypes.c_void_p) for one in pointers.split()]
    return type(name, (ctypes.Structure,), {"_fields_": fields})
