"""Tells who gets in the way of whom at the worst: other engines, and the clients of the scratchpads' banks."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import ClassVar

from hw.contract.isa import Insn, Op


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
    counted: ClassVar[bool] = False  #: what they do to DRAM is added apart

    @property
    def masters(self) -> int:
        """Return how many engines take turns at the DRAM."""
        return 0 if self.counted else self.engines


class CountedOthers(Others):
    """Is other engines whose time at the DRAM is added in all by whoever asks (``sim.cost.body_bound.dram_service``),
    rather than burst by burst. They close rows, and use LV2 all the time."""

    counted = True


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

    @property
    def in_all(self) -> frozenset[str]:
        """Return the clients whose conflicts :func:`lost` has: those in ``once``, and VEC where it reads nothing from
        LV1 but its parameters, which word by word cost nobody anything."""
        return self.once if self.vec_a else self.once | {"a"}

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
        (:attr:`sim.cost.dram.WorstDram.few_stores`)."""
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


def lost(accesses: dict[str, int], once: Collection[str], losers: Collection[str] | None = None) -> int:
    """Return the cycles that conflicts with the clients in ``once`` can cost a chain of events, whichever it is; with
    ``losers``, one that none but these clients take part in.

    In a cycle that a client loses at a bank, another one is served there. So clients lose no more cycles than words are
    served to those others, and, as they take turns, none loses more than one per word of its own and rival.
    """
    return sum([min(served, each) for _, served, each in _conflicts(accesses, once, losers)])


def all_counted(accesses: dict[str, int], once: Collection[str], losers: Collection[str]) -> list[str]:
    """Return the clients whose words :func:`lost` counts all of. What a chain waits for is served beside it, so the
    words of its own steps may be taken off that."""
    return [
        client for rivals, served, each in _conflicts(accesses, once, losers) if served <= each for client in rivals
    ]


def _conflicts(
    accesses: dict[str, int], once: Collection[str], losers: Collection[str] | None
) -> list[tuple[list[str], int, int]]:
    """Return for each port of a scratchpad the clients in ``once``, words that are served to them, and how often the
    others may wait for them."""
    found = []
    for clients in PORTS:
        rivals, words, each = list[str](), 0, 0
        for client in clients:
            if client in once and accesses.get(client):
                rivals.append(client)
                words += accesses[client]
        for client in clients:
            own = accesses.get(client, 0)
            if own and (losers is None or client in losers):
                mine = client in once  # one of the rivals
                each += min((len(rivals) - mine) * own, words - mine * own)
        found.append((rivals, words, each))
    return found


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
