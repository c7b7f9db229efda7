"""Backends that execute the same run in turn, slice by slice: their speeds compare although the machine's varies."""

import time

from sim.rtl import RtlBus, SideBySideBus, Until

SLICE = 1 << 17  #: cycles for which the backends take turns


class RaceBus(SideBySideBus):
    """:class:`SideBySideBus` that measures. ``slices``: for each full slice the seconds of each backend, by name."""

    def __init__(self, buses: dict[str, RtlBus]) -> None:
        super().__init__(buses)
        self.slices: list[dict[str, float]] = []
        self._begin()

    def restart(self) -> None:
        """Forget what was measured."""
        self.slices.clear()
        self._begin()

    def _begin(self) -> None:
        self._seconds = dict.fromkeys(self.buses, 0.0)
        self._length = 0

    def _run(self, limit: int, until: Until) -> tuple[int, bool]:
        ran, met = 0, False
        while ran < limit and not met:
            cycles, met = self._turn(min(SLICE - self._length, limit - ran), until)
            ran += cycles
            self._length += cycles
            if self._length >= SLICE:
                self.slices.append(self._seconds)
                self._begin()
        return ran, met

    def _turn(self, limit: int, until: Until) -> tuple[int, bool]:
        answers = {}
        names = list(self.buses)
        for name in names if len(self.slices) % 2 else reversed(names):
            start = time.perf_counter()
            answers[name] = self.buses[name]._run(limit, until)
            self._seconds[name] += time.perf_counter() - start
        return self.same("the length of a run", [answers[name] for name in names])
