"""SoC-wide event counters: ``hw/control/events.py``, whose turns are a clock of their own."""

from hw.contract.params import SocParams


class EventModel:
    """Counters that only engines' signals and the host change. Every engine has two turns in a round, for signals and
    for waits, and the host one; a turn takes two cycles, and what is asked in its first is answered in its second."""

    def __init__(self, params: SocParams) -> None:
        self.counts = [0] * params.events
        self._round = 2 * (2 * params.engines + 1)

    def _turn(self, time: int, first: int) -> int:
        """The answer to what is asked from ``time`` on in the turn that begins at ``first`` of a round."""
        return time + (first - time) % self._round + 1

    def signalled(self, time: int, engine: int) -> int:
        """When a signal that ``engine`` offers from ``time`` on is taken."""
        return self._turn(time, 4 * engine)

    def looked(self, time: int, engine: int) -> int:
        """When ``engine``, which waits from ``time`` on, sees a counter next."""
        return self._turn(time, 4 * engine + 2)

    def accessed(self, time: int) -> int:
        """When an access of the host that is offered from ``time`` on is answered."""
        return self._turn(time, self._round - 2)

    def reached(self, number: int, value: int) -> bool:
        """Whether a counter is at or past ``value``."""
        return not (self.counts[number] - value) >> 31 & 1
