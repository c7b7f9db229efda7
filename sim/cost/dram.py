"""Tells what DRAM costs, typically and at the worst."""

from dataclasses import dataclass, field
from functools import cached_property
from math import ceil

from hw.contract.isa import INSN_BYTES, Op
from hw.contract.job import COMPLETION
from hw.contract.params import SocParams
from hw.contract.timing import DRAM_QUEUE_BURSTS, FETCH_AHEAD, FETCH_BURST_BYTES
from sim.cost.overheads import BUS, RETIREMENT, UNIT_START
from sim.cost.rivals import Rivals

#: How much longer DRAM takes where prologues of several engines load side by side, which close each other's rows.
#: MobileNetV3 on ``base``, whose last 250,000 cycles wait for weights, gets 13.5 of 16 bytes a cycle for prologues
#: alone; by this factor the schedule of its jobs ranks ways to place windows as the fast model does.
LOADS_MEET = 1.13


def moved(size: float, params: SocParams, loads: float = 0) -> float:
    """Return the typical cycles in which DRAM moves ``size`` bytes, of which so many ``loads`` begin by themselves."""
    return loads * (UNIT_START + params.dram_latency / 4) + size / params.dram_bytes_per_cycle


def prologue_cycles(size: int, params: SocParams, engines: int = 1) -> int:
    """Return the typical cycles of DRAM of a prologue that loads ``size`` bytes: none if there is nothing to load.
    ``engines``: those whose prologues load beside it."""
    meet = LOADS_MEET if engines > 1 else 1.0
    return int(meet * moved(size, params)) + params.dram_latency if size else 0


def load_cycles(runs: int, length: int, params: SocParams) -> float:
    """Return the typical cycles of DRAM for loads of ``runs`` runs of ``length`` bytes that lie apart, whichever
    engines ask for them. Bursts in flight are limited, so that a short one takes its share of the time from its address
    to its data."""
    bursts = -(-length // (params.axi_burst_beats * params.dram_word))
    turn = (params.dram_latency + params.dram_row_miss) / params.axi_outstanding
    words = -(-length // params.dram_word) * params.dram_word
    return runs * max(moved(words, params), bursts * turn)


def tile_load_cycles(rows: int, cols: int, channels: int, depth: int, together: bool, params: SocParams) -> float:
    """Return the cycles of DRAM for ``rows`` x ``cols`` pixels in all their ``depth`` channels: by one load, if they
    come ``together`` or a tile has all channels, else by one for each ``channels`` of them, in short runs."""
    if together or channels >= depth:
        return load_cycles(rows, cols * depth, params)
    return -(-depth // channels) * load_cycles(rows * cols, channels, params)


def fetched_together(params: SocParams) -> int:
    """Return how many instructions a burst of the executor's fetch brings."""
    return min(params.axi_burst_beats * params.dram_word, FETCH_BURST_BYTES) // INSN_BYTES


@dataclass(frozen=True)
class WorstDram:
    """Says what DRAM costs at the worst: bursts open rows, all masters take turns, refresh comes as often as it can.

    Requests take turns burst by burst, reads with reads, writes with writes, and then reads with writes.
    """

    params: SocParams
    rivals: Rivals = field(default_factory=Rivals)

    @cached_property
    def burst(self) -> int:
        """Return the cycles of the longest burst: while LV2 holds its data up, the row of the next is being opened."""
        return self._burst(self.params.axi_burst_beats)

    def _bus(self, beats: int) -> int:
        """Return the cycles in which the bus moves ``beats``."""
        return ceil(moved(beats * self.params.dram_word, self.params))

    def _burst(self, beats: int) -> int:
        held = max(self.rivals.lv2_writes(Op.LD2), self.rivals.lv2_reads(Op.ST2))
        return self._bus(beats) + max(self.params.dram_row_miss, beats * (held - 1))

    @cached_property
    def insn(self) -> int:
        """Return the cycles to fetch one instruction, its share of opening a row, and the row it has closed,
        included."""
        per_burst = max(1, fetched_together(self.params))
        opened = self.params.dram_row_miss + self._closed
        return self._bus(INSN_BYTES // self.params.dram_word) + -(-opened // per_burst)

    @property
    def _closed(self) -> int:
        """Return the cycles to open a row again that another burst has closed: none beside other engines, where what
        this one loads and stores opens a row with every burst anyway."""
        return 0 if self.rivals.others.engines else self.params.dram_row_miss

    @property
    def few_stores(self) -> int:
        """Return the cycles that stores of other engines take from clients of LV2 where their number is known."""
        return (self.rivals.others.stores or 0) * self._store_beats

    @property
    def _store_beats(self) -> int:
        return self.rivals.others.store_beats or self.params.axi_burst_beats

    @cached_property
    def job(self) -> int:
        """Return the cycles of a completion on its way from the job before and of a descriptor of one to come, of every
        engine; and of what other engines store, if that is little."""
        others = self.rivals.others
        bursts = 2 * (1 + others.masters) * self._completion_bursts
        stores = (others.stores or 0) * self._burst(self._store_beats)
        return bursts * (self.burst + self._closed) + stores

    @cached_property
    def fetched(self) -> int:
        """Return the cycles of what other engines' loaders have fetched ahead, and of what their executors have and
        will, if that is known; otherwise these count with every burst."""
        counted = self.rivals.fetched
        ahead = self.rivals.others.masters * FETCH_AHEAD
        return (ahead + (0 if counted is None else ahead + counted)) * self.insn

    @property
    def _readers(self) -> int:
        """Return how many ask for data: of each engine the fetch, the loader and LD2."""
        return 3 * (1 + self.rivals.others.masters)

    @cached_property
    def fetch(self) -> int:
        """Return the cycles between two bursts of the executor's fetch that wait for all others."""
        return int(self._readers * (2 if self._store_turns else 1) * self.burst * self.slowdown)

    @cached_property
    def abandoned(self) -> int:
        """Return the cycles until all that LD2 has asked for has come, if it asks for nothing more; but for what
        others store, where it is counted.

        Reads are served in the order in which they are accepted. So no more are ahead of the last than the memory can
        hold, and if it is only on offer yet, every other reader may still come first, once.
        """
        held = DRAM_QUEUE_BURSTS + 2  # and the one in service, and the one on the bus
        bursts = (held + self._readers) * (2 if self._store_turns else 1)
        return int(bursts * self.burst * self.slowdown) + self.params.dram_latency + self._refreshed

    @property
    def _refreshed(self) -> int:
        """Return the cycles of a refresh that may have begun, and of the way to and from the memory."""
        return self.params.dram_refresh_cycles + BUS.worst

    @cached_property
    def completion(self) -> int:
        """Return the cycles to write the completion of a job."""
        turns = self._completion_bursts * (2 * self.rivals.others.masters + 3) * self.burst
        return RETIREMENT.worst + int(turns * self.slowdown) + self.params.dram_refresh_cycles + BUS.worst

    @cached_property
    def _completion_bursts(self) -> int:
        return -(-COMPLETION.size // (self.params.dram_word * self.params.axi_burst_beats))

    @cached_property
    def slowdown(self) -> float:
        """Return the factor by which refresh slows DRAM down."""
        p = self.params
        return p.dram_refresh_interval / (p.dram_refresh_interval - p.dram_refresh_cycles - p.dram_row_miss)

    def debt(self, cycles: int) -> int:
        """Return how long loads and stores may be held up by other traffic of ``cycles``, refresh included."""
        return int(cycles * self.slowdown) + 1

    @cached_property
    def _store_turns(self) -> int:
        """Return how many engines store all the time."""
        others = self.rivals.others
        return (others.masters if others.stores is None else 0) + (Op.ST2 in self.rivals.ops)

    @cached_property
    def _load_turns(self) -> int:
        return self.rivals.others.masters + (Op.LD2 in self.rivals.ops)

    def between(self, op: Op) -> int:
        """Return the cycles other bursts take for each burst of this engine's load or store unit: one of every master
        that moves data the same way, and one the other way for each of these. Other engines also fetch."""
        others = self.rivals.others
        same, other = self._load_turns, self._store_turns
        if self.rivals.fetched is None:
            same += others.masters
        if op is Op.ST2:
            same, other = other, same
        prologues = others.masters * -(-self.insn // others.loads)  # fetched with each load of another engine
        return (same - 1 + (same if other else 0)) * self.burst + prologues

    @cached_property
    def latency(self) -> int:
        """Return the cycles from a request of an idle client to its first data: all that may be queued before it, but
        :attr:`job`."""
        p, others = self.params, self.rivals.others.masters
        reads = p.axi_outstanding * self._load_turns + 2 * FETCH_AHEAD // 4 * others
        reads = min(DRAM_QUEUE_BURSTS, reads) + 1
        queue = (2 if self._store_turns else 1) * reads * self.burst
        queue += self._bus(1) - 1  # the bus is not ready again at once
        return int(queue * self.slowdown) + p.dram_latency + self._refreshed

    def transfer(self, op: Op, bursts: int, rows: int, beats: int, held: int = 1) -> int:
        """Return the cycles of ``bursts`` in ``rows`` with ``beats`` words, each of which takes the scratchpad ``held``
        cycles.

        A row stays open until others come between; a fetch that does is charged for opening it again.
        """
        p, between = self.params, self.between(op)
        misses = bursts if between or self.rivals.others.counted else rows
        own = self._bus(beats) + max(misses * p.dram_row_miss, beats * (held - 1)) + bursts * between
        round_trip = bursts * (p.dram_latency + BUS.worst) // p.axi_outstanding
        return int(max(own, round_trip) * self.slowdown) + 1
