"""What a preemption does to on-chip memory, at its worst: everything that is not declared live is overwritten."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from hw.contract.isa import LV2_SEGMENTS, Op, Segment
from hw.contract.spaces import Space
from hw.image.image import Image, LiveRange
from sim.functional.machine import Machine
from sim.functional.state import Segments
from sim.functional.strided import Box
from sim.functional.units import Units
from tests.support.check.liveness import memories
from tests.support.check.stretches import Cut

_RELOADS = (Op.LD2, Op.LD1, Op.LD0)


class DeclarationError(ValueError):
    """A live range or reload list that no driver could carry out; the message names it and says why."""


def disturb(machine: Machine, image: Image, segments: Segments, cut: Cut, rng: np.random.Generator) -> None:
    """Save what ``cut`` declares dirty, change every on-chip byte of the SoC, and bring the declared state back.

    In the order of the hardware's contract: dirty ranges, clean ranges of LV2 from DRAM, windows of jobs that have not
    started (by their prologues), then the point's ``reload`` instructions and semaphores. Raises
    :class:`DeclarationError`, or :class:`sim.functional.state.FunctionalFault` from an instruction that is run again.
    """
    engine = 0 if cut.job is None else image.meta.jobs[cut.job].engine
    live = cut.live(image)
    kept = [view for r in live if r.dirty for view in [live_view(machine, segments, engine, r)]]
    for other in cut.beside:
        kept += [live_view(machine, segments, engine, r) for r in image.meta.jobs[other].live]
    saved = [view.copy() for view in kept]
    for memory in memories(machine):
        # An odd number changes every byte.
        memory.data[...] ^= np.frombuffer(rng.bytes(memory.data.size), np.uint8) | 1
    for view, value in zip(kept, saved, strict=True):
        view[...] = value
    for r in live:
        if not r.dirty and r.space == Space.LV2:
            live_view(machine, segments, engine, r)[...] = _source(machine, segments, r)
    for job in cut.loaded:
        machine.run_prologue(image.code, image.meta.jobs[job].prologue_pc or 0, segments, image.meta.jobs[job].engine)
    if cut.point is not None:
        _reload(machine, image, segments, engine, cut.point.reload)
        counts = machine.engines[engine].semaphores
        counts[:] = declared_semaphores(cut, len(counts))


def undeclared(
    machine: Machine, image: Image, segments: Segments, cut: Cut
) -> Iterator[tuple[int, npt.NDArray[np.int64]]]:
    """For each on-chip memory with bytes that are read later and lie in no declared range: its number and the bytes.

    Declared are the live ranges of ``cut``, of jobs beside it, windows that a prologue has filled, and what LD2 of the
    reload list write to LV2. Call after :func:`disturb`, which checks the limits of all these.
    """
    plan = Units(machine.params, np.zeros(0, np.uint8))
    ranges = [(0 if cut.job is None else image.meta.jobs[cut.job].engine, r) for r in cut.live(image)]
    ranges += [(image.meta.jobs[job].engine, r) for job in cut.beside for r in image.meta.jobs[job].live]
    for engine, r in ranges:
        live_view(plan, segments, engine, r)[...] = 1
    for job in cut.loaded:
        offset, size = image.meta.jobs[job].window
        start = segments[Segment.WINDOWS][0] + offset
        plan.lv2[start : start + size] = 1
    for pc in cut.point.reload if cut.point is not None else []:
        insn = machine.fetch(image.code, pc)
        if insn.op is Op.LD2:
            base, limit = segments[insn["dst_seg"]]
            shape, strides = (insn["n2"], insn["n1"], insn["n0"], insn["len"]), ("dst_s2", "dst_s1", "dst_s0")
            box = Box(insn["dst"], shape, (*(insn[name] for name in strides), 1))
            box.view(plan.lv2[base : base + limit])[...] = 1
    for number, (memory, need) in enumerate(zip(memories(plan), cut.needs, strict=True)):
        odd = np.flatnonzero(np.unpackbits(need, count=memory.data.size) > memory.data)
        if odd.size:
            yield number, odd


def declared_semaphores(cut: Cut, count: int) -> list[int]:
    """The count of every semaphore as the image declares it: zero at the start of a job."""
    given = dict(cut.point.semaphores) if cut.point is not None else {}
    odd = [number for number in given if not 0 <= number < count]
    if odd:
        raise DeclarationError(f"semaphore {odd[0]} does not exist ({count} do)")
    return [given.get(number, 0) for number in range(count)]


def live_view(machine: Units, segments: Segments, engine: int, r: LiveRange) -> npt.NDArray[np.uint8]:
    """The bytes of a live range, as a view: one dimension, or (PEs, bytes) in LV0."""
    memory, name = _memory(machine, segments, engine, r)
    size = memory.shape[-1]
    if r.offset < 0 or r.size < 1 or r.offset + r.size > size:
        raise DeclarationError(f"live range {r.offset} to {r.offset + r.size} leaves {name} ({size} bytes)")
    if r.dirty and r.space in (Space.LV0_ACT, Space.LV0_WGT):
        raise DeclarationError(f"dirty range {r.offset} to {r.offset + r.size} of {name}: no instruction reads it back")
    return memory[..., r.offset : r.offset + r.size]


def _memory(machine: Units, segments: Segments, engine: int, r: LiveRange) -> tuple[npt.NDArray[np.uint8], str]:
    own = machine.engines[engine]
    if r.space == Space.LV2:
        if r.segment not in LV2_SEGMENTS:
            raise DeclarationError(f"live range of LV2 in segment {r.segment}, which lies in DRAM")
        base, limit = segments[r.segment]
        return machine.lv2[base : base + limit], f"segment {r.segment}"
    if r.space == Space.LV0_ACC:
        return own.acc.view(np.uint8).reshape(-1), r.space
    return {Space.LV1: own.lv1, Space.LV0_ACT: own.act, Space.LV0_WGT: own.wgt}[r.space], r.space


def _source(machine: Machine, segments: Segments, r: LiveRange) -> npt.NDArray[np.uint8]:
    base, limit = segments[r.source_segment]
    if r.source_segment in LV2_SEGMENTS or r.source_offset < 0 or r.source_offset + r.size > limit:
        raise DeclarationError(
            f"clean range {r.offset} to {r.offset + r.size} of segment {r.segment}: its source at {r.source_offset} "
            f"leaves segment {r.source_segment} ({limit} bytes) or does not lie in DRAM"
        )
    return machine.dram[base + r.source_offset : base + r.source_offset + r.size]


def _reload(machine: Machine, image: Image, segments: Segments, engine: int, pcs: list[int]) -> None:
    for pc in pcs:
        insn = machine.fetch(image.code, pc)
        if insn.op not in _RELOADS:
            raise DeclarationError(f"reload of PC {pc}: {insn.op.name} is not a load")
        machine.execute(insn, segments, engine, pc)


def differing(
    one: Machine, other: Machine, wanted: list[npt.NDArray[np.uint8]]
) -> Iterator[tuple[int, npt.NDArray[np.int64]]]:
    """For each on-chip memory that differs where ``wanted`` (bits per byte): its number and the bytes that do."""
    for number, (a, b, need) in enumerate(zip(memories(one), memories(other), wanted, strict=True)):
        if not np.array_equal(a.data, b.data):
            odd = np.flatnonzero((a.data != b.data) & np.unpackbits(need, count=a.data.size).view(bool))
            if odd.size:
                yield number, odd
