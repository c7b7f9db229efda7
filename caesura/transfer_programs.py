"""Writes the programs with which the driver dumps and restores what a live range holds, wherever it lies: for bounds on
how long they take."""

from collections.abc import Callable, Iterable, Sequence

from hw.contract.isa import INSN_BYTES, Insn
from hw.contract.params import SocParams
from hw.contract.spaces import Space
from hw.image import LiveRange
from sw.driver import (
    LV2,
    LV2_COPY,
    PRIVATE_COPY,
    STAGE_BYTES,
    MemoryId,
    Program,
    Spill,
    StagingBuffer,
    load,
    reload,
    row_bytes,
    save,
)

Sizes = tuple[tuple[Space, int], ...]  #: memory and bytes of each range that is moved


def private_sizes(live: Iterable[LiveRange]) -> Sizes:
    """Return memory and bytes of the ranges of LV1 and of accumulators that have no copy elsewhere."""
    return tuple(sorted((r.space, r.size) for r in live if r.dirty and r.space in (Space.LV1, Space.LV0_ACC)))


def dirty_bytes(live: Iterable[LiveRange]) -> int:
    """Return the bytes of LV2 that have no copy elsewhere."""
    return sum(r.size for r in live if r.dirty and r.space == Space.LV2)


def clean_bytes(live: Iterable[LiveRange]) -> int:
    """Return the bytes of LV2 that have a copy in DRAM."""
    return sum(r.size for r in live if not r.dirty and r.space == Space.LV2)


def dump_program(params: SocParams, sizes: Iterable[tuple[Space, int]]) -> list[Insn]:
    """Return the driver's program that dumps ranges of these sizes."""
    return _program(params, sizes, save)


def restore_program(params: SocParams, sizes: Iterable[tuple[Space, int]]) -> list[Insn]:
    """Return the driver's program that brings ranges of these sizes back."""
    return _program(params, sizes, load)


def reload_program(params: SocParams, insns: Sequence[Insn]) -> list[Insn]:
    """Return the driver's program that runs loads of an image again."""
    program = Program(params)
    reload(program, list(insns), 0)
    return _decoded(program)


def _program(params: SocParams, sizes: Iterable[tuple[Space, int]], moved: Callable[..., None]) -> list[Insn]:
    row = row_bytes(params)
    lv1, lv2 = StagingBuffer((0, STAGE_BYTES), row), StagingBuffer((0, STAGE_BYTES), row)
    program = Program(params)
    for space, size in sizes:
        memory: MemoryId = (space, 0)
        most = LV2_COPY if memory == LV2 else PRIVATE_COPY
        for at in range(0, size, most):
            moved(program, Spill(memory, at, min(most, size - at), at), lv1, lv2)
    return _decoded(program)


def _decoded(program: Program) -> list[Insn]:
    """Return the instructions without END."""
    raw = program.encode()
    return [Insn.decode(raw[i : i + INSN_BYTES]) for i in range(0, len(raw) - INSN_BYTES, INSN_BYTES)]
