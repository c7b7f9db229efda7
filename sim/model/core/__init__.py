"""Runs time and the memory port of the fast model in C: events in order, DRAM, the write ports of LV2, LD2 and ST2.

Everything that happens goes through one heap of events, Python's among them, so that what happens in one cycle happens
in one order. ``sim.model.agenda``, ``memory`` and ``memory_units`` say what the parts do.
"""

import ctypes
import weakref
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from sim.c_library import c_library, structure

NOBODY = -1  #: no number, no time
TAKEN, DONE, STRUCK, GIVEN_UP = range(4)  #: what is told of a command
IN_PYTHON, LOAD_UNIT, STORE_UNIT = range(3)  #: kinds of clients

#: The layouts of ``core.h``.
State = structure("State", "stopped failed resumed events_planned bursts_accepted")
Params = structure(
    "Params",
    "latency miss bandwidth row_shift banks bank_bits interval closed queue_bursts axi_stage axi_return dram_queued "
    "write_buffered engines lv1_word dram_word lv2_banks outstanding in_flight planned fetched filled landed settled "
    "store_buffered full ahead",
)
Given = structure("Given", "number side base into lead trail runs steps count part", "bursts")
Work = structure(
    "Work", "runs steps late ahead setup tail length period low high fetched",
    "reads others writes parameters fetches",
)  # fmt: skip
Client = structure("Client", "kind port moved number", "unit")

_I64, _POINTER = ctypes.c_int64, ctypes.c_void_p
_TOLD = {
    "event": ctypes.CFUNCTYPE(None, _I64, _I64),
    "accepted": ctypes.CFUNCTYPE(None, _I64, _I64),
    "served": ctypes.CFUNCTYPE(None, _I64, _I64),
    "command": ctypes.CFUNCTYPE(None, _I64, _I64, _I64, _I64),
    "banks": ctypes.CFUNCTYPE(_I64, _I64, _I64, ctypes.POINTER(_I64)),
}


class _Told(ctypes.Structure):
    _fields_ = list(_TOLD.items())


#: Arguments behind the first, which is a pointer, and what comes back.
_FUNCTIONS: dict[str, tuple[list[Any], Any]] = {
    "new": ([], _POINTER),
    "free": ([], None),
    "at": ([_I64, _I64], None),
    "run": ([_I64], None),
    "memory": ([ctypes.POINTER(Params)], None),
    "set_timing": ([_I64] * 3, None),
    "set_fault": ([_I64] * 7, None),
    "set_stalls": ([_I64] * 3, None),
    "request": ([_POINTER, *[_I64] * 5], _I64),
    "lv2_store": ([_I64] * 3, _I64),
    "lv2_forget": ([_I64], None),
    "arena": ([_I64] * 2, _I64),
    "pipe": ([_I64] * 5, _POINTER),
    "pipe_begin": ([], None),
    "pipe_clear": ([], None),
    "pipe_put_back": ([_I64], _I64),
    "pipe_run": ([_POINTER], _I64),
    "load_unit": ([_I64] * 2, _POINTER),
    "load_offer": ([_I64, ctypes.POINTER(Given)], _I64),
    "load_abandon": ([_I64], _I64),
    "load_clear": ([], None),
    "load_stop": ([], None),
    "load_outstanding": ([], _I64),
    "store_unit": ([_I64] * 2, _POINTER),
    "store_offer": ([_I64, ctypes.POINTER(Given)], _I64),
    "store_stop": ([], None),
    "store_clear": ([], None),
    "store_outstanding": ([], _I64),
}


@cache
def functions() -> Any:
    """Return the functions of the core, without the prefix of their names."""
    loaded = c_library(*sorted(Path(__file__).parent.glob("*.c")), standard=True)
    found = type("Functions", (), {})()
    for name, (arguments, result) in _FUNCTIONS.items():
        function = getattr(loaded, f"caesura_{name}")
        function.argtypes, function.restype = [_POINTER, *arguments], result
        setattr(found, name, function)
    return found


class Core:
    """Is one core. ``call`` are its functions, ``address`` their first argument, ``state`` what Python sees of it.

    Whoever uses a core says by :meth:`tell` whom it tells what. An error there stops the run; it is raised by
    :meth:`check`.
    """

    def __init__(self) -> None:
        self.call = functions()
        self._error: BaseException | None = None
        self._told = _Told(*(kind(self._guarded(name)) for name, kind in _TOLD.items()))
        self._tell: dict[str, Callable[..., Any]] = {}
        self.address = self.call.new(ctypes.byref(self._told))
        self.state: Any = State.from_address(self.address)
        weakref.finalize(self, self.call.free, self.address)

    def tell(self, **told: Callable[..., Any]) -> None:
        """Tell these functions what happens from now on, by the names in ``told_t``."""
        self._tell.update(told)

    def _guarded(self, name: str) -> Callable[..., Any]:
        def told(*numbers: Any) -> Any:
            core = known()
            assert core is not None
            try:
                return core._tell[name](*numbers)
            except BaseException as error:
                core._error = core._error or error
                core.state.stopped = 0
                return 0

        known = weakref.ref(self)  # or it would never be given back
        return told

    def check(self) -> None:
        """Raise what went wrong in a function that was told something."""
        error, self._error = self._error, None
        if error is not None:
            raise error
