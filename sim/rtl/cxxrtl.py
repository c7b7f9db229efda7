"""The fast backend: the netlist compiled to native code."""

import ctypes
import os
from collections.abc import Callable
from os import PathLike
from pathlib import Path

from hw.params import SocParams
from sim.bus import HostCosts, Progress
from sim.rtl.base import RtlBus, Until
from sim.rtl.build import shared_object
from sim.rtl.rtlil import to_rtlil
from sim.rtl.top import SimTop

SLICE = 1 << 17  #: cycles per call into native code, so that interrupting Python and progress work


class CxxrtlBus(RtlBus):
    """:class:`sim.bus.Bus` over the compiled netlist, cycle for cycle equal to ``PysimBus``.

    Parameters
    ----------
    params : SocParams
    make : callable
        Makes the design; compiled at the first use of its netlist, which may take minutes, and cached.
    costs : HostCosts
    vcd : path, optional
        Write waveforms of all signals, but not of memories. Needs another, slower build.
    progress : optional
        Called with the cycle about every 100,000 cycles.
    source : str, optional
        Identifies what the design is made from; where its library is cached, the design is not even made.

    Raises :class:`sim.rtl.build.BuildError`.
    """

    def __init__(
        self,
        params: SocParams,
        make: Callable[[], SimTop],
        *,
        costs: HostCosts | None = None,
        vcd: str | PathLike | None = None,
        progress: Progress | None = None,
        source: str | None = None,
    ) -> None:
        super().__init__(params, costs or HostCosts(), progress)

        def netlist() -> str:
            top = make()
            return to_rtlil(top, name="sim_top", clock=top.domain.clk)

        self._library = _load_library(shared_object(netlist, source=source, vcd=vcd is not None))
        self._handle = self._library.caesura_create(None if vcd is None else os.fsencode(vcd))
        if not self._handle:
            raise OSError(f"cannot write waveforms to {vcd}")
        self._memory = self._library.caesura_memory(self._handle)

    def _start_access(self, write: bool, address: int, value: int) -> None:
        self._library.caesura_start_access(self._handle, write, address, value)

    def _response(self) -> tuple[int, bool]:
        outputs = self._library.caesura_outputs(self._handle)
        return outputs & 0xFFFFFFFF, bool(outputs >> 32 & 1)

    def _irq(self) -> bool:
        return bool(self._library.caesura_outputs(self._handle) >> 33 & 1)

    def _run(self, limit: int, until: Until) -> tuple[int, bool]:
        ran, met = 0, False
        while ran < limit and not met:
            result = self._library.caesura_run(self._handle, min(SLICE, limit - ran), until)
            ran += result >> 1
            met = bool(result & 1)
            if self._progress:
                self._progress(self._cycle + ran)
        return ran, met

    def _load(self, address: int, size: int) -> bytes:
        return ctypes.string_at(self._memory + address, size)

    def _store(self, address: int, data: bytes) -> None:
        ctypes.memmove(self._memory + address, data, len(data))

    def _stall(self, rate: int, seed: int) -> None:
        self._library.caesura_stall(self._handle, rate, seed)

    def _release(self) -> None:
        self._library.caesura_destroy(self._handle)
        self._handle = self._memory = None


def _load_library(path: Path) -> ctypes.CDLL:
    result = ctypes.CDLL(str(path))
    for name, returns, *arguments in (
        ("create", ctypes.c_void_p, ctypes.c_char_p),
        ("destroy", None, ctypes.c_void_p),
        ("start_access", None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_uint32),
        ("stall", None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32),
        ("run", ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_int),
        ("outputs", ctypes.c_uint64, ctypes.c_void_p),
        ("memory", ctypes.c_void_p, ctypes.c_void_p),
    ):
        function = getattr(result, f"caesura_{name}")
        function.restype, function.argtypes = returns, arguments
    return result
