"""Counts the cycles of a copy within the units that move data: ``hw/dma`` between ports that never refuse.

A copy is a sequence of *runs*. The planner describes one run per cycle, the source fetches its words ahead of their
use, and the realigner takes a *step* per destination word, and one more where the first destination word needs two
source words. A run never has more source words than steps, so steps are what a copy takes once data has arrived.

Of copies of very many runs an excerpt is looked at, which the whole goes on as (:mod:`sim.cost.exact.excerpt`).
"""

from array import array
from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple, overload

import numpy as np
import numpy.typing as npt

from hw.contract.timing import COPY_ASKED, COPY_FETCHED, RUNS_AHEAD, WORDS_AHEAD
from sim.cost.exact.excerpt import MOST, Repeated, excerpt

Ints = npt.NDArray[np.int64]

#: Fields of a copy that its runs depend on; the two addresses count modulo the word (or the burst) alone.
COPY_FIELDS = (
    "src", "dst", "len", "lo", "hi", "n2", "n1", "n0", "src_s2", "src_s1", "src_s0", "dst_s2", "dst_s1", "dst_s0",
    "lo1", "hi1", "lo0", "hi0",
)  # fmt: skip
RUN_LOOPS = ("n2", "n1", "n0")  #: the counts of a copy's loops, outermost first
NUMBERED = 1 << 24  #: words are counted modulo this
FEW_RUNS, FEW_BURSTS = 1 << 10, 1 << 7  #: copies of no more are kept once they were worked out


class _CopySteps(NamedTuple):
    runs: int
    steps: int
    late: int
    ahead: int
    fields: tuple[int, ...] = ()


class CopySteps(_CopySteps):
    """Says what a copy asks of realigner and planner.

    ``runs`` and ``steps`` in all; ``late``: from the first run to the end, had every run before the first that reads
    taken one cycle (0: nothing is read); ``ahead``: steps that are left when the planner has let go of the last run,
    where queues are full; ``fields``: the copy's, see :func:`copy_steps`. ``core``: where the fast model keeps what it
    makes of this, 0 before it does, and ``kept`` what that consists of.
    """

    core: int = 0
    kept: Any = None


class Runs(NamedTuple):
    """Holds the runs of a copy in order: offsets of byte 0 in source and destination, and whether anything is read."""

    src: Ints
    dst: Ints
    reads: npt.NDArray[np.bool_]


def runs_of(f: Mapping[str, int]) -> Runs:
    """Return all runs of the copy with the fields ``f``, which are not more than memory holds."""
    i2, i1, i0 = np.arange(f["n2"])[:, None, None], np.arange(f["n1"])[:, None], np.arange(f["n0"])
    src, dst = (
        (f[side] + i2 * f[f"{side}_s2"] + i1 * f[f"{side}_s1"] + i0 * f[f"{side}_s0"]).reshape(-1)
        for side in ("src", "dst")
    )
    inside = (f["lo1"] <= i1) & (i1 < f["hi1"]) & (f["lo0"] <= i0) & (i0 < f["hi0"])
    some = f["lo"] < min(f["hi"], f["len"])
    reads = np.broadcast_to(inside & some, (f["n2"], f["n1"], f["n0"])).reshape(-1)
    return Runs(src.astype(np.int64), dst.astype(np.int64), reads)


def _reading(f: Mapping[str, int]) -> int:
    """Return how many of the runs of the copy with the fields ``f`` read."""
    if f["lo"] >= min(f["hi"], f["len"]):
        return 0
    inner = (max(0, min(f[f"hi{loop}"], f[f"n{loop}"]) - f[f"lo{loop}"]) for loop in "10")
    return f["n2"] * prod(inner)


def run_steps(f: Mapping[str, int], runs: Runs, word: int) -> tuple[Ints, Ints]:
    """Return the steps of the realigner and the words of the source for each run, with memories of ``word`` bytes."""
    low = word - 1
    start = runs.dst & low
    words = (start + f["len"] - 1) // word + 1
    rotate = (runs.src - runs.dst) & low
    read_last = min(f["hi"], f["len"]) - 1
    src_first = (f["lo"] + start + rotate) // word
    src_last = (read_last + start + rotate) // word
    pair = (rotate != 0) & (src_last != 0)
    steps = words + (pair & runs.reads & (src_first == 0))
    return steps, np.where(runs.reads, src_last - src_first + 1, 0)


@lru_cache(maxsize=1 << 14)
def copy_steps(word: int, *values: int) -> CopySteps:
    """Return the steps of the copy with ``COPY_FIELDS`` of ``values`` between memories of ``word`` bytes."""
    f, whole, part = excerpt(dict(zip(COPY_FIELDS, values, strict=True)), RUN_LOOPS, MOST)
    runs = runs_of(f)
    steps, words = run_steps(f, runs, word)
    total = int(steps.sum()) * whole // part
    late = 0
    if runs.reads.any():
        first = int(runs.reads.argmax())
        late = (first + int(steps[first:].sum())) * whole // part
    return CopySteps(whole, total, late, _ahead(steps, words), values)


@lru_cache(maxsize=1 << 8)
def written_words(word: int, fields: tuple[int, ...]) -> Sequence[int]:
    """Return the word that each step writes, counted from that of byte 0, or -1: none. ``fields``: see
    :func:`copy_steps`."""
    f, whole, part = excerpt(dict(zip(COPY_FIELDS, fields, strict=True)), RUN_LOOPS, _runs_of_most(fields, word))
    runs = runs_of(f)
    steps, _ = run_steps(f, runs, word)
    first = runs.dst // word
    counts = (runs.dst + f["len"] - 1) // word - first + 1
    found = array("i")
    for at, count, taken in zip(first.tolist(), counts.tolist(), steps.tolist(), strict=True):
        found.extend([-1] * (taken - count))
        found.extend(range(at, at + count))
    return found if part == whole else Repeated(found, len(found) * whole // part)


class CopyWords(NamedTuple):
    """Holds the words that the steps of a copy, or of a VEC, read and write: an int32 for each step, below 0 where
    there is none, and otherwise counted from the word of byte 0, modulo 2^24. ``fetches``: what a source asks a
    scratchpad for in each cycle from its first request on, which is ahead of the steps where these wait for nothing."""

    reads: npt.NDArray[np.int32]
    writes: npt.NDArray[np.int32]
    fetches: npt.NDArray[np.int32]


@lru_cache(maxsize=1 << 10)
def copy_words(word: int, fields: tuple[int, ...]) -> CopyWords:
    """Return the words that the steps of a copy between memories of ``word`` bytes read and write, as far as they are
    walked through. ``fields``: see :func:`copy_steps`."""
    f, _, _ = excerpt(dict(zip(COPY_FIELDS, fields, strict=True)), RUN_LOOPS, _runs_of_most(fields, word))
    runs = runs_of(f)
    steps, words = run_steps(f, runs, word)
    start = runs.dst & (word - 1)
    rotate = (runs.src - runs.dst) & (word - 1)
    source = (f["lo"] + start + rotate) // word  # of the frame: the first source word that is read
    before = np.where(runs.reads, np.maximum(0, source - ((rotate != 0) & (source + words > 1))), 0)
    run = np.repeat(np.arange(len(steps)), steps)
    step = np.arange(len(run)) - np.repeat(np.cumsum(steps) - steps, steps)
    behind = (steps - ((runs.dst + f["len"] - 1) // word - runs.dst // word + 1))[run]
    taken = step - before[run]
    reads = ((runs.src - start) // word + source)[run] + taken
    writes = (runs.dst // word)[run] + step - behind
    asked = (taken >= 0) & (taken < words[run])
    fetches = _fetches(reads[asked], run[asked], words, np.flatnonzero(asked))
    return CopyWords(_words(reads, asked), _words(writes, step >= behind), fetches)


def _fetches(reads: Ints, run: Ints, words: Ints, taken: Ints) -> npt.NDArray[np.int32]:
    """Return what a source asks for in each cycle, where word k of ``reads`` is of number ``run[k]`` of the runs, which
    have ``words`` each, and is ``taken[k]`` in that step.

    Runs come one per cycle, and those that read when the one before of these was asked for. A word is asked for behind
    the word before, once there is room for it.
    """
    if not len(reads):
        return np.empty(0, np.int32)
    time = run[0] + np.cumsum(np.maximum(1, np.diff(run, prepend=run[0]) - words[np.roll(run, 1)] + 1)) - 1
    room = taken[:-WORDS_AHEAD] + COPY_FETCHED - COPY_ASKED + 2 - time[WORDS_AHEAD:]
    time[WORDS_AHEAD:] += np.maximum(0, np.maximum.accumulate(room))
    found = np.full(time[-1] + 1, -1, np.int32)
    found[time] = reads % NUMBERED
    return found


def _words(words: Ints, asked: npt.NDArray[np.bool_]) -> npt.NDArray[np.int32]:
    return np.ascontiguousarray(np.where(asked, words % NUMBERED, -1), np.int32)


def _runs_of_most(fields: Sequence[int], size: int) -> int:
    """Return how many runs, each moving words of ``size`` bytes, have :data:`MOST` words in all."""
    length = fields[COPY_FIELDS.index("len")]
    return max(1, MOST // (length // size + 2))


def _ahead(steps: Ints, words: Ints) -> int:
    """Return the steps behind the moment at which the last run leaves the planner: it waits for room in the queue of
    runs, and the last run before it that reads for the source, which asks for all words of the one before first."""
    count = len(steps)
    limit = int(steps.sum())
    if count > RUNS_AHEAD + 1:
        limit = min(limit, int(steps[-RUNS_AHEAD - 1 :].sum()) - 1)
    reading = np.flatnonzero(words[:-1])
    if len(reading) > 1:
        before, waits = reading[-2:]
        per_word = int(steps[before]) / int(words[before])
        asked = int(steps[before + 1 :].sum()) + int(WORDS_AHEAD * per_word) - 2
        limit = min(limit, asked - (count - 2 - int(waits)))
    return limit


class Burst(NamedTuple):
    """Is ``beats`` words of DRAM from byte ``offset`` on; of a load, ``pause``: steps of the realigner since the word
    before that take none; ``into``: the byte of LV2 for its first, counted from what the copy's own are."""

    offset: int
    beats: int
    pause: int = 0
    into: int = 0


class BurstTable(Sequence[Burst]):
    """Stands for ``count`` bursts: those of ``table``, a row each, over and over. ``address`` is where its rows are in
    memory."""

    def __init__(self, table: Ints, count: int) -> None:
        self._table = np.ascontiguousarray(table, np.int64)
        self.part = len(self._table)
        self.address: int = self._table.ctypes.data
        self._count = count if self.part else 0

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> Burst: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Burst]: ...

    def __getitem__(self, index: int | slice) -> Burst | Sequence[Burst]:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(self._count))]
        if not 0 <= index < self._count:
            raise IndexError(index)
        return Burst(*self._table[index % self.part].tolist())


class BusCopy(NamedTuple):
    """Says what a copy from or to DRAM asks of the bus, beyond its ``steps``.

    ``bursts`` in order; ``lead``: how many of them must have been asked for before the planner lets go of the last run;
    ``trail``: steps behind the last word.
    """

    steps: CopySteps
    bursts: BurstTable
    lead: int
    trail: int


@lru_cache(maxsize=1 << 14)
def bus_copy(word: int, burst_bytes: int, from_bus: bool, *values: int) -> BusCopy:
    """Return what the copy with ``COPY_FIELDS`` of ``values`` asks of the bus; ``burst_bytes`` is where bursts end. Its
    address in DRAM must be given modulo a multiple of ``burst_bytes`` from which the caller counts the offsets."""
    told = dict(zip(COPY_FIELDS, values, strict=True))
    f, whole, part = excerpt(told, RUN_LOOPS, _runs_of_most(values, burst_bytes))
    runs = runs_of(f)
    if from_bus:
        first = runs.src[runs.reads] + f["lo"]
        last = runs.src[runs.reads] + min(f["hi"], f["len"]) - 1
        pauses, trail = _pauses(f, runs, word)
        shifts = runs.dst[runs.reads] - runs.src[runs.reads]
    else:
        pauses, trail = np.zeros_like(runs.dst), 0
        shifts = np.zeros_like(runs.dst)
        first, last = runs.dst, runs.dst + f["len"] - 1
    first, last = first // word, last // word
    per_burst = burst_bytes // word
    counts = last // per_burst - first // per_burst + 1
    # A row for each burst: its run, and its number among those of the run.
    run = np.repeat(np.arange(len(first)), counts)
    number = np.arange(len(run)) - np.repeat(np.cumsum(counts) - counts, counts)
    begin = (first[run] // per_burst + number) * per_burst
    at, end = np.maximum(first[run], begin), np.minimum(last[run], begin + per_burst - 1)
    pause = np.where(number == 0, pauses[run], 0)
    bursts = np.stack([at * word, end - at + 1, pause, at * word + shifts[run]], axis=1)
    behind = 2 if from_bus else 2 + -(-WORDS_AHEAD // max(1, int((last - first).max(initial=0)) + 1))
    asking, shown = (_reading(told), len(first)) if from_bus else (whole, part)  # runs that ask for bursts
    total = len(bursts) * asking // shown if shown else 0
    lead = total - int(counts[-behind:].sum()) if part < whole else int(counts[:-behind].sum())
    count = total if total > min(FEW_BURSTS, len(bursts)) else len(bursts)
    return BusCopy(copy_steps(word, *values), BurstTable(bursts, count), lead, trail)


def takes_long(f: Mapping[str, int], burst_bytes: int = 0) -> bool:
    """Return whether a copy, if ``burst_bytes`` from or to DRAM in bursts of that size, is too long to be kept once it
    was worked out."""
    runs = f["n2"] * f["n1"] * f["n0"]
    return runs > FEW_RUNS or (burst_bytes > 0 and runs * (f["len"] // burst_bytes + 2) > FEW_BURSTS)


def run_of_burst(f: Mapping[str, int], base: int, word: int, burst_bytes: int, from_bus: bool, number: int) -> int:
    """Return the offset of byte 0 of the run that burst ``number`` of a copy belongs to, in its segment at ``base`` in
    DRAM; see :func:`bus_copy`."""
    f, *_ = excerpt(f, RUN_LOOPS, MOST)
    runs = runs_of(f)
    if from_bus:
        offsets, skip, end = runs.src[runs.reads], f["lo"], min(f["hi"], f["len"])
    else:
        offsets, skip, end = runs.dst, 0, f["len"]
    first, last = base + offsets + skip, base + offsets + end - 1
    counts = last // burst_bytes - first // burst_bytes + 1
    total = np.cumsum(counts)
    return int(offsets[np.searchsorted(total, number % int(total[-1]), side="right")])


def run_beyond(f: Mapping[str, int], base: int, size: int, from_bus: bool) -> int:
    """Return the offset of byte 0 of the first run of a copy that reaches beyond a DRAM of ``size`` bytes, in its
    segment at ``base``."""
    runs = runs_of(excerpt(f, RUN_LOOPS, MOST)[0])
    first = runs.src if from_bus else runs.dst
    beyond = first + base + f["len"] > size
    return int(first[beyond][0]) if beyond.any() else int(first[0])


def _pauses(f: Mapping[str, int], runs: Runs, word: int) -> tuple[Ints, int]:
    """Return the steps that take no word, before the first word of each run that reads and since the one before it, and
    behind the last: they fill, or end a word with the rest of the last source word."""
    steps, words = run_steps(f, runs, word)
    first = (f["lo"] + (runs.dst & (word - 1)) + ((runs.src - runs.dst) & (word - 1))) // word
    # The first source word is taken in the step of the destination word of its number, or one before.
    shifted = ((runs.src - runs.dst) & (word - 1) != 0) & (first + words > 1)
    before = np.where(runs.reads, np.maximum(0, first - shifted), 0)
    behind = steps - words - before
    total = np.cumsum(before + behind)
    at = (total - behind)[runs.reads]
    since = np.diff(at, prepend=0)
    return since, int(total[-1] - (at[-1] if len(at) else 0))
