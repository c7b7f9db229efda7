"""The longest paths through a graph, in C: compiled once, in a second, and kept with the simulators."""

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_SOURCE = Path(__file__).with_suffix(".c")
_FLAGS = ("-O2", "-fPIC", "-nostdlib")


class CircularError(ValueError):
    """Moments that wait for each other."""


class LongestPath:
    """Nodes in an order in which none comes before what it depends on, and the edges that end at each.

    ``sources``, ``targets``: nodes of each edge, numbered as the caller likes up to ``count``. ``edges``: the caller's
    edges in the order of this class, ``order``: the caller's nodes, likewise. Raises :class:`CircularError`.
    """

    def __init__(self, count: int, sources: Ints, targets: Ints) -> None:
        self._library = _library()
        out = np.argsort(sources, kind="stable")
        missing = np.bincount(targets, minlength=count).astype(np.int32)
        self.order = np.empty(count, np.int32)
        first_out, followers = _offsets(sources, count), targets[out].astype(np.int32)
        ordered = self._library.caesura_order(count, _at(first_out), _at(followers), _at(missing), _at(self.order))
        if ordered < count:
            raise CircularError(f"{count - ordered} of {count} moments wait for each other")
        place = np.empty(count, np.int64)
        place[self.order] = np.arange(count)
        self.edges = np.argsort(place[targets], kind="stable")
        self._sources = place[sources[self.edges]].astype(np.int32)
        self._first = _offsets(place[targets], count)
        self._count = count

    def calibrate(self, lags: Floats, recorded: Floats) -> tuple[Floats, Floats]:
        """What each node is late by, and when it is, given when it was: negative where that is not known. Lags and
        nodes are in the order of this class."""
        late, times = np.empty(self._count), np.empty(self._count)
        self._library.caesura_calibrate(
            self._count, _at(self._first), _at(self._sources), _at(lags), _at(recorded), _at(late), _at(times)
        )
        return late, times

    def times(self, lags: Floats, late: Floats) -> Floats:
        """When each node is."""
        times = np.empty(self._count)
        self._library.caesura_times(
            self._count, _at(self._first), _at(self._sources), _at(lags), _at(late), _at(times)
        )  # fmt: skip
        return times


def _offsets(nodes: Ints, count: int) -> Ints:
    """Where the edges of each node begin once they are sorted by it."""
    return np.concatenate([[0], np.cumsum(np.bincount(nodes, minlength=count))]).astype(np.int64)


def _at(array: npt.NDArray[Any]) -> ctypes.c_void_p:
    assert array.flags.c_contiguous
    return ctypes.c_void_p(array.ctypes.data)


@cache
def _library() -> Any:
    """Raises :class:`sim.rtl.toolchain.BuildError` if it cannot be compiled."""
    from sim.rtl.cache import Recipe, library  # where they are used: they bring Amaranth
    from sim.rtl.stages import Stages
    from sim.rtl.toolchain import CC, Source, compile_all, link

    def build(files: Any, work: Path, log: Path, stages: Stages) -> Path:
        return link(CC, compile_all(CC, [Source(_SOURCE)], _FLAGS, work, log), _FLAGS, work, log)

    recipe = Recipe("longest_path", (CC.version, *_FLAGS), lambda _: {_SOURCE.name: _SOURCE.read_text()}, build)
    loaded = ctypes.CDLL(str(library(recipe, stages=Stages(quiet=True))))
    pointers = [ctypes.c_void_p]
    for name, arguments in (("order", 4), ("times", 5), ("calibrate", 6)):
        function = getattr(loaded, f"caesura_{name}")
        function.argtypes = [ctypes.c_int64, *pointers * arguments]
        function.restype = ctypes.c_int64 if name == "order" else None
    return loaded
