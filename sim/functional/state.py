"""Holds the state of the functional model, what it reports while it runs, and how a program goes wrong."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from hw.contract.isa import Insn, Op
from hw.contract.job import Fault, FaultUnit
from hw.contract.params import SocParams
from hw.contract.spaces import Space
from sim.functional.strided import Box

Segments = Sequence[tuple[int, int]]  #: (base, limit) of each of the eight segments, bytes


class FunctionalFault(Exception):
    """Says that a program did what the hardware answers with a fault; ``addr`` is the offset in the segment or
    memory."""

    def __init__(self, code: Fault, pc: int, addr: int = 0, unit: int = FaultUnit.EXECUTOR, why: str = "") -> None:
        name = FaultUnit(unit).name
        super().__init__(f"{code.name} at PC {pc} in {name}, address {addr:#x}{': ' + why if why else ''}")
        self.code, self.pc, self.addr, self.unit = code, pc, addr, int(unit)


@dataclass(frozen=True)
class Halt:
    """Says where a body was stopped: cancellation point ``point``, PC of its CANCEL, and the count of every
    semaphore."""

    point: int
    pc: int
    semaphores: tuple[int, ...]


@dataclass(frozen=True)
class MemoryAccess:
    """Names the bytes (``lv1``, ``lv2``, ``dram``), words (``act``, ``wgt``) or rows (``acc``) that an instruction
    touched."""

    space: Space
    where: Box
    write: bool


Work = Callable[[], None]  #: what an instruction does to the memories


def nothing() -> None:
    """Do nothing: the work of an instruction that was only checked."""


class Prepared(NamedTuple):
    """Holds an instruction that has passed its checks. ``work`` may be called any number of times, as what was checked
    does not depend on what the memories hold; ``accesses`` is what it touches, ``read`` how many bytes a copy reads."""

    op: Op
    work: Work
    accesses: list[MemoryAccess]
    read: int


class AccessObserver(Protocol):
    """An observer is told of every instruction after it has executed, with what it read and wrote."""

    def instruction(self, pc: int, engine: int, insn: Insn, accesses: list[MemoryAccess]) -> None:
        """Hear of one instruction of the body of a job."""

    def end(self, engine: int) -> None:
        """Hear that the body has drained."""


@dataclass
class EngineMemories:
    """Holds the on-chip state of one engine. ``act``/``wgt``: (PEs, bytes); ``acc``: (rows, PEs * cols) int32."""

    lv1: npt.NDArray[np.uint8]
    act: npt.NDArray[np.uint8]
    wgt: npt.NDArray[np.uint8]
    acc: npt.NDArray[np.int32]
    semaphores: list[int]

    @classmethod
    def blank(cls, params: SocParams) -> "EngineMemories":
        """Return memories that are all zero."""
        return cls(
            np.zeros(params.lv1_bytes, np.uint8),
            np.zeros((params.pes, params.lv0_act_bytes), np.uint8),
            np.zeros((params.pes, params.lv0_wgt_bytes), np.uint8),
            np.zeros((params.lv0_acc_rows, params.out_channels), np.int32),
            [0] * params.semaphores,
        )
