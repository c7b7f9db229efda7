"""Tells who gets in the way of whom at the worst: at the banks of the scratchpads, and at DRAM."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil

from hw.contract.isa import INSN_BYTES, Insn, Op
from hw.contract.job import COMPLETION
from hw.contract.params import SocParams
from hw.contract.timing import DRAM_QUEUE_BURSTS, FETCH_AHEAD, FETCH_BURST_BYTES, RETIRED

_BUS_LATENCY = 40  #: the same of a copy from or to DRAM, without the DRAM


@dataclass(frozen=True)
class Others:
    """Says what other engines do at the same time: ``engines`` of them load, fetch and use LV2 all the time;
    ``stores``: bursts they write to DRAM in all (None: any number); ``fetches``: (cycles, instructions they fetch
    within so many cycles), ascending. ``loads``: bursts that an instruction of a prologue brings, but for a few."""

    engines: int = 0
    stores: int | None = None
    fetches: tuple[tuple[int, int], ...] = ()
    loads: int = 1
    store_beats: int | None = None  #: of the longest of ``stores``; None: those of a full burst


@dataclass(frozen=True)
class Rivals:
    """Says who competes with an instruction: ``others``, and what this engine itself does in the time that is looked
    at: operations (``ops``), whether VEC reads operands from LV1 (``vec_a``, ``vec_b``). Clients of a scratchpad in
    ``once`` (names as in :data:`PORTS`) cost the others nothing word by word: :func:`lost` says what they cost in all.
    With ``fetched``, other engines fetch so many instructions in all rather than all the time."""

    others: Others = Others()
    ops: frozenset[Op] = frozenset(Op)
    vec_a: bool = True
    vec_b: bool = True
    once: frozenset[str] = frozenset()
    fetched: int | None = None

    def lv1_reads(self, client: str) -> int:
        """Return the cycles that a word of LV1 takes client ``client`` at the longest: one for each that reads beside
        it."""
        readers = {"ld0": Op.LD0 in self.ops, "st1": Op.ST1 in self.ops, "a": self.vec_a, "b": self.vec_b}
        return 1 + sum(reads for name, reads in readers.items() if name not in {client, *self.once})

    def lv1_writes(self, client: str) -> int:
        """Return the cycles that a word written to LV1 takes at the longest; LD1 and VEC write there."""
        rival = "ld1" if client == "d" else "d"
        return 1 + (rival not in self.once and {Op.LD1, Op.VEC} <= self.ops)

    def lv2_reads(self, op: Op) -> int:
        """Return the cycles that a word read from LV2 takes at the longest. LD1 and ST2 of every engine read there; all
        ST2 together read at most a word per cycle. Few stores of other engines are counted apart
        (:attr:`WorstDram.few_stores`)."""
        return self._lv2(op, Op.LD1, Op.ST2)

    def lv2_writes(self, op: Op) -> int:
        """Return the cycles that a word written to LV2 takes at the longest. ST1 and LD2 of every engine write there;
        all LD2 together write at most a word per cycle."""
        return self._lv2(op, Op.ST1, Op.LD2)

    def _lv2(self, op: Op, wide: Op, narrow: Op) -> int:
        rival = narrow if op is wide else wide
        own = rival in self.ops and f"lv2_{rival.name.lower()}" not in self.once
        foreign = op is wide and self.others.engines > 0 and (narrow is Op.LD2 or self.others.stores is None)
        return 1 + self.others.engines + (own or foreign)


#: Clients that meet at the banks of this engine's LV1 and of LV2: readers, then writers.
PORTS = (("ld0", "st1", "a", "b"), ("ld1", "d"), ("lv2_ld1", "lv2_st2"), ("lv2_st1", "lv2_ld2"))


def lost(accesses: dict[str, int], once: Collection[str]) -> int:
    """Return the cycles that conflicts with the clients in ``once`` can cost a chain of events, whichever it is.

    In a cycle that a client loses at a bank, another one is served there. So clients lose no more cycles than words are
    served to those others, and, as they take turns, none loses more than one per word of its own and rival.
    """
    total = 0
    for clients in PORTS:
        served = {client: accesses[client] for client in clients if accesses.get(client)}
        rivals = {client: words for client, words in served.items() if client in once}
        each = 0
        for client, own in served.items():
            others = [words for name, words in rivals.items() if name != client]
            each += min(len(others) * own, sum(others))
        total += min(sum(rivals.values()), each)
    return total


def rivals_of(insns: Iterable[Insn], others: Others) -> Rivals:
    """Return what the instructions of a stretch of program do to each other."""
    insns = list(insns)
    vec = [insn for insn in insns if insn.op is Op.VEC]
    return Rivals(
        others,
        frozenset(insn.op for insn in insns),
        vec_a=any(not insn.fields.get("src_acc") for insn in vec),
        vec_b=any(insn.fields.get("b_en") for insn in vec),
    )


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
        return ceil(beats * self.params.dram_word / self.params.dram_bytes_per_cycle)

    def _burst(self, beats: int) -> int:
        held = max(self.rivals.lv2_writes(Op.LD2), self.rivals.lv2_reads(Op.ST2))
        return self._bus(beats) + max(self.params.dram_row_miss, beats * (held - 1))

    @cached_property
    def insn(self) -> int:
        """Return the cycles to fetch one instruction, its share of opening a row, and the row it has closed,
        included."""
        beats = INSN_BYTES // self.params.dram_word
        per_burst = max(1, min(self.params.axi_burst_beats, FETCH_BURST_BYTES // self.params.dram_word) // beats)
        return self._bus(beats) + -(-2 * self.params.dram_row_miss // per_burst)

    @property
    def _foreign_insn(self) -> int:
        """Return the cycles to fetch an instruction of another engine: what this one loads and stores opens rows with
        every burst anyway."""
        return self.insn - self.params.dram_row_miss * INSN_BYTES // FETCH_BURST_BYTES

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
        bursts = 2 * (1 + others.engines) * self._completion_bursts
        stores = (others.stores or 0) * (self._burst(self._store_beats) + self.params.dram_row_miss)
        return bursts * (self.burst + self.params.dram_row_miss) + stores

    @cached_property
    def fetched(self) -> int:
        """Return the cycles of what other engines have fetched ahead, and of what they fetch, if that is known."""
        return ((self.rivals.fetched or 0) + self.rivals.others.engines * 2 * FETCH_AHEAD) * self._foreign_insn

    @cached_property
    def fetch(self) -> int:
        """Return the cycles between two bursts of the executor's fetch that wait for all others."""
        others = self.rivals.others.engines
        readers = 3 * (1 + others)
        return int(readers * (2 if self._store_turns else 1) * self.burst * self.slowdown)

    @cached_property
    def completion(self) -> int:
        """Return the cycles to write the completion of a job."""
        turns = self._completion_bursts * (2 * self.rivals.others.engines + 3) * self.burst
        return RETIRED + int(turns * self.slowdown) + self.params.dram_refresh_cycles + _BUS_LATENCY

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
        return (others.engines if others.stores is None else 0) + (Op.ST2 in self.rivals.ops)

    @cached_property
    def _load_turns(self) -> int:
        return self.rivals.others.engines + (Op.LD2 in self.rivals.ops)

    def between(self, op: Op) -> int:
        """Return the cycles other bursts take for each burst of this engine's load or store unit: one of every master
        that moves data the same way, and one the other way for each of these. Other engines also fetch."""
        others = self.rivals.others
        same, other = self._load_turns, self._store_turns
        if self.rivals.fetched is None:
            same += others.engines
        if op is Op.ST2:
            same, other = other, same
        prologues = others.engines * -(-self._foreign_insn // others.loads)  # fetched with each load of another engine
        return (same - 1 + (same if other else 0)) * self.burst + prologues

    @cached_property
    def latency(self) -> int:
        """Return the cycles from a request of an idle client to its first data: all that may be queued before it, but
        :attr:`job`."""
        p, others = self.params, self.rivals.others.engines
        reads = p.axi_outstanding * self._load_turns + 2 * FETCH_AHEAD // 4 * others
        reads = min(DRAM_QUEUE_BURSTS, reads) + 1
        queue = (2 if self._store_turns else 1) * reads * self.burst
        queue += self._bus(1) - 1  # the bus is not ready again at once
        return int(queue * self.slowdown) + p.dram_latency + p.dram_refresh_cycles + _BUS_LATENCY

    def transfer(self, op: Op, bursts: int, rows: int, beats: int, held: int = 1) -> int:
        """Return the cycles of ``bursts`` in ``rows`` with ``beats`` words, each of which takes the scratchpad ``held``
        cycles.

        A row stays open until others come between; a fetch that does is charged for opening it again.
        """
        p, between = self.params, self.between(op)
        misses = bursts if between else rows
        own = self._bus(beats) + max(misses * p.dram_row_miss, beats * (held - 1)) + bursts * between
        round_trip = bursts * (p.dram_latency + _BUS_LATENCY) // p.axi_outstanding
        return int(max(own, round_trip) * self.slowdown) + 1
