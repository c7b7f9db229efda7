"""When the moments of a run are, worked out in C: compiled once, in a second, and kept with the simulators."""

import ctypes
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hw.contract.params import SocParams
from hw.contract.timing import AXI_STAGE, DRAM_QUEUE_BURSTS, DRAM_QUEUED, WRITE_BUFFERED
from sim.c_library import c_library, structure

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_EVENT_BYTES = 24


class CircularError(ValueError):
    """Moments that wait for each other."""


_Dram = structure(
    "_Dram", "latency row_miss bandwidth interval closed queue_bursts stage queued write_buffered banks", ""
)
_Run = structure(
    "_Run",
    "nodes bursts",
    "first target lag late sources burst_of taken ended port bank row beats pause held write early",
)
_Space = structure("_Space", "", "time missing ready heap row free epoch")

MOMENTS = ("offered", "taken", "ended")  #: of a burst
#: Columns of the bursts, by name: see ``replay.c``.
BURST_COLUMNS = {
    "taken": np.int32, "ended": np.int32, "port": np.int32, "bank": np.int32, "row": np.int32, "beats": np.int32,
    "pause": np.int32, "held": np.int32, "write": np.uint8, "early": np.uint8,
}  # fmt: skip


class Replay:
    """A graph of moments, which were when they were ``recorded``, with edges from ``sources`` to ``targets``, and the
    memory that says when bursts are taken and end. ``bursts``: :data:`BURST_COLUMNS` by name, and ``offered``: the
    moments at which bursts are. ``edges``: the caller's edges in the order in which :meth:`times` wants their lags.
    """

    def __init__(self, recorded: Floats, sources: Ints, targets: Ints, bursts: Mapping[str, Ints]) -> None:
        count = len(recorded)
        self._library = _library()
        place = np.empty(count, np.int64)
        self._order = np.argsort(recorded, kind="stable")  # what is near in time is near in memory
        place[self._order] = np.arange(count)
        sources, targets = place[sources], place[targets]
        bursts = {name: place[column] if name in MOMENTS else column for name, column in bursts.items()}
        self._place = place
        self.edges = np.argsort(sources, kind="stable")
        self._count = count
        waiting = np.bincount(targets, minlength=count)
        driven = np.concatenate([bursts["taken"], bursts["ended"]])  # by the memory alone
        assert not waiting[driven].any()
        waiting[driven] = 1
        self._driven = driven
        burst_of = np.full(count, -1, np.int32)
        burst_of[bursts["offered"]] = np.arange(len(bursts["offered"]))
        self._arrays: dict[str, npt.NDArray[Any]] = {
            "first": np.concatenate([[0], np.cumsum(np.bincount(sources, minlength=count))]).astype(np.int64),
            "target": targets[self.edges].astype(np.int32), "sources": waiting.astype(np.int32), "burst_of": burst_of,
            **{name: np.ascontiguousarray(bursts[name], kind) for name, kind in BURST_COLUMNS.items()},
        }  # fmt: skip
        self._late = np.zeros(count)

        self._recorded = np.ascontiguousarray(recorded[self._order], np.float64)
        self._late = np.zeros(count)
        self._work: dict[str, npt.NDArray[Any]] = {
            "time": np.empty(count), "missing": np.empty(count, np.int32), "ready": np.empty(count, np.int32),
            "heap": np.empty((4 * len(bursts["beats"]) + 8) * _EVENT_BYTES, np.uint8),
        }  # fmt: skip

    def calibrate(self, lags: Floats, *, begins_only: bool = False) -> Floats:
        """What is missing in the graph stays as it was: by how much each moment was later than it explains.
        ``begins_only``: only moments that wait for nothing are when they were."""
        run = self._run(lags)
        self._library.caesura_calibrate(ctypes.byref(run), _at(self._recorded), _at(self._late))
        self._late[self._driven] = 0
        if begins_only:
            self._late[self._arrays["sources"] > 0] = 0
        return self._late[self._place]

    def times(self, lags: Floats, params: SocParams) -> Floats:
        """When all moments are with the memory of ``params``. Raises :class:`CircularError`."""
        count = self._count
        banks = {name: np.zeros(params.dram_banks, np.int64) for name in ("row", "free", "epoch")}
        space: dict[str, npt.NDArray[Any]] = {**self._work, **banks}
        dram = _Dram(
            params.dram_latency, params.dram_row_miss, params.dram_bandwidth, params.dram_refresh_interval,
            params.dram_refresh_cycles, DRAM_QUEUE_BURSTS, AXI_STAGE, DRAM_QUEUED, WRITE_BUFFERED, params.dram_banks,
        )  # fmt: skip
        run, work = self._run(lags), _Space(**{name: array.ctypes.data for name, array in space.items()})
        known = self._library.caesura_replay(ctypes.byref(dram), ctypes.byref(run), ctypes.byref(work))
        if known < count:
            raise CircularError(f"{count - known} of {count} moments wait for each other")
        return space["time"][self._place]

    def _run(self, lags: Floats) -> ctypes.Structure:
        arrays = {name: array.ctypes.data for name, array in self._arrays.items()}
        return _Run(
            nodes=self._count, bursts=len(self._arrays["beats"]), lag=lags.ctypes.data, late=self._late.ctypes.data,
            **arrays,
        )  # fmt: skip


def _at(array: npt.NDArray[Any]) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


@cache
def _library() -> Any:
    """Raises :class:`sim.rtl.toolchain.BuildError` if it cannot be compiled."""
    loaded = c_library(Path(__file__).with_suffix(".c"))
    for name, arguments in (("replay", 3), ("calibrate", 3)):
        function = getattr(loaded, f"caesura_{name}")
        function.argtypes = [ctypes.c_void_p] * arguments
        function.restype = ctypes.c_int64 if name == "replay" else None
    return loaded
