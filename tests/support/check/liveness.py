"""Which on-chip bytes a program still reads: backward liveness over the instructions that were executed.

The masks live in a shadow of the machine: a byte is nonzero if something later reads it before anything writes it.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hw.contract.isa import Insn, MacMode, Op
from hw.contract.params import SocParams
from hw.contract.spaces import Space
from sim.functional.state import EngineMemories, MemoryAccess, Segments
from sim.functional.strided import Box
from sim.functional.units import Units


@dataclass(frozen=True)
class Executed:
    """One instruction as it ran; ``body`` unless it is part of a prologue."""

    insn: Insn
    pc: int
    engine: int
    body: bool
    accesses: tuple[MemoryAccess, ...]


@dataclass(frozen=True)
class OnChipMemory:
    """An on-chip memory as bytes in one dimension (a view), and what one element of a ``MemoryAccess`` means there.

    ``element``: bytes of an element in memory ``name``; they count from 0 in each PE, which has ``span`` bytes.
    """

    name: str
    engine: int  #: -1 for LV2
    data: npt.NDArray[np.uint8]
    element: int
    span: int


Needs = list[npt.NDArray[np.uint8]]  #: for each memory of :func:`memories`, one bit per byte


def memories(units: Units) -> Iterator[OnChipMemory]:
    """Every on-chip memory of the SoC, always in the same order."""
    p = units.params
    yield OnChipMemory(Space.LV2, -1, units.lv2, 1, p.lv2_bytes)
    for number, engine in enumerate(units.engines):
        yield OnChipMemory(Space.LV1, number, engine.lv1, 1, p.lv1_bytes)
        yield OnChipMemory(Space.LV0_ACT, number, engine.act.reshape(-1), p.rows, p.lv0_act_bytes)
        yield OnChipMemory(Space.LV0_WGT, number, engine.wgt.reshape(-1), p.rows, p.lv0_wgt_bytes)
        acc = engine.acc.view(np.uint8).reshape(-1)
        yield OnChipMemory(Space.LV0_ACC, number, acc, 4 * p.out_channels, acc.size)


class Liveness:
    """Walks a program backwards. At first nothing is needed."""

    def __init__(self, params: SocParams, segments: Segments) -> None:
        self._shadow = Units(params, np.zeros(0, np.uint8))
        self._segments = segments
        self._nothing = np.zeros(params.lv1_bytes, np.uint8)

    def undo(self, executed: Iterable[Executed]) -> None:
        """Step back over instructions given in the order in which they ran."""
        for step in reversed(list(executed)):
            engine = self._shadow.engines[step.engine]
            if step.insn.op is Op.LD0:
                self._forget_lv0(step, engine)
            for access in step.accesses:
                if access.write and access.space in (Space.LV1, Space.LV2):
                    self._bytes(access, engine)[...] = 0
                elif access.write and step.insn.op is Op.MAC:
                    engine.acc[access.where.indices()] = -step.insn["accumulate"]
            for access in step.accesses:
                if not access.write:
                    self._need(access, step.insn, engine)

    def needs(self) -> Needs:
        """What is needed now."""
        return [np.packbits(memory.data != 0) for memory in memories(self._shadow)]

    def _bytes(self, access: MemoryAccess, engine: EngineMemories) -> npt.NDArray[np.uint8]:
        return access.where.view(self._shadow.lv2 if access.space == Space.LV2 else engine.lv1)

    def _forget_lv0(self, step: Executed, engine: EngineMemories) -> None:
        # Which bytes of which PE a load writes is best known to the unit itself: let it copy "not needed" there.
        needed, engine.lv1 = engine.lv1, self._nothing
        self._shadow.execute(Insn(Op.LD0, step.insn.fields | {"fill": 0}), self._segments, step.engine, step.pc)
        engine.lv1 = needed

    def _need(self, access: MemoryAccess, insn: Insn, engine: EngineMemories) -> None:
        params = self._shadow.params
        if access.space in (Space.LV1, Space.LV2):
            self._bytes(access, engine)[...] = 1
        elif access.space == Space.LV0_ACC:
            engine.acc[access.where.indices(), : insn["n0"] * params.vec_lanes] = -1
        elif access.space in (Space.LV0_ACT, Space.LV0_WGT):
            memory = engine.act if access.space == Space.LV0_ACT else engine.wgt
            memory.reshape(params.pes, -1, params.rows)[:, access.where.indices().reshape(-1)] = 1


def effective(
    insn: Insn, accesses: Sequence[MemoryAccess], engine: EngineMemories, params: SocParams
) -> tuple[MemoryAccess, ...]:
    """``accesses`` of an instruction without reads that cannot matter: activation words of MAC whose weights are all
    zero (``engine``: with the weights of that moment). Unused taps of depthwise kernels read whatever is there."""
    if insn.op is not Op.MAC:
        return tuple(accesses)
    depthwise = insn["mode"] == MacMode.DEPTHWISE
    loops, rows = (insn["n2"], insn["n1"], insn["n0"]), params.rows
    blocks, taps = math.prod(loops), min(params.lv0_banks, rows) if depthwise else 1
    weights = engine.wgt[:, insn["wgt"] * rows :][:, : blocks * rows * rows].reshape(-1, *loops, rows, rows)
    used = weights != insn["w_zp"]
    if insn["w_cols"]:
        used = used.swapaxes(-1, -2)
    used = used[..., :taps, :].any(axis=(0, -1)) if depthwise else used.any(axis=(0, -1, -2))[..., None]
    if used.all():
        return tuple(accesses)
    pixels, strides = (insn["p1"], insn["p0"]), (insn["p1_s"], insn["p0_s"])
    reads = []
    for i2, i1, i0, tap in np.argwhere(used).tolist():
        word = insn["act"] + i2 * insn["k2_s"] + i1 * insn["k1_s"] + i0 * insn["k0_s"] + tap
        reads.append(MemoryAccess(Space.LV0_ACT, Box(word, pixels, strides), False))
    return (*reads, *(access for access in accesses if access.space != Space.LV0_ACT))


def first_reader(program: Iterable[Executed], memory: OnChipMemory, byte: int) -> Executed | None:
    """The first instruction that reads byte ``byte`` of ``memory``."""
    element = byte % memory.span // memory.element
    for step in program:
        for access in step.accesses:
            own = memory.engine in (-1, step.engine)
            reads = not access.write or (step.insn.op is Op.MAC and step.insn["accumulate"])
            if own and reads and access.space == memory.name and (access.where.indices() == element).any():
                return step
    return None
