"""Faults of the memory on purpose, and stalls at random: what ``sim/dram.py`` does when it is told to."""

from array import array
from bisect import bisect_left

from sim.dram import DramFault
from sim.model.agenda import Agenda
from sim.model.requests import Accepted, Request

AR, AW, R, W = 0, 1, 3, 4  #: places of the channels in a draw; those of data, and of the answers to writes
_WORD = 0xFFFFFFFF


class Stalls:
    """In which cycles the channels stall: the generator of ``sim/dram.py``, whose bits do not depend on anything."""

    def __init__(self, begin: int, seed: int, rate: int) -> None:
        self._begin, self._state, self._rate = begin, seed, rate
        self._free = {channel: array("q") for channel in (AR, AW, R, W)}  # cycles in which it does not stall, in order
        self._drawn = begin

    def last(self, channel: int, time: int, beats: int) -> int:
        """The cycle of the last of ``beats`` that move one by one from ``time`` on."""
        free = self._free[channel]
        if time < self._begin:
            if time + beats <= self._begin:
                return time + beats - 1
            beats -= self._begin - time
            time = self._begin
        place = bisect_left(free, time)
        while place + beats > len(free) or free[place] < time:
            self._draw()
            place = bisect_left(free, time)
        return free[place + beats - 1]

    def _draw(self) -> None:
        state, rate = self._state, self._rate
        shifts = [(6 * channel, free) for channel, free in self._free.items()]
        for time in range(self._drawn, self._drawn + 1024):
            for shift, free in shifts:
                if state >> shift & 0xFF >= rate:
                    free.append(time)
            state ^= state << 13 & _WORD
            state ^= state >> 17
            state ^= state << 5 & _WORD
        self._drawn += 1024
        self._state = state


class FaultyMemory:
    """What of :class:`sim.model.dram.MemoryModel` goes wrong. ``failed``: whether the burst that has just ended was
    answered with an error.

    Errors strike bursts whose address is taken in the time of the fault. While the memory stands still, no burst is
    served and no address leaves its register; the burst that moves goes on afterwards.
    """

    _agenda: Agenda
    _current: Accepted | None
    _end: int
    _interrupted: tuple[Accepted, int, int] | None
    _registers: list[Request | None]

    def __init__(self) -> None:
        self.failed = False
        self._awry = False  # addresses have to be looked at one by one
        self._stalls: Stalls | None = None
        self._error: tuple[int, int, int, int] | None = None  # from which cycle to before which, first and last byte
        self._struck = 0  # bursts that were accepted and will fail
        self._frozen = 0  # while it stands still: when it goes on
        self._orders = 0

    def set_fault(self, now: int, kind: int, base: int, last: int, begin: int, end: int) -> None:
        """From cycle ``begin`` to before ``end`` there is a fault of this ``kind``; ``base`` to ``last``: bytes."""
        self._orders += 1
        if self._frozen:
            self._thaw(now)
        self._error = (begin, end, base, last) if kind in (DramFault.SLVERR, DramFault.DECERR) else None
        if kind == DramFault.FREEZE:
            self._agenda.late(begin - 1, self._freeze, (self._orders, end))
        self._look()

    def set_stalls(self, now: int, seed: int, rate: int) -> None:
        """From cycle ``now`` on each channel stalls in ``rate`` of 256 cycles."""
        self._stalls = Stalls(now, seed, rate) if rate else None
        self._look()

    def _look(self) -> None:
        self._awry = self._error is not None or self._struck > 0 or self._stalls is not None

    def _taken_at(self, time: int, write: bool) -> int:
        """When an address that might be taken at ``time`` is."""
        return self._stalls.last(AW if write else AR, time, 1) if self._stalls else time

    def _strikes(self, at: int, address: int) -> bool:
        """Whether a burst fails whose address is taken in cycle ``at``."""
        if self._error is None:
            return False
        begin, end, base, last = self._error
        if not (begin <= at < end and base <= address <= last):
            return False
        self._struck += 1
        return True

    def _answered(self) -> None:
        """A burst that fails has ended."""
        self._struck -= 1
        self._look()

    # -- standing still --------------------------------------------------------------------------------------
    def _freeze(self, time: int, what: tuple[int, int]) -> None:
        orders, end = what
        if orders == self._orders:
            self._frozen = end
            self._shift(end - (time + 1))
            self._agenda.early(end, self._thawed, orders)

    def _shift(self, cycles: int) -> None:
        """What moves ends later."""
        if self._current is None:
            return
        self._end += cycles
        if self._interrupted is not None:
            burst, last, left = self._interrupted
            self._interrupted = burst, last + cycles, left
        self._agenda.early(self._end, self._ended, self._current)

    def _thawed(self, time: int, orders: int) -> None:
        if orders == self._orders:
            self._thaw(time)

    def _thaw(self, time: int) -> None:
        early, self._frozen = self._frozen - time, 0
        if early:
            self._shift(-early)
        for write in (False, True):
            held = self._registers[write]
            if held is not None and self._has_room(write):
                self._refill(self._accept(time - 1, write, held), write)
        if self._current is None:
            self._serve(time)
            self._go_on()

    def _ended(self, time: int, burst: Accepted) -> None:
        raise NotImplementedError

    def _has_room(self, write: bool) -> bool:
        raise NotImplementedError

    def _refill(self, time: int, write: bool) -> None:
        raise NotImplementedError

    def _accept(self, time: int, write: bool, held: Request) -> int:
        raise NotImplementedError

    def _serve(self, time: int) -> None:
        raise NotImplementedError

    def _go_on(self) -> None:
        raise NotImplementedError
