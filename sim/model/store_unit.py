"""ST2: ``hw/dma/sink.py``, burst by burst."""

from collections import deque
from typing import Any

from hw.contract.params import SocParams
from hw.contract.timing import (
    AXI_RETURN,
    COPY_FETCHED,
    COPY_LANDED,
    COPY_PLANNED,
    DRAM_WRITE_BEATS,
    UNIT_IN_FLIGHT,
    WORDS_BEHIND,
)
from sim.model.agenda import Agenda
from sim.model.dram import MemoryModel
from sim.model.requests import HELD
from sim.model.transfer import Struck, Transfer


class StoreUnit:
    """ST2: bursts are announced as their first word comes and go one after the other. ``struck`` is told when one
    was answered with an error."""

    #: Words on their way between the realigner and the memory.
    BUFFERED = WORDS_BEHIND + DRAM_WRITE_BEATS + 2

    def __init__(self, params: SocParams, memory: MemoryModel, agenda: Agenda, port: int, struck: Struck) -> None:
        self.port, self.moved, self._struck = port, 0, struck
        self._memory, self.agenda = memory, agenda
        self._unanswered_most = params.axi_outstanding
        self.flying: deque[Transfer] = deque()
        self._offers: deque[tuple[int, Transfer]] = deque()
        self._announcing: deque[Transfer] = deque()
        self._latest: Transfer | None = None
        self._next_accept = 0
        self._free = 0  # first cycle in which the realigner may step for the next burst
        self._backlog = self.outstanding = 0
        self._scheduled = self._held = False
        self._generation = 0

    def offer(self, time: int, transfer: Transfer) -> None:
        """A command is valid from ``time`` on."""
        self._offers.append((time, transfer))
        self._consider(time)

    def _consider(self, time: int) -> None:
        while self._offers and len(self.flying) < UNIT_IN_FLIGHT:
            latest = self._latest
            if latest is not None and latest.next < latest.lead:
                return
            valid, transfer = self._offers.popleft()
            at = max(valid, self._next_accept)
            self._next_accept = at + COPY_PLANNED - 1 + transfer.steps.runs
            self._latest = transfer
            transfer.begin = at
            self.flying.append(transfer)
            self._announcing.append(transfer)
            self._schedule(time)
            transfer.accepted(at)

    def _schedule(self, time: int) -> None:
        """Plan the announcement of the next burst."""
        if self._scheduled or not self._announcing:
            return
        transfer = self._announcing[0]
        beats = transfer.bursts[transfer.next][1]
        if (self._backlog and self._backlog + beats > self.BUFFERED) or self.outstanding >= self._unanswered_most:
            return
        if self._held:
            return
        step = max(self._free, transfer.begin + COPY_PLANNED + COPY_FETCHED, time - 3)
        self._free = step + beats
        self._scheduled = True
        self.agenda.at(step + COPY_LANDED, self._announce, self._generation)

    def _announce(self, time: int, generation: int) -> None:
        if generation != self._generation:
            return
        transfer = self._announcing[0]
        offset, beats, *_ = transfer.bursts[transfer.next]
        transfer.next += 1
        self._backlog += beats
        self.outstanding += 1
        self._scheduled = False
        if transfer.next == len(transfer.bursts):
            self._announcing.popleft()
            self._free += transfer.steps.steps - sum(burst.beats for burst in transfer.bursts)
        self._held = True
        accepted = self._memory.request(
            time, self, True, transfer.base + offset, beats, self._went, (transfer, beats, generation)
        )
        if accepted != HELD:
            self.accepted(accepted)
        if transfer is self._latest and transfer.next == transfer.lead:
            self._consider(time)

    def accepted(self, time: int) -> None:
        """See ``Client``."""
        self._held = False
        self._schedule(time)

    def _went(self, time: int, subject: tuple[Transfer, int, int]) -> None:
        transfer, beats, generation = subject
        self.outstanding -= 1
        self._backlog -= beats
        if generation != self._generation:
            return
        if self._memory.failed:
            self.stop()
            self._struck(time + AXI_RETURN + 2, transfer, len(transfer.bursts) - transfer.left)
            return
        transfer.left -= 1
        if not transfer.left:
            self.agenda.at(time + COPY_LANDED, self._done, (transfer, generation))
        self._schedule(time)

    def _done(self, time: int, subject: tuple[Transfer, Any]) -> None:
        transfer, generation = subject
        if generation != self._generation:
            return
        self.flying.popleft()
        transfer.done(time)
        self._consider(time + 1)

    def stop(self) -> None:
        """Abort: nothing more is announced."""
        self._generation += 1
        self._offers.clear()
        self._announcing.clear()
        self._scheduled = False

    def clear(self) -> None:
        """The engine is reset: nothing is outstanding."""
        self.stop()
        self.flying.clear()
        self._latest = None
        self._backlog = self._free = self._next_accept = 0
