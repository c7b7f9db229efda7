"""Computes the list schedule: which task starts when, if each unit takes one after the other.

Tasks stand in queues, each of one unit, and leave their queue in order. A task can start when all that it needs has
ended and its unit is free. Of all that stand first in their queues the one that can start first is taken; of several
the one with the lowest rank, and then that of the earlier queue. The order of instructions of a job is such a schedule
(``compiler/emission/program/schedule.py``), and so are that of a region and its price (:mod:`sim.cost.region_time`).
"""

import ctypes
from array import array
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sim.c_library import structure
from sim.cost.c_walks import address, c_walk, columns, doubles, integers

#: The layout of ``schedule.h``.
_Schedule = structure(
    "_Schedule", "queues", "unit first need_first needs cycles rank patience start end order next looked begin"
)  # fmt: skip


class TaskTimes(NamedTuple):
    """Holds by task when it starts and ends, in cycles, and the tasks that were taken, in that order: all but those
    that wait for each other, or for themselves."""

    starts: "array[float]"
    ends: "array[float]"
    taken: "array[int]"


class QueuedTasks:
    """Holds tasks in queues, as C reads them. Tasks are numbered queue by queue."""

    def __init__(
        self, queues: Iterable[tuple[int, int]], cycles: Iterable[float], needs: Iterable[Iterable[int]]
    ) -> None:  # fmt: skip
        """Take the ``queues``, of each its unit and how many tasks it has, and by task its ``cycles`` and the numbers
        of the tasks that it ``needs``."""
        self._unit, self._first = array("q"), array("q", [0])
        for unit, count in queues:
            self._unit.append(unit)
            self._first.append(self._first[-1] + count)
        self._cycles = array("d", cycles)
        self._need_first, self._needs = array("q", [0]), array("q")
        for those in needs:
            self._needs.extend(those)
            self._need_first.append(len(self._needs))

    def schedule(self, rank: Sequence[float], patience: Sequence[float] | None = None) -> TaskTimes:
        """Return the schedule by ``rank``. ``patience`` says by task by how many cycles it lets others go first."""
        tasks, queues = len(self._cycles), len(self._unit)
        found = TaskTimes(doubles(tasks), doubles(tasks), integers(tasks))
        ranks, patiences, begin = array("d", rank), array("d", patience or ()), doubles(queues)
        _places, places = columns(integers, (queues, queues))
        given = map(address, (self._unit, self._first, self._need_first, self._needs, self._cycles, ranks))
        waits = address(patiences) if patience else None
        asked = _Schedule(queues, *given, waits, *map(address, found), *places, address(begin))
        taken = c_walk("list_schedule")(ctypes.byref(asked))
        return found._replace(taken=found.taken[:taken])
