"""Models where units meet at a bank of LV1 or LV2, ``hw/scratchpad.py``: the ports of LD1, LD0, ST1 and VEC."""

import ctypes
from typing import Any

import numpy as np
import numpy.typing as npt

from hw.contract.isa import Unit
from hw.contract.params import SocParams
from hw.contract.timing import VEC_CHECK
from sim.cost.exact.copies import NUMBERED, CopySteps, copy_words
from sim.cost.exact.pipelines import VecSteps, parameters_of_vec, vec_steps, words_of_vec
from sim.model.core import NOBODY, Core, Work
from sim.model.pipes import ChipPipe

#: Ports in their order: of the two operands of a VEC the first stands for both, and each engine has two at LV2.
_LV1_READERS, _LV1_WRITERS = (Unit.LD0, Unit.ST1, Unit.VEC, None), (Unit.LD1, Unit.VEC)
_PER_ENGINE = 2
_NONE = (NOBODY, 0)  #: a port that nobody follows


class BankPorts:
    """Knows which banks each port asks for when, as far as instructions have been timed.

    A bank takes the first port from a turn that moves on in every cycle in which some port must wait. An instruction
    learns as it is timed by how much it is later because of those that were timed before it. These are later, too: at
    LV2 their ends are told when they come, so they know; at LV1 they have been told, and their unit's next instruction
    is longer by as much.

    The ports of ST2 are left out; those of LD2 are in ``Lv2Writes``.
    """

    def __init__(self, params: SocParams, core: Core) -> None:
        self._params, self._core = params, core
        self._lv2_writes, self._lv2_reads = (
            self._arena(_PER_ENGINE * params.engines, params.lv2_banks) for _ in range(2)
        )
        self._lv1 = [
            [self._arena(len(ports), params.lv1_banks) for ports in (_LV1_READERS, _LV1_WRITERS)]
            for _ in range(params.engines)
        ]

    def _arena(self, ports: int, banks: int) -> int:
        number: int = self._core.call.arena(self._core.address, ports, banks)
        return number

    def pipe(self, engine: int, unit: Unit) -> ChipPipe:
        """Return LD1, LD0, ST1 or VEC of ``engine``."""
        reads, writes = self._lv1[engine]
        near = (reads, _LV1_READERS.index(unit)) if unit in _LV1_READERS else _NONE
        back = (writes, _LV1_WRITERS.index(unit)) if unit in _LV1_WRITERS else _NONE
        alone = self._params.engines == 1
        into = {
            Unit.LD1: (_NONE if alone else (self._lv2_reads, _PER_ENGINE * engine), back),
            Unit.LD0: (near, _NONE),
            Unit.ST1: (near, (self._lv2_writes, _PER_ENGINE * engine)),
            Unit.VEC: (near, back),
        }
        return ChipPipe(self._core, unit, into[unit], self._described, self._params.lv1_word)

    def _described(self, work: Any) -> int:
        """Return where in memory the core finds what the formulas say of an instruction; ``work`` keeps it there."""
        kept = self._vec(work) if isinstance(work, VecSteps) else self._copy(work)
        work.kept = kept
        work.core = ctypes.addressof(kept[0])
        return work.core

    def _copy(self, work: CopySteps) -> Any:
        if work.runs == 1:
            return (Work(*work[:4], 0, 0, work.steps, 1, 0, work.steps - 1, work.steps),)
        words = copy_words(self._params.lv1_word, work.fields)
        length = min(work.steps, len(words.reads))
        read = words.fetches[words.fetches >= 0]
        read -= (read >= NUMBERED // 2) * NUMBERED
        low, high = (int(read.min()), int(read.max())) if len(read) else (0, -1)
        return Work(
            *work[:4], 0, 0, length, 1, low, high, len(words.fetches), words.reads.ctypes.data, None,
            words.writes.ctypes.data, None, words.fetches.ctypes.data,
        ), words  # fmt: skip

    def _vec(self, work: VecSteps) -> Any:
        asks = words_of_vec(self._params, work.fields)
        known = [words for words in asks[:3] if words is not None]
        a, b, writes = (None if words is None else words.ctypes.data for words in asks[:3])
        length = min([work.steps, *map(len, known)])
        parameters = parameters_of_vec(self._params, work.fields)
        usual = vec_steps(self._params, *work.fields).setup
        if work.setup != usual:  # of a unit that is faster or slower
            parameters = _stretched(parameters, len(parameters) * (work.setup - 1) // usual)
        return Work(
            len(parameters), work.steps, 0, VEC_CHECK, work.setup, work.tail, length, asks.period or 1, 0, 0, 0, a, b,
            writes, parameters.ctypes.data,
        ), asks, parameters  # fmt: skip


def _stretched(words: npt.NDArray[np.int32], length: int) -> npt.NDArray[np.int32]:
    """Return ``words``, spread over ``length`` cycles, or as many of them as these have room for."""
    found = np.full(length, -1, np.int32)
    asked = np.flatnonzero(words >= 0)
    if length:
        found[asked * length // len(words)] = words[asked]
    return found
