"""Models the event counters of the SoC, ``hw/control/events.py``, whose turns are a clock of their own."""

from hw.contract.params import SocParams


class EventModel:
    """Keeps counters that only engines' signals and the host change. Every engine has two turns in a round, for signals
    and for waits, and the host has one; a turn takes two cycles, and what is asked in its first is answered in its
    second."""

    def __init__(self, params: SocParams) -> None:
        self.counts = [0] * params.events
        self._round = 2 * (2 * params.engines + 1)

    def _turn(self, time: int, first: int) -> int:
        """Return when what is asked from ``time`` on is answered, in the turn that begins at ``first`` of a round."""
        return time + (first - time) % self._round + 1

    def signalled(self, time: int, engine: int) -> int:
        """Return when a signal that ``engine`` offers from ``time`` on is taken."""
        return self._turn(time, 4 * engine)

    def looked(self, time: int, engine: int) -> int:
        """Return when ``engine``, which waits from ``time`` on, sees a counter next."""
        return self._turn(time, 4 * engine + 2)

    def accessed(self, time: int) -> int:
        """Return when an access of the host that is offered from ``time`` on is answered."""
        return self._turn(time, self._round - 2)

    def reached(self, number: int, value: int) -> bool:
        """Return whether a counter is at or past ``value``."""
        return not (self.counts[number] - value) >> 31 & 1
