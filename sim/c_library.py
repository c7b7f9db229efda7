"""C files of ours as libraries: compiled once, in a second, and kept with the simulators."""

import ctypes
from pathlib import Path
from typing import Any

_FLAGS = ("-O2", "-fPIC", "-nostdlib")


def c_library(source: Path) -> Any:
    """The functions of ``source``, which needs no other library. Raises :class:`sim.rtl.toolchain.BuildError` if it
    cannot be compiled."""
    from sim.rtl.cache import Recipe, library  # where they are used: they bring Amaranth
    from sim.rtl.stages import Stages
    from sim.rtl.toolchain import CC, Source, compile_all, link

    def build(files: Any, work: Path, log: Path, stages: Stages) -> Path:
        return link(CC, compile_all(CC, [Source(source)], _FLAGS, work, log), _FLAGS, work, log)

    recipe = Recipe(source.stem, (CC.version, *_FLAGS), lambda _: {source.name: source.read_text()}, build)
    return ctypes.CDLL(str(library(recipe, stages=Stages(quiet=True))))


def structure(name: str, numbers: str, pointers: str) -> type[ctypes.Structure]:
    """A structure of C by the names of its members: integers of 64 bits, and pointers behind them."""
    fields = [(one, ctypes.c_int64) for one in numbers.split()] + [(one, ctypes.c_void_p) for one in pointers.split()]
    return type(name, (ctypes.Structure,), {"_fields_": fields})
