"""Longest durations of instructions, and the longest waits for DRAM: the numbers of the hardware's timing.

A unit is a pipeline. It is described by a *rate-latency* pair: with ``F(i) = max(ready(i), F(i - 1)) + work(i)``
instruction i is done by ``F(i) + latency``, where ``ready`` is when it has its semaphores and the unit could take it.
``work`` counts every cycle in which the narrowest stage can be held up: misalignment, conflicts at the banks of a
scratchpad, bursts of other masters at the DRAM.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

from hw.isa import FORMATS, TABLE_BYTES, VEC_CHANNEL_BYTES, Insn, Op, Unit
from hw.job import COMPLETION
from hw.params import SocParams

ISSUE = 2  #: cycles of an instruction in the executor
POINT = 3  #: cycles of a CANCEL in the executor
TO_HEAD = 4  #: from the executor to the head of a unit's queue
GRANT = 9  #: from the last signal until the unit sees the command: every unit may be granted first
MOST_IN_FLIGHT = 4  #: commands a unit queue lets its unit have
DRAINED = 20  #: from the last signal to HALTED, and the rest of what is in a pipeline behind :data:`IN_FLIGHT`
RETIRED = 120  #: END only: check, copy of the completion
#: Commands a unit may have taken and not finished; MAC works on one and knows the next, VEC takes one at a time.
IN_FLIGHT = dict.fromkeys(Unit, MOST_IN_FLIGHT) | {Unit.MAC: 2, Unit.VEC: 1}
LOADS = MOST_IN_FLIGHT + 1  #: loads of a prologue that a pause must wait for: those in the unit and the one on offer
FETCH_AHEAD = 16  #: instructions the executor's fetch reads ahead
FETCH_BYTES = 256  #: longest fetch burst
FOREIGN_INSN = 48  #: cycles per instruction of another engine, at the least, on average over a fetch burst
_QUEUE_BURSTS = 16  #: reads, and writes, that wait at the DRAM
_PLAN = 6  #: cycles between commands in the planner of a copy unit
_COPY_LATENCY = 30  #: from a scratchpad copy's start to its first word, and from its last to its signal
_BUS_LATENCY = 40  #: the same of a copy from or to DRAM, without the DRAM
_MAC_LATENCY = 16
_VEC_FIXED = 34  #: check, pipeline, last write
_VEC_LATENCY = 4
_RUNS_COUNTED = 256  #: runs of a copy whose bursts are counted one by one; the driver aligns segments to pages
_DEFAULTS = {op: {f.name: f.default for f in fields} for op, fields in FORMATS.items()}

Fields = dict[str, int]  #: every field of an instruction by name


@dataclass(frozen=True)
class Rivals:
    """Who competes with an instruction: ``engines`` at work at the same time, and what this engine itself does in the
    time that is looked at: operations (``ops``), whether VEC reads operands from LV1 (``vec_a``, ``vec_b``). Without
    ``own`` the other units of this engine cost nothing at the banks: :func:`lost` says what they cost in all."""

    engines: int = 1
    ops: frozenset[Op] = frozenset(Op)
    vec_a: bool = True
    vec_b: bool = True
    own: bool = True

    def lv1_reads(self, client: str) -> int:
        """Cycles a word of LV1 takes client ``client`` at the longest: one for each that reads beside it."""
        readers = {"ld0": Op.LD0 in self.ops, "st1": Op.ST1 in self.ops, "a": self.vec_a, "b": self.vec_b}
        return 1 + self.own * sum(reads for name, reads in readers.items() if name != client)

    def lv1_writes(self) -> int:
        """The same for a write: LD1 and VEC."""
        return 1 + (self.own and {Op.LD1, Op.VEC} <= self.ops)

    def lv2_reads(self, op: Op) -> int:
        """The same for LV2: LD1 and ST2 of every engine; all ST2 together read at most a word per cycle."""
        return self._lv2(Op.ST2 if op is Op.LD1 else Op.LD1)

    def lv2_writes(self, op: Op) -> int:
        """The same for a write: ST1 and LD2 of every engine; all LD2 together write at most a word per cycle."""
        return self._lv2(Op.LD2 if op is Op.ST1 else Op.ST1)

    def _lv2(self, other: Op) -> int:
        return self.engines + (self.engines > 1 or (self.own and other in self.ops))


@dataclass(frozen=True)
class Work:
    """``cycles`` that an instruction holds its unit, ``latency`` beyond (see the module), and ``accesses``: words by
    client of a scratchpad (:data:`PORTS`)."""

    cycles: int
    latency: int
    accesses: tuple[tuple[str, int], ...] = ()


#: Clients that meet at the banks of this engine's LV1 and of LV2: readers, then writers.
PORTS = (("ld0", "st1", "a", "b"), ("ld1", "d"), ("lv2_ld1", "lv2_st2"), ("lv2_st1", "lv2_ld2"))


def lost(accesses: dict[str, int]) -> int:
    """Cycles that conflicts between units of one engine can cost a chain of events, whichever it is.

    In a cycle that a client loses at a bank, another one is served there. So clients lose no more cycles than words are
    served to the others, and, as they take turns, none loses more than one per word of its own and rival.
    """
    total = 0
    for clients in PORTS:
        served = [accesses.get(client, 0) for client in clients]
        rivals = sum(count > 0 for count in served) - 1
        total += min(sum(served), sum(min(rivals * own, sum(served) - own) for own in served if own))
    return total


@dataclass(frozen=True)
class Memory:
    """What DRAM costs at the worst: every burst opens a row, all masters take turns, refresh comes as often as it can.

    Read requests take turns burst by burst, and so do reads with writes. So each burst of this engine waits for one
    load of every other engine, and where something is written, for one store per burst of either. The instruction
    fetch of other engines takes what :data:`FOREIGN_INSN` allows.
    """

    params: SocParams
    rivals: Rivals = field(default_factory=Rivals)

    @cached_property
    def burst(self) -> int:
        """Cycles of the longest burst that opens a row."""
        return self.params.axi_burst_beats + self.params.dram_row_miss

    @cached_property
    def insn(self) -> int:
        """Cycles to fetch one instruction, its share of opening a row, and the row it has closed, included."""
        beats = 64 // self.params.dram_word
        per_burst = max(1, min(self.params.axi_burst_beats, FETCH_BYTES // self.params.dram_word) // beats)
        return beats + -(-2 * self.params.dram_row_miss // per_burst)

    @cached_property
    def job(self) -> int:
        """Cycles of a completion on its way from the job before, and of a descriptor of one to come."""
        bursts = -(-COMPLETION.size // (self.params.dram_word * self.params.axi_burst_beats))
        return 2 * bursts * (self.burst + self.params.dram_row_miss)

    @cached_property
    def slowdown(self) -> float:
        """Factor for refresh and the fetch of other engines."""
        p = self.params
        refresh = p.dram_refresh_interval / (p.dram_refresh_interval - p.dram_refresh_cycles - p.dram_row_miss)
        share = min(0.75, (self.rivals.engines - 1) * self.insn / FOREIGN_INSN)
        return refresh / (1 - share)

    @cached_property
    def _writes(self) -> bool:
        return self.rivals.engines > 1 or Op.ST2 in self.rivals.ops

    @cached_property
    def _reads(self) -> bool:
        return self.rivals.engines > 1 or Op.LD2 in self.rivals.ops

    @cached_property
    def between(self) -> int:
        """Cycles other bursts take for each burst of this engine's load or store unit."""
        bursts = 2 * (self.rivals.engines - 1) + (self._writes and self._reads)
        return bursts * self.burst

    @cached_property
    def latency(self) -> int:
        """From a request of an idle client to its first data: everything that may be queued before it."""
        p, others = self.params, self.rivals.engines - 1
        reads = p.axi_outstanding * (others + (Op.LD2 in self.rivals.ops)) + FETCH_AHEAD // 4 * others
        reads = min(_QUEUE_BURSTS, reads) + 1
        queue = reads * (1 + self._writes) * self.burst
        return int(queue * self.slowdown) + p.dram_latency + p.dram_refresh_cycles + _BUS_LATENCY

    def transfer(self, bursts: int, rows: int, beats: int, held: int = 1) -> int:
        """Cycles of ``bursts`` in ``rows`` with ``beats`` words, each of which the scratchpad takes up in ``held`` cycles.
        A row stays open until others come between; a fetch that does is charged for opening it again."""
        p = self.params
        own = beats * held + (bursts if self.between else rows) * p.dram_row_miss + bursts * self.between
        round_trip = bursts * (p.dram_latency + _BUS_LATENCY) // p.axi_outstanding
        return int(max(own, round_trip) * self.slowdown) + 1


def work(insn: Insn, params: SocParams, rivals: Rivals, memory: Memory) -> Work:
    """The longest ``insn`` can take beside ``rivals``."""
    fields = _DEFAULTS[insn.op] | insn.fields
    if insn.op is Op.MAC:
        return _mac(fields, params)
    if insn.op is Op.VEC:
        return _vec(fields, params, rivals)
    return _copy(insn.op, fields, params, rivals, memory)


def _mac(insn: Fields, params: SocParams) -> Work:
    pixels = insn["p1"] * insn["p0"]
    blocks = insn["n2"] * insn["n1"] * insn["n0"]
    hazards = 2 * pixels if insn["p1"] > 1 and insn["acc_s"] < insn["p0"] else 2
    return Work(blocks * max(pixels + hazards - 2, params.rows) + 4, params.rows + _MAC_LATENCY)


def _vec(insn: Fields, params: SocParams, rivals: Rivals) -> Work:
    reads_a, reads_b = rivals.lv1_reads("a"), rivals.lv1_reads("b")
    vectors = insn["n2"] * insn["n1"] * insn["n0"]
    window = insn["k1"] * insn["k0"]
    block, table = _vec_words(insn, params)
    cycles = block * reads_a + _VEC_FIXED
    if table:
        cycles += table * (reads_a + 2) + TABLE_BYTES // 8
    per_step = 1 if insn["src_acc"] else max(reads_a, reads_b if insn["b_en"] else 1)
    # An operand word and a result word are asked for once per LV1 word at best, once per vector at worst.
    steps = max(vectors * window * per_step, vectors * rivals.lv1_writes())
    reads = 0 if insn["src_acc"] else vectors * window
    accesses = ("a", block + table + reads), ("b", reads * insn["b_en"]), ("d", vectors)
    return Work(cycles + steps, _VEC_LATENCY, accesses)


def _vec_words(insn: Fields, params: SocParams) -> tuple[int, int]:
    """LV1 words of the parameter block and of the table."""
    groups = insn["n0"] if insn["per_channel"] else 1
    block = (params.vec_header_bytes + groups * params.vec_lanes * VEC_CHANNEL_BYTES) // params.lv1_word
    return block, TABLE_BYTES // params.lv1_word if insn["table"] else 0


def parameter_words(insn: Insn, params: SocParams) -> int:
    """LV1 words that a VEC instruction reads before its first operand."""
    return sum(_vec_words(_DEFAULTS[insn.op] | insn.fields, params))


def _words(offset: int, length: int, word: int, exact: bool) -> int:
    """Words that ``length`` bytes touch; whatever the alignment unless ``exact``."""
    if length <= 0:
        return 0
    return (offset % word + length - 1) // word + 1 if exact else (length + word - 2) // word + 1


def _copy(op: Op, insn: Fields, params: SocParams, rivals: Rivals, memory: Memory) -> Work:
    to_bus, from_bus = op is Op.ST2, op is Op.LD2
    word = params.dram_word if to_bus or from_bus else params.lv1_word
    runs = insn["n2"] * insn["n1"] * insn["n0"]
    src_exact = all(insn[f"src_s{k}"] % word == 0 or insn[f"n{k}"] == 1 for k in range(3))
    dst_exact = all(insn[f"dst_s{k}"] % word == 0 or insn[f"n{k}"] == 1 for k in range(3))
    read = min(insn["hi"], insn["len"]) - insn["lo"]
    src = _words(insn["src"] + insn["lo"], read, word, src_exact)
    shifted = not (src_exact and dst_exact) or (insn["src"] - insn["dst"]) % word != 0
    dst = _words(insn["dst"], insn["len"], word, dst_exact) + shifted
    if from_bus or to_bus:
        side, length = ("src", read) if from_bus else ("dst", insn["len"])
        return _bus_copy(op, insn, params, memory, runs, max(src, dst), side, length)
    reads, writes = _scratchpad_rivals(op, rivals)
    cycles = max(runs * max(src * reads, dst * writes), runs + _PLAN)
    source, target = {Op.LD1: ("lv2_ld1", "ld1"), Op.ST1: ("st1", "lv2_st1"), Op.LD0: ("ld0", "")}[op]
    latency = _COPY_LATENCY + 8 * (max(reads, writes) - 1)
    return Work(cycles + 2, latency, ((source, runs * src), (target, runs * dst)))


def _scratchpad_rivals(op: Op, rivals: Rivals) -> tuple[int, int]:
    """Cycles per word at the source and at the destination."""
    if op is Op.LD1:
        return rivals.lv2_reads(op), rivals.lv1_writes()
    if op is Op.ST1:
        return rivals.lv1_reads("st1"), rivals.lv2_writes(op)
    return rivals.lv1_reads("ld0"), 1


def _bus_copy(
    op: Op, insn: Fields, params: SocParams, memory: Memory, runs: int, words: int, side: str, length: int
) -> Work:
    burst_bytes = params.axi_burst_beats * params.dram_word
    start = insn[side] + (insn["lo"] if side == "src" else 0)
    starts, exact = [start], runs <= _RUNS_COUNTED
    for k in range(3 if exact else 0):
        starts = [at + i * insn[f"{side}_s{k}"] for at in starts for i in range(insn[f"n{k}"])]

    def touched(size: int) -> int:
        """Blocks of ``size`` bytes that the runs touch, one after the other."""
        return sum(_words(at, length, size, exact) for at in starts) * (1 if exact else runs)

    bursts, rows = touched(burst_bytes), touched(params.dram_row_bytes)
    held = memory.rivals.lv2_writes(Op.LD2) if op is Op.LD2 else memory.rivals.lv2_reads(Op.ST2)
    cycles = max(memory.transfer(bursts, rows, runs * words, held), runs + _PLAN)
    return Work(cycles + 2, memory.latency, (("lv2_ld2" if op is Op.LD2 else "lv2_st2", runs * words),))


def rivals_of(insns: Iterable[Insn], engines: int) -> Rivals:
    """What the instructions of a stretch of program do to each other."""
    insns = list(insns)
    vec = [insn for insn in insns if insn.op is Op.VEC]
    return Rivals(
        engines,
        frozenset(insn.op for insn in insns),
        vec_a=any(not insn.fields.get("src_acc") for insn in vec),
        vec_b=any(insn.fields.get("b_en") for insn in vec),
    )
