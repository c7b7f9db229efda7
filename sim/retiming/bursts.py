"""What bursts wait for at the DRAM: the rules of ``sim/model/dram.py``, in the order in which bursts were served."""

from collections import defaultdict
from collections.abc import Hashable

import numpy as np

from hw.contract.timing import AXI_STAGE, DRAM_QUEUE_BURSTS, DRAM_QUEUED, WRITE_BUFFERED
from sim.model.recorder import History
from sim.retiming.dependencies import Dependencies, Dram
from sim.retiming.longest_path import Ints


class Bursts:
    """Moments of all bursts: ``taken``, when an address was, and ``ends``, of last beats, in the order of ``beats``."""

    def __init__(self, graph: Dependencies, history: History) -> None:
        log = history.bursts
        columns = np.array([entry[2:] for entry in log], np.int64).reshape(len(log), 6)
        at, begin, bank, opened, self.beats, write = columns.T
        self._owners: dict[tuple[type, int], list[int]] = defaultdict(list)
        for number, (client, *_) in enumerate(log):
            self._owners[type(client), client.port].append(number)
        self._subjects = [entry[1] for entry in log]
        self.taken = graph.moments(at)
        served, ends = self._served(history, write)
        self.ends = graph.moments(ends)
        ready = graph.moments(begin)
        self._banks(graph, ready, bank, opened)
        for way in range(2):
            there = np.flatnonzero(write == way)
            queued = DRAM_QUEUE_BURSTS + 2  # that many later, a burst finds the queue full until this one ends
            graph.edges(self.taken[there[:-1]], self.taken[there[1:]], 1)
            graph.edges(self.ends[there[:-queued]], self.taken[there[queued:]], AXI_STAGE)
        rest = self.beats - 1
        due = np.where(write, WRITE_BUFFERED - AXI_STAGE, DRAM_QUEUED)
        graph.edges(self.taken, self.ends, np.maximum(due, DRAM_QUEUED), [(Dram.BEAT, rest)])
        graph.edges(ready, self.ends, np.where(write, 0, -1), [(Dram.BEAT, rest), (Dram.LATENCY, 1 - write)])
        graph.edges(self.ends[served[:-1]], self.ends[served[1:]], 0, [(Dram.BEAT, self.beats[served[1:]])])

    def of(self, client: type, port: int) -> Ints:
        """Numbers of the bursts of one client, in order."""
        return np.array(self._owners[client, port], np.int64)

    def generation(self, number: int) -> Hashable:
        """What tells the fetches of one job's instructions from the next."""
        return self._subjects[number][0]

    @staticmethod
    def _served(history: History, write: Ints) -> tuple[Ints, Ints]:
        """Numbers of bursts in the order in which they were served, and when each burst ended (-1: it has not)."""
        ways = [np.flatnonzero(write == way) for way in range(2)]
        ends = np.full(len(write), -1, np.int64)
        if not history.served:
            return np.zeros(0, np.int64), ends
        times, way = np.array(history.served, np.int64).T
        order = np.empty(len(times), np.int64)
        for number in range(2):
            places = np.flatnonzero(way == number)
            if len(places) > len(ways[number]):
                raise ValueError("bursts were on their way when recording began; begin where the device is idle")
            order[places] = ways[number][: len(places)]
        ends[order] = times
        return order, ends

    def _banks(self, graph: Dependencies, ready: Ints, bank: Ints, opened: Ints) -> None:
        """A bank serves one burst after the other, and opens a row where it must."""
        graph.edges(self.taken, ready, 0, [(Dram.ROW_MISS, opened)])
        order = np.argsort(bank, kind="stable")
        first, second = order[:-1], order[1:]
        same = bank[first] == bank[second]
        first, second = first[same], second[same]
        graph.edges(ready[first], ready[second], self.beats[first], [(Dram.ROW_MISS, opened[second])])
