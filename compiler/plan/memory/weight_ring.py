"""The ring of weight windows in segment 7: where each job's weights go, and which job must retire before they may."""


class WeightRing:
    """``size`` bytes handed out in turn. :meth:`claim` is called once per job, in ring order of the engine."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._next = 0
        self._held: list[tuple[int, int]] = []  # start and end of each job's window

    def claim(self, size: int) -> tuple[int, int]:
        """(offset, ``window_after``) of a window of ``size`` bytes; ``window_after`` is the distance to the latest
        earlier job that used any of it, 0 if none did."""
        if size > self.size:
            raise ValueError(f"a window of {size} bytes does not fit the ring of {self.size}")
        start = self._next if self._next + size <= self.size else 0
        end = start + size
        after = 0
        for distance, (low, high) in enumerate(reversed(self._held), 1):
            if low < end and start < high:
                after = distance
                break
        self._held.append((start, end))
        self._next = end
        return start, after

    def again(self, number: int) -> int:
        """``window_after`` of job ``number`` when the same jobs run a second time right behind the first: distance to
        the latest job of the first time that used any of its window. Harmless the first time: what lies before the
        start of a ring counts as retired."""
        start, end = self._held[number]
        count = len(self._held)
        latest = max(i for i, (low, high) in enumerate(self._held) if i == number or (low < end and start < high))
        return number + count - latest
