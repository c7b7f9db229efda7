"""Fetches instructions as ``hw/control/fetch.py`` does, burst by burst."""

from collections.abc import Callable

from hw.contract.isa import INSN_BYTES
from hw.contract.params import SocParams
from hw.contract.timing import AXI_RETURN, FETCH_AHEAD, FETCH_BUFFERED, FETCH_BURST_BYTES, FETCH_STARTS
from sim.model.agenda import Agenda
from sim.model.commands import HELD
from sim.model.memory import MemoryModel

_NEVER = 1 << 60


class FetchModel:
    """Reads instructions ahead of their use.

    ``whole[j]``: when instruction ``pc + j`` would be whole if its assembly were not held up. Whoever takes
    instructions tells :meth:`taken`. ``wake`` is called when more have come. ``failed``: the number of the first
    instruction that could not be read, or -1.
    """

    def __init__(
        self, params: SocParams, memory: MemoryModel, agenda: Agenda, wake: Callable[[int], None], port: int
    ) -> None:  # fmt: skip
        self._memory, self._agenda, self._wake = memory, agenda, wake
        self._word = params.dram_word
        self.per_insn = INSN_BYTES // params.dram_word
        self._chunk = min(params.axi_burst_beats, FETCH_BURST_BYTES // params.dram_word)
        self._capacity = FETCH_AHEAD * self.per_insn
        self.port = port
        self._offered = False  # a request waits
        self._taken = 0  # words that were assembled, as far as it mattered
        self.outstanding = 0  #: bursts that have not come, those nobody waits for included
        self._generation = 0
        self.whole: list[int] = []
        self.assembled: list[int] = []  #: when instructions were
        self.failed = -1
        self.gate = _NEVER  #: number of the instruction that makes room for the next burst when it is taken
        self._base = self._next = self._first = self._last = 0  # words in the segment
        self._came_words = 0

    def start(self, time: int, pc: int, base: int, limit: int) -> None:
        """Begin at instruction ``pc`` of the segment at ``base`` with ``limit`` bytes."""
        self._generation += 1
        self.whole, self.assembled, self.gate, self.failed = [], [], _NEVER, -1
        self._base = base
        self._first = self._next = pc * self.per_insn
        self._last = limit // INSN_BYTES * self.per_insn
        self._came_words = self._first
        self._taken = 0
        self._agenda.at(time + FETCH_STARTS, self._more, (self._generation, 0))

    def stop(self) -> None:
        """Forget all; what is on its way is discarded."""
        self._generation += 1
        self.whole, self.assembled, self.gate = [], [], _NEVER
        self._next = self._last  # nor is anything more asked for when a request that waits is accepted

    def taken(self, time: int) -> None:
        """The next instruction was assembled in the cycle before ``time``."""
        self.assembled.append(time)
        if len(self.assembled) > self.gate:
            self.make_room()

    def make_room(self, now: int = 0) -> None:
        """The next burst has room once instruction ``gate``, which was assembled, is taken; it is ``now`` or later."""
        taken = (self.gate + 1) * self.per_insn
        time = self.assembled[self.gate] + 1
        self.gate = _NEVER
        self._agenda.at(time if time > now else now, self._more, (self._generation, taken))

    def _more(self, time: int, subject: tuple[int, int]) -> None:
        generation, taken = subject
        if generation != self._generation:
            return
        if taken > self._taken:
            self._taken = taken
        words = self._last - self._next
        if self._offered or words <= 0:
            return
        at = self._base // self._word + self._next
        beats = self._chunk - at % self._chunk
        if beats > words:
            beats = words
        self.outstanding += 1
        self._next += beats
        self._offered = True
        accepted = self._memory.request(time, self, False, at * self._word, beats, self._came, (generation, beats))
        if accepted != HELD:
            self.accepted(accepted)

    def accepted(self, time: int) -> None:
        """Take note that a burst was accepted, as a ``Client`` does. The next one is asked for when there is room for
        it."""
        self._offered = False
        if self._next >= self._last:
            return
        room = self._next - self._first + self._chunk - self._capacity
        if self._taken >= room:
            self._agenda.at(time, self._more, (self._generation, self._taken))
            return
        self.gate = max(0, -(-room // self.per_insn) - 1)
        if self.gate < len(self.assembled):
            self.make_room(time)

    def _came(self, time: int, subject: tuple[int, int]) -> None:
        generation, beats = subject
        self.outstanding -= 1
        if generation == self._generation:
            per_insn, words = self.per_insn, self._came_words
            if self._memory.failed and self.failed < 0:
                self.failed = (words - self._first) // per_insn
            self._came_words = come = words + beats
            last = time + AXI_RETURN + FETCH_BUFFERED - come  # when the last word came, less what is counted below
            self.whole += range(last + (words // per_insn + 1) * per_insn, last + come + 1, per_insn)
            if self.whole and not self.assembled:
                self.taken(self.whole[0])  # whoever takes instructions may not have begun
        self._wake(time)
