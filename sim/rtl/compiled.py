"""Puts a simulator in a shared library behind ``Bus``."""

import ctypes
import os
from os import PathLike
from pathlib import Path

import numpy as np
import numpy.typing as npt

from hw.contract.bus import HostCosts, Progress
from hw.contract.params import SocParams
from sim.rtl.base import RtlBus, Until
from sim.toolchain.compilers import BuildError

SLICE = 1 << 17  #: cycles per call into native code, so that interrupting Python and progress work

#: The C interface, as ``caesura_<name>``: result, arguments.
_INTERFACE = (
    ("create", ctypes.c_void_p, ctypes.c_char_p),
    ("destroy", None, ctypes.c_void_p),
    ("start_access", None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_uint32),
    ("stall", None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32),
    ("fault", None, ctypes.c_void_p, *[ctypes.c_uint32] * 3),
    ("dram_timing", None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_uint32),
    ("run", ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_int),
    ("outputs", ctypes.c_uint64, ctypes.c_void_p),
    ("memory", ctypes.c_void_p, ctypes.c_void_p),
    ("register_names", ctypes.c_char_p),
    ("registers", None, ctypes.c_void_p, ctypes.c_void_p),
)


class CompiledBus(RtlBus):
    """Is a :class:`hw.contract.bus.Bus` over a compiled netlist, cycle for cycle equal to ``PysimBus``.

    Parameters
    ----------
    params : SocParams
    library : Path
        The shared library; :class:`sim.toolchain.compilers.BuildError` if it cannot be loaded.
    backend : str
        What made the library, for messages.
    costs : HostCosts
    vcd : path, optional
        Write waveforms of all signals, for libraries that can.
    progress : optional
        Called with the cycle about every 100,000 cycles.
    """

    def __init__(
        self,
        params: SocParams,
        library: Path,
        *,
        backend: str,
        costs: HostCosts | None = None,
        vcd: str | PathLike | None = None,
        progress: Progress | None = None,
    ) -> None:
        super().__init__(params, costs, progress)
        self.backend = backend
        self._library = _load_library(library)
        self._handle = self._library.caesura_create(None if vcd is None else os.fsencode(vcd))
        if not self._handle:
            raise OSError(f"cannot write waveforms to {vcd}" if vcd else f"not enough memory to simulate {params.name}")
        self._memory = self._library.caesura_memory(self._handle)
        self._values: npt.NDArray[np.uint64] | None = None
        self.set_dram_timing(params)

    # -- for comparisons -------------------------------------------------------------------------------------
    @property
    def register_names(self) -> list[tuple[int, str]]:
        """Return bits and hierarchical name of every register, in the order of :meth:`registers`."""
        lines = self._library.caesura_register_names().decode().splitlines()
        return [(int(bits), name) for bits, name in (line.split(" ", 1) for line in lines)]

    def registers(self) -> npt.NDArray[np.uint64]:
        """Return every register after the last clock edge, in the order of ``register_names``: 64-bit words, least
        significant first. The next call overwrites the array."""
        if self._values is None:
            self._values = np.zeros(sum((bits + 63) // 64 for bits, _ in self.register_names), np.uint64)
        self._library.caesura_registers(self._handle, self._values.ctypes.data)
        return self._values

    # -- hooks -----------------------------------------------------------------------------------------------
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

    def _set(self, what: str, *values: int) -> None:
        getattr(self._library, f"caesura_{what}")(self._handle, *values)

    def _release(self) -> None:
        self._library.caesura_destroy(self._handle)
        self._handle = self._memory = None


def _load_library(path: Path) -> ctypes.CDLL:
    try:
        result = ctypes.CDLL(str(path))
        for name, returns, *arguments in _INTERFACE:
            function = getattr(result, f"caesura_{name}")
            function.restype, function.argtypes = returns, arguments
    except (OSError, AttributeError) as error:
        raise BuildError(f"the compiled simulator cannot be used ({error}); remove {path} to build it again") from None
    return result
