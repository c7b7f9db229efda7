"""Bounds what an image does to DRAM, as engines beside it see it: for the bound on pauses."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hw.contract.isa import UNIT_OF, Insn, Op, Unit
from hw.contract.params import SocParams
from hw.contract.timing import FETCH_AHEAD, UNIT_IN_FLIGHT
from sim.cost.overheads import UNIT_START
from sim.cost.rivals import Others
from sim.cost.units import insn_cycles

_FEW_STORES = 64  #: bursts that may all come at once
_SPANS = (16_384, 20_480, 24_576, 28_672, 32_768, 49_152, 65_536)  #: cycles for which instructions are counted
_ON_CHIP = (Unit.LD1, Unit.ST1, Unit.LD0, Unit.MAC, Unit.VEC)


def beside(engines: Sequence[Sequence[Sequence[Insn]]], params: SocParams, longest: int) -> Others:
    """Return what the other engines of the device do if they run what ``engines`` do (by engine: the bodies of its jobs
    in order), with prologues of loads of ``longest`` bytes and a rest."""
    others = params.engines - 1
    stores, beats = _few([_stores([insn for body in bodies for insn in body], params) for bodies in engines], others)
    if not others:
        return Others(0, stores, store_beats=beats)
    counts = [_most_issued([insn for body in bodies for insn in body], params) for bodies in engines]
    fetches = tuple((span, others * max((count[i] for count in counts), default=0)) for i, span in enumerate(_SPANS))
    return Others(others, stores, fetches, max(1, longest // (params.axi_burst_beats * params.dram_word)), beats)


def _few(stores: Sequence[tuple[int | None, int]], engines: int) -> tuple[int | None, int]:
    """Return the bursts that so many ``engines`` store in an inference (None if they are more than a few), of those
    that store most, and beats of the longest."""
    counts = [count for count, _ in stores if count is not None]
    total = sum(sorted(counts, reverse=True)[: max(1, engines)])
    few = len(counts) == len(stores) and total <= _FEW_STORES
    return total if few else None, max((beats for _, beats in stores), default=1)


def _stores(insns: Sequence[Insn], params: SocParams) -> tuple[int | None, int]:
    """Return the bursts that an engine stores in an inference (None if they are more than a few), and beats of the
    longest at most."""
    burst, total, longest = params.axi_burst_beats * params.dram_word, 0, 1
    for insn in insns:
        if insn.op is Op.ST2:
            runs = insn["n2"] * insn["n1"] * insn["n0"]
            if total + runs > _FEW_STORES:
                return None, params.axi_burst_beats
            starts = [insn["dst"]]
            for k in range(3):
                starts = [at + i * insn[f"dst_s{k}"] for at in starts for i in range(insn[f"n{k}"])]
            words = max((at % params.dram_word + insn["len"] - 1) // params.dram_word + 1 for at in starts)
            longest = max(longest, min(params.axi_burst_beats, words))
            total += sum((at % burst + insn["len"] - 1) // burst + 1 for at in starts)
    return (total, longest) if total <= _FEW_STORES else (None, params.axi_burst_beats)


def _most_issued(insns: Sequence[Insn], params: SocParams) -> list[int]:
    """Return the most instructions that can be fetched within each of the spans, whichever they begin with.

    When an instruction is issued, all before it have run but those that queues and units hold. So the cycles of each
    unit between two that are issued within a span, those left out, are no more than the span.
    """
    issued = [insn for insn in insns if insn.op in UNIT_OF]
    held = params.unit_room + UNIT_IN_FLIGHT
    kinds = {id(insn): insn for insn in issued}  # equal ones are mostly one object
    took = {number: insn_cycles(insn.op, insn.fields, params) - UNIT_START for number, insn in kinds.items()}
    units = np.array([UNIT_OF[insn.op] for insn in issued] * 2)  # one inference behind the other
    cycles = np.array([took[id(insn)] for insn in issued] * 2)
    most = {span: np.full(len(units), len(units)) for span in _SPANS}
    for unit in _ON_CHIP:
        before = np.concatenate([[0], np.cumsum(np.where(units == unit, cycles, 0))])
        done = _done_at(np.flatnonzero(units == unit), before, held)
        for span, last in most.items():
            np.minimum(last, np.searchsorted(done, before[:-1] + span, "right") - 1, out=last)
    first = np.arange(len(units))
    return [int(np.max(last - first, initial=0)) + FETCH_AHEAD for last in most.values()]


def _done_at(places: npt.NDArray[np.int64], before: npt.NDArray[np.int64], held: int) -> npt.NDArray[np.int64]:
    """Return by number of instructions issued the cycles of those of a unit that must have run, all but the last
    ``held``."""
    given = np.searchsorted(places, np.arange(len(before)), "left")
    done = np.zeros_like(before)
    late = given > held
    done[late] = before[places[given[late] - held - 1] + 1]
    return done
