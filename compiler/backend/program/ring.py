"""Rings of buffers, which order the units that fill and read them.

A ring hands out its buffers in turn. Filling a buffer for the n-th time waits for the last reader of what it held;
because the first fills wait for nothing and the last readers signal nothing, every semaphore is zero again at the end.
"""

from collections.abc import Hashable

from compiler.backend.program.semaphores import PAIRS, Sem
from compiler.backend.program.task import BufferFill, Task


class Ring:
    """Holds ``slots`` equal buffers used in turn, from ``base`` on, ``size`` apart; it is also the cache of what they
    hold.

    Usage: ``ring.find(key)`` or ``ring.fill(key)``; append tasks with :meth:`filled_by` and :meth:`read_by`.
    """

    def __init__(self, full: Sem, free: Sem, base: int, size: int, slots: int) -> None:
        self.full, self.free = full, free
        self.base, self.size, self.slots = base, size, slots
        self.filler, self.reader = PAIRS[full, free]
        self._fills: list[BufferFill] = []

    def find(self, key: Hashable) -> BufferFill | None:
        """Return the buffer that holds ``key``, if one still does."""
        for fill in self._fills[-self.slots :]:
            if fill.key == key:
                return fill
        return None

    def fill(self, key: Hashable) -> BufferFill:
        """Claim the next buffer for ``key``."""
        number = len(self._fills)
        fill = BufferFill(key, self.base + number % self.slots * self.size, number)
        self._fills.append(fill)
        return fill

    def filled_by(self, fill: BufferFill, tasks: list[Task]) -> None:
        """``tasks`` (of the filling unit, in order) fill the buffer; call once per fill."""
        fill.fillers = tasks
        for task in tasks:
            task.fills = fill
        tasks[-1].signals.add(self.full)
        if fill.number >= self.slots:
            previous = self._fills[fill.number - self.slots]
            previous.readers[-1].signals.add(self.free)
            tasks[0].waits.add(self.free)

    def read_by(self, fill: BufferFill, task: Task) -> None:
        """``task`` (of the reading unit) reads the buffer, after all readers so far."""
        if not fill.readers:
            task.waits.add(self.full)
        fill.readers.append(task)
        task.reads.append(fill)
