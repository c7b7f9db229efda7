"""Models the write ports of LV2, ``hw/scratchpad.py``, where loads of LD2 meet stores of ST1 at a bank."""

from array import array
from collections import deque
from functools import lru_cache
from typing import Any

import numpy as np

from hw.contract.params import SocParams
from sim.cost.exact.copies import CopySteps, written_words
from sim.model.core import Core

NOWHERE = -1  #: no bank


@lru_cache(maxsize=1 << 8)
def _banks(word: int, banks: int, first: int, fields: tuple[int, ...]) -> "array[int]":
    """Return to which of ``banks`` each step of a copy writes a word, or NOWHERE; ``first`` is the bank of byte 0."""
    words = np.asarray(written_words(word, fields))
    return array("i", np.where(words < 0, NOWHERE, (first + words) % banks).tolist())


class Lv2Writes:
    """Knows who writes which bank when. Stores are known ahead of time, loads burst by burst as their words come.

    A bank takes the first port from a turn that moves on in every cycle in which some port must wait. A load that waits
    holds up the data behind it; a store goes on later, though it has been told when it ends. Stores that meet each
    other where no load comes are not followed, nor are loads of two engines.
    """

    def __init__(self, params: SocParams, core: Core) -> None:
        self._word, self._count, self._core = params.lv1_word, params.lv2_banks, core
        #: Word of byte 0 and what the formulas say: the banks of a store are worked out when a load may meet it.
        self._stores: list[deque[tuple[int, CopySteps]]] = [deque() for _ in range(params.engines)]
        core.tell(banks=self._banks)

    def store(self, engine: int, done: int, into: int, work: CopySteps) -> None:
        """Enter a copy of ST1 to byte ``into`` of LV2 that will signal at ``done``."""
        left = self._core.call.lv2_store(self._core.address, engine, done - work.steps, work.steps)
        stores = self._stores[engine]
        stores.append((into // self._word, work))
        while len(stores) > left:
            stores.popleft()

    def forget(self, engine: int) -> None:
        """Forget the stores of the ST1 of ``engine``, which has nothing to write any more."""
        self._core.call.lv2_forget(self._core.address, engine)
        self._stores[engine].clear()

    def _banks(self, engine: int, left: int, length: Any) -> int:
        first, work = self._stores[engine][-left]
        banks = _banks(self._word, self._count, first % self._count, work.fields)
        length[0] = len(banks)
        address: int = banks.buffer_info()[0]
        return address
