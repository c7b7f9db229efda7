"""The bursts of a run: which client offered them, and to which bank and row of the DRAM."""

from collections import defaultdict
from collections.abc import Hashable

import numpy as np

from sim.model.load_unit import LoadUnit
from sim.model.recorder import History
from sim.retiming.dependencies import Dependencies
from sim.retiming.replay import Ints


class Bursts:
    """All bursts, in the order in which they were accepted. ``offered``, ``taken`` and ``ends`` are their moments: when
    a client has one, when its address is taken, and when its last beat moves."""

    def __init__(self, graph: Dependencies, history: History) -> None:
        log = history.bursts
        columns = np.array([entry[2:] for entry in log], np.int64).reshape(len(log), 7)
        offered, taken, bank, row, self.beats, write, pause = columns.T
        self._owners: dict[tuple[type, int], list[int]] = defaultdict(list)
        for number, (client, *_) in enumerate(log):
            self._owners[type(client), client.port].append(number)
        self._subjects = [entry[1] for entry in log]
        self.offered, self.taken = graph.moments(offered), graph.moments(taken)
        self._recorded_ends, held = self._served(history, write, taken)
        self.ends = graph.moments(self._recorded_ends)
        self.columns = {
            "offered": self.offered, "taken": self.taken, "ended": self.ends, "beats": self.beats, "bank": bank,
            "row": row, "write": write, "pause": pause, "held": held,
            "port": np.array([entry[0].port for entry in log], np.int64),
            "early": np.array([isinstance(entry[0], LoadUnit) for entry in log], np.int64),
        }  # fmt: skip

    def of(self, client: type, port: int) -> Ints:
        """Numbers of the bursts of one client, in order."""
        return np.array(self._owners[client, port], np.int64)

    def generation(self, number: int) -> Hashable:
        """What tells the fetches of one job's instructions from the next."""
        return self._subjects[number][0]

    def recorded_end(self, number: int) -> int:
        """When a burst ended in the recorded run."""
        return int(self._recorded_ends[number])

    @staticmethod
    def _served(history: History, write: Ints, taken: Ints) -> tuple[Ints, Ints]:
        """When bursts ended, and for how long LV2 held them up; of those that have not yet, when they were taken."""
        ends, held = taken.copy(), np.zeros_like(taken)
        times, way, waited = np.array(history.served, np.int64).reshape(-1, 3).T
        for number in range(2):
            served, accepted = times[way == number], np.flatnonzero(write == number)
            if len(served) > len(accepted):
                raise ValueError("bursts were on their way when recording began; begin where the device is idle")
            ends[accepted[: len(served)]] = served
            held[accepted[: len(served)]] = waited[way == number]
        return ends, held
