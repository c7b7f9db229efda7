"""The write ports of LV2: ``hw/scratchpad.py``, where loads of LD2 meet stores of ST1 at a bank."""

from array import array
from collections import deque
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from hw.contract.params import SocParams
from hw.contract.timing import AXI_RETURN, COPY_LANDED
from sim.timing.copies import CopySteps, written_words

NEVER = 1 << 60
NOWHERE = -1  #: no bank
_LANDED = COPY_LANDED - 1  #: from a step of the realigner until its word is at the port
_BEHIND = AXI_RETURN + _LANDED  #: from a beat at the memory until its word is at the port


class _Store:
    """A copy of ST1 that puts a word to the port in each cycle from ``start`` on, to ``banks`` in turn (NOWHERE: none).

    ``first``: the word of byte 0 of its destination.
    """

    __slots__ = ("_work", "banks", "first", "start", "steps")

    def __init__(self, start: int, first: int, work: CopySteps) -> None:
        self.start, self.first, self.steps, self._work = start, first, work.steps, work
        self.banks: Sequence[int] = ()

    def look(self, word: int, banks: int) -> None:
        """Work out ``banks``, in a memory with as many of words of ``word`` bytes."""
        self.banks = _banks(word, banks, self.first % banks, self._work.fields)


@lru_cache(maxsize=1 << 8)
def _banks(word: int, banks: int, first: int, fields: tuple[int, ...]) -> Sequence[int]:
    words = np.asarray(written_words(word, fields))
    return array("i", np.where(words < 0, NOWHERE, (first + words) % banks).tolist())


class Lv2Writes:
    """Who writes which bank when. Stores are known ahead of time, loads burst by burst as their words come.

    A bank takes the first port from a turn that moves on in every cycle in which some port must wait. A load that waits
    holds up the data behind it; a store goes on later, though it has been told when it ends. Stores that meet each
    other where no load comes are not followed, nor are loads of two engines.

    ``soonest``: the last beat of a burst that moves before this cycle meets nobody.
    """

    def __init__(self, params: SocParams) -> None:
        self._word, self._dram_word, self._count = params.lv1_word, params.dram_word, params.lv2_banks
        self._stores: list[deque[_Store]] = [deque() for _ in range(params.engines)]
        self._landed = [(-1, -1)] * params.engines  # when the last two words of each LD2 were written
        self._turn = 0
        self.soonest = NEVER

    def store(self, engine: int, done: int, into: int, work: CopySteps) -> None:
        """A copy of ST1 to byte ``into`` of LV2 will signal at ``done``."""
        start = done - work.steps
        self._stores[engine].append(_Store(start, into // self._word, work))
        self.soonest = min(self.soonest, start - _BEHIND)

    def forget(self, engine: int) -> None:
        """The ST1 of ``engine`` has nothing to write any more."""
        self._stores[engine].clear()

    def held(self, engine: int, time: int, into: int, beats: int) -> int:
        """By how many cycles the data of the burst are held up whose first beat moves at ``time``, to byte ``into``."""
        before, latest = self._landed[engine]
        begin = time + _BEHIND
        writing = [number for number in range(len(self._stores)) if self._writes(number, begin, begin + beats)]
        taken = time + AXI_RETURN - 1  # when the realigner took the word before
        if writing or latest >= begin:
            load, word, count = 2 * engine + 1, self._word, self._count
            alone = self._stores[writing[0]] if len(writing) == 1 else None
            for at in range(into, into + beats * self._dram_word, self._dram_word):
                taken = taken + 1 if taken >= before else before
                here = taken + _LANDED if taken + _LANDED > latest else latest + 1
                bank = at // word % count
                if alone:  # most words meet nobody: see this at once
                    step = here - alone[0].start
                    if step < 0 or (step < len(alone[0].banks) and alone[0].banks[step] != bank):
                        before, latest = latest, here
                        continue
                while self._refused(here, load, bank, writing):
                    here += 1
                before, latest = latest, here
        else:
            taken += beats
            before, latest = begin + beats - 2, begin + beats - 1
        self._landed[engine] = before, latest
        self.soonest = min((stores[0].start - _BEHIND for stores in self._stores if stores), default=NEVER)
        if latest > taken + _LANDED:  # the next burst may be held up by this one
            self.soonest = min(self.soonest, time)
        return taken - (time + AXI_RETURN + beats - 1)

    def _writes(self, engine: int, begin: int, end: int) -> bool:
        """Whether ST1 of ``engine`` begins before ``end`` what it has not ended before ``begin``."""
        stores = self._stores[engine]
        while stores and stores[0].start < end:
            store = stores[0]
            if store.start + store.steps > begin:
                if not store.banks:
                    store.look(self._word, self._count)
                return True
            stores.popleft()
            if stores:  # one behind the other
                stores[0].start = max(stores[0].start, store.start + store.steps)
        return False

    def _refused(self, time: int, load: int, bank: int, writing: Sequence[int]) -> bool:
        """Whether port ``load`` must wait to write to ``bank`` at ``time``; whom it meets may have to wait, too."""
        asking: list[tuple[int, int]] = []  # port and bank
        met = False
        for engine in writing:
            if self._writes(engine, time, time + 1):
                store = self._stores[engine][0]
                wanted = store.banks[time - store.start]
                if wanted != NOWHERE:
                    met = met or wanted == bank or any(wanted == other for _, other in asking)
                    asking.append((2 * engine, wanted))
        if not met:
            return False
        asking.append((load, bank))
        ports = 2 * len(self._stores)
        granted: dict[int, int] = {}  # ports by bank
        for port, wanted in sorted(asking, key=lambda one: (one[0] - self._turn) % ports):
            granted.setdefault(wanted, port)
        self._turn = (self._turn + 1) % ports
        for port, wanted in asking:
            if port != load and granted[wanted] != port:
                self._stores[port // 2][0].start += 1
        return granted[bank] != load
