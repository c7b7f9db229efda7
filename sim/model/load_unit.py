"""LD2: ``hw/dma/source.py`` and ``hw/control/ld2_share.py``, burst by burst."""

from collections import deque

from hw.contract.params import SocParams
from hw.contract.timing import AXI_RETURN, COPY_FILLED, COPY_LANDED, COPY_PLANNED, SETTLED, UNIT_IN_FLIGHT
from sim.model.agenda import Agenda
from sim.model.dram import MemoryModel
from sim.model.requests import HELD
from sim.model.transfer import BODY, LOADER, Struck, Told, Transfer

_FEW = 2  #: bursts that are not worth the look ahead


class LoadUnit:
    """LD2, for the body and the loader of one engine, which are told when a burst of theirs was ``struck``."""

    def __init__(self, params: SocParams, memory: MemoryModel, agenda: Agenda, port: int, struck: Struck) -> None:
        self.port, self._struck = port, struck
        self._outstanding = params.axi_outstanding
        self._memory, self.agenda = memory, agenda
        self._offers: list[Transfer | None] = [None, None]
        self._offered = [0, 0]
        self.flying: deque[Transfer] = deque()  #: accepted and not done
        self._asking: deque[Transfer] = deque()  # with bursts to ask for
        self._in_flight = 0
        self._held = False  # a request waits
        self._latest: Transfer | None = None  # the last accepted
        self._next_accept = self._next_ask = 0
        self._end = 0  # first cycle in which the realigner is free
        self.moved = 0
        self._trail = 0  # steps behind the last word that was asked for
        self._recovered: Told | None = None
        self._generation = 0
        self._dead = False  # until the engine is reset
        self._served = self._came  # one object, by which the memory knows whose bursts follow each other

    @property
    def outstanding(self) -> int:
        """Bursts that are asked for and have not come."""
        return self._in_flight

    @property
    def recovering(self) -> bool:
        """Whether commands of the loader are being taken out."""
        return self._recovered is not None

    def busy_with(self, side: int) -> bool:
        """Whether commands of ``side`` are in the unit."""
        return bool(self.flying) and self.flying[0].side == side

    def offer(self, time: int, transfer: Transfer) -> None:
        """A command is valid from ``time`` on."""
        self._offers[transfer.side] = transfer
        self._offered[transfer.side] = time
        self._consider(time)

    def _consider(self, time: int) -> None:
        """Accept what may be accepted."""
        while self._recovered is None and not self._dead and len(self.flying) < UNIT_IN_FLIGHT:
            body, load = self._offers
            owner = self.flying[0].side if self.flying else None
            if body is not None:
                chosen = body if owner in (None, BODY) else None
            else:
                chosen = load if owner in (None, LOADER) else None
            latest = self._latest
            if chosen is None or (latest is not None and latest.next < latest.lead):
                return
            side = chosen.side
            at = max(time, self._offered[side] + 1, self._next_accept)
            self._offers[side] = None
            self._next_accept = at + max(2, COPY_PLANNED - 1 + chosen.steps.runs if not chosen.lead else 2)
            self._latest = chosen
            chosen.begin = at
            self.flying.append(chosen)
            if chosen.bursts:
                self._asking.append(chosen)
                if len(self._asking) == 1:
                    self.agenda.at(at + COPY_PLANNED + 1, self._ask, self._generation)
            else:
                self._trail += chosen.trail
                if len(self.flying) == 1:
                    self._finish(chosen)
            chosen.accepted(at)

    def _ask(self, time: int, generation: int) -> None:
        """Ask for a burst, if one more may be in flight."""
        if generation != self._generation or self._held or not self._asking:
            return
        if self._in_flight == self._outstanding:
            return
        transfer = self._asking[0]
        at = transfer.begin + COPY_PLANNED + 1
        if at < self._next_ask:
            at = self._next_ask
        if at > time:
            self.agenda.at(at, self._ask, generation)
            return
        at = time
        offset, beats, pause, landing = transfer.bursts[transfer.next]
        if not transfer.next:
            pause += self._trail
            self._trail = transfer.trail
        transfer.next += 1
        self._in_flight += 1
        if transfer.next == len(transfer.bursts):
            self._asking.popleft()
        self._held = True
        base = transfer.base
        into = transfer.into + landing
        accepted = self._memory.request(at + 1, self, False, base + offset, beats, self._served, transfer, pause, into)
        if accepted != HELD:
            self._held = False
            self._next_ask = accepted - 1
            if self._in_flight < self._outstanding and self._asking:
                self.agenda.at(accepted - 1, self._ask, self._generation)
        if transfer is self._latest and transfer.next == transfer.lead:
            self._next_accept = at + 1
            self._consider(at)

    def accepted(self, time: int) -> None:
        """See ``Client``."""
        self._held = False
        self._next_ask = time - 1
        if self._asking and self._in_flight < self._outstanding:
            self._ask(time - 1, self._generation)

    def _came(self, time: int, transfer: Transfer) -> None:
        if self._recovered is not None:
            self._in_flight -= 1
            self._recover(time)
            return
        if self._memory.failed and not self._dead:
            number = len(transfer.bursts) - transfer.left
            self._dead = transfer.side == BODY
            self._in_flight -= 1
            # Its first word is that which fails.
            known = max(time - transfer.bursts[number].beats + AXI_RETURN + 2, time + 1)
            self._struck(known, transfer, number)
            return
        if self._dead:
            self._in_flight -= 1
            return
        transfer.left -= 1
        if not transfer.left:
            transfer.last = time + AXI_RETURN
            if transfer is self.flying[0]:
                self._finish(transfer)
        self._in_flight -= 1
        if self._asking and not self._held and not self._stream(time, transfer):
            self._ask(time + AXI_RETURN + 1, self._generation)

    def _stream(self, time: int, coming: Transfer) -> bool:
        """Let the memory go on with bursts that make room for each other; whether it has.

        The last burst of a command is not among those that come, nor among those that are asked for, and neither is
        the one that lets the planner go.
        """
        transfer = self._asking[0]
        following = transfer.next
        end = len(transfer.bursts) - 1
        if following < transfer.lead and transfer is self._latest:
            end = transfer.lead - 1
        if following + coming.left < end:
            end = following + coming.left
        if not following or end - following < _FEW or self._in_flight != self._outstanding - 1:
            return False
        if max(transfer.begin + COPY_PLANNED, self._next_ask - 1) > time + AXI_RETURN:
            return False
        asked, accepted = self._memory.stream(
            time, self, transfer.base, transfer.into, transfer.bursts[following:end], self._served, transfer
        )
        if not asked:
            return False
        transfer.next += asked
        coming.left -= asked - 1
        self._in_flight += 1
        self._next_ask = accepted - 1
        return True

    def _finish(self, transfer: Transfer) -> None:
        """The oldest command has all its words."""
        end = self._end + transfer.steps.steps
        if transfer.bursts:
            last = transfer.last + 1 + transfer.trail
        else:
            last = transfer.begin + COPY_PLANNED + COPY_FILLED + transfer.steps.steps
        self._end = max(end, last)
        self.agenda.at(self._end + COPY_LANDED - 1, self._done, (transfer, self._generation))

    def _done(self, time: int, subject: tuple[Transfer, int]) -> None:
        transfer, generation = subject
        if generation != self._generation:
            return
        self.flying.popleft()
        if self.flying and not self.flying[0].left:
            self._finish(self.flying[0])
        self._next_accept = (
            max(self._next_accept, time + 2) if len(self.flying) in (0, UNIT_IN_FLIGHT - 1) else self._next_accept
        )
        transfer.done(time)
        self._consider(time + 1)

    def abandon(self, time: int, recovered: Told) -> bool:
        """Take the loader's commands out; ``recovered`` is told when the unit was reset. False if there are none."""
        if self.flying:
            present = self.flying[0].side == LOADER
        else:
            present = self._offers[LOADER] is not None and self._offers[BODY] is None
        self._offers[LOADER] = None
        if not present:
            return False
        self._recovered = recovered
        self._forget()
        self._recover(time)
        return True

    def _forget(self) -> None:
        self._generation += 1
        self.flying.clear()
        self._asking.clear()
        self._latest = None
        self._trail = 0

    def _recover(self, time: int) -> None:
        if self._in_flight == 0:
            self.agenda.at(time + AXI_RETURN + 2 + SETTLED, self._reset, self._generation)

    def _reset(self, time: int, generation: int) -> None:
        recovered = self._recovered
        if recovered is None or generation != self._generation:
            return
        self._recovered = None
        self._end = self._next_accept = self._next_ask = time
        recovered(time)
        self._consider(time)

    def clear(self) -> None:
        """The engine is reset: nothing is outstanding."""
        self._forget()
        self._offers = [None, None]
        self._recovered = None
        self._dead = False
        self._end = self._next_accept = self._next_ask = 0

    def stop(self) -> None:
        """Abort: nothing more is asked for."""
        self._generation += 1
        self._dead = True
        self._offers = [None, None]
        self._asking.clear()
