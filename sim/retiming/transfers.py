"""What LD2 and ST2 wait for: the rules of ``sim/model/load_unit.py`` and ``store_unit.py``."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hw.contract.isa import Unit
from hw.contract.params import SocParams
from hw.contract.timing import (
    AXI_RETURN,
    COPY_FETCHED,
    COPY_FILLED,
    COPY_LANDED,
    COPY_PLANNED,
    UNIT_IN_FLIGHT,
)
from sim.model.load_unit import LoadUnit
from sim.model.store_unit import StoreUnit
from sim.retiming.bursts import Bursts
from sim.retiming.dependencies import NOBODY, Dependencies
from sim.retiming.replay import Ints
from sim.timing.copies import BusCopy


class BusCommands(NamedTuple):
    """Commands of a unit in the order in which it takes them; ``side``: of the body, or of the loader; ``recorded``:
    when it took them in the recorded run, in cycles."""

    taken: Ints
    done: Ints
    side: Ints
    work: Sequence[BusCopy]
    recorded: Ints


class _Split:
    """Bursts of a unit by command: ``owner`` of each burst, ``first`` and ``last`` burst of each (-1: none)."""

    def __init__(self, numbers: Ints, transfers: BusCommands) -> None:
        counts = np.array([len(work.bursts) for work in transfers.work], np.int64)
        if counts.sum() != len(numbers):
            raise ValueError("loads were abandoned while the run was recorded: a run with pauses cannot be retimed")
        self.numbers = self._in_order(numbers, counts, np.argsort(transfers.recorded, kind="stable"))
        self.owner = np.repeat(np.arange(len(counts)), counts)
        self.starts = np.concatenate([[0], np.cumsum(counts)])[:-1].astype(np.int64)
        self.some = counts > 0
        self.lasts = self.starts + counts - 1

    @staticmethod
    def _in_order(numbers: Ints, counts: Ints, before: Ints) -> Ints:
        """The bursts by command; they were accepted by the commands ``before``."""
        first = np.empty(len(counts), np.int64)
        first[before] = np.cumsum(counts[before]) - counts[before]
        within = np.arange(len(numbers)) - np.repeat(np.cumsum(counts) - counts, counts)
        return numbers[np.repeat(first, counts) + within]

    def lead(self, transfers: BusCommands) -> Ints:
        """The burst that each command must have asked for before the next is taken, or -1."""
        lead = np.array([work.lead for work in transfers.work], np.int64)
        return np.where(lead > 0, self.starts + lead - 1, NOBODY)


def _picked(moments: Ints, places: Ints) -> Ints:
    """Those at ``places``, and nobody where a place is negative."""
    return np.where(places < 0, NOBODY, np.append(moments, NOBODY)[places])


def connect_loads(graph: Dependencies, params: SocParams, bursts: Bursts, engine: int, transfers: BusCommands) -> None:
    """LD2, for the body and the loader."""
    if not transfers.work:
        return
    split = _Split(bursts.of(LoadUnit, 3 * engine + 2), transfers)
    taken, done = transfers.taken, transfers.done
    runs = np.array([work.steps.runs for work in transfers.work], np.int64)
    steps = np.array([work.steps.steps for work in transfers.work], np.int64)
    lead = split.lead(transfers)
    numbers, ends = split.numbers, bursts.ends[split.numbers]
    offered = bursts.offered[numbers]
    graph.edges(taken[split.owner], offered, COPY_PLANNED + 2)
    graph.edges(bursts.taken[numbers[:-1]], offered[1:], 0)
    many = params.axi_outstanding
    graph.edges(ends[:-many], offered[many:], AXI_RETURN + 2)
    # Acceptance
    graph.edges(taken[:-1], taken[1:], np.maximum(2, np.where(lead[:-1] < 0, COPY_PLANNED - 1 + runs[:-1], 2)))
    graph.edges(
        np.where(lead[:-1] < 0, NOBODY, offered[np.maximum(lead[:-1], 0)] if len(offered) else NOBODY), taken[1:], 0
    )
    graph.edges(done[:-UNIT_IN_FLIGHT], taken[UNIT_IN_FLIGHT:], 2)
    switch = transfers.side[:-1] != transfers.side[1:]
    graph.edges(np.where(switch, done[:-1], NOBODY), taken[1:], 2)
    # Arrival
    graph.edges(done[:-1], done[1:], 0, [(Unit.LD2, steps[1:])])
    some = split.some
    first, last = split.starts[some], split.lasts[some]
    trail = np.array([work.trail for work in transfers.work], np.int64)
    graph.edges(ends[last], done[some], AXI_RETURN + COPY_LANDED, [(Unit.LD2, trail[some])])
    begin = bursts.beats[numbers[first]] - 1
    ahead = np.array([work.bursts[0].pause for work in transfers.work if work.bursts], np.int64)  # of the first word
    behind = steps[some] - ahead
    graph.edges(ends[first], done[some], AXI_RETURN + COPY_LANDED - 1, [(Unit.LD2, behind), ("beat", -begin)])
    nothing = COPY_PLANNED + COPY_FILLED + COPY_LANDED - 1
    graph.edges(taken[~some], done[~some], nothing, [(Unit.LD2, steps[~some])])


def connect_stores(graph: Dependencies, params: SocParams, bursts: Bursts, engine: int, transfers: BusCommands) -> None:
    """ST2."""
    if not transfers.work:
        return
    split = _Split(bursts.of(StoreUnit, 2 * engine), transfers)
    taken, done = transfers.taken, transfers.done
    runs = np.array([work.steps.runs for work in transfers.work], np.int64)
    steps = np.array([work.steps.steps for work in transfers.work], np.int64)
    numbers, ends = split.numbers, bursts.ends[split.numbers]
    beats = bursts.beats[numbers]
    announced = bursts.offered[numbers]
    lead = split.lead(transfers)
    graph.edges(taken[split.owner], announced, COPY_PLANNED + COPY_FETCHED + COPY_LANDED)
    words = np.bincount(split.owner, beats, minlength=len(steps)).astype(np.int64)
    spent = beats.copy()
    spent[split.lasts] += steps - words
    graph.edges(announced[:-1], announced[1:], 0, [(Unit.ST2, spent[:-1])])
    graph.edges(bursts.taken[numbers[:-1]], announced[1:], 0)
    many = params.axi_outstanding
    graph.edges(ends[:-many], announced[many:], 0)
    total = np.concatenate([[0], np.cumsum(beats)])
    # The youngest burst that must be in DRAM before all up to this one fit into the buffers.
    gone = np.searchsorted(total, total[1:] - StoreUnit.BUFFERED, side="left") - 1
    gone = np.minimum(gone, np.arange(len(gone)) - 1)
    graph.edges(_picked(ends, gone), announced, 0)
    graph.edges(taken[:-1], taken[1:], COPY_PLANNED - 1 + runs[:-1])
    graph.edges(_picked(announced, lead[:-1]), taken[1:], 0)
    graph.edges(done[:-UNIT_IN_FLIGHT], taken[UNIT_IN_FLIGHT:], 1)
    graph.edges(ends[split.lasts], done, COPY_LANDED)
