"""Data races that program order hides: a happens-before check over vector clocks, one per unit.

The functional model runs instructions one after the other; the hardware overlaps units. Two accesses of different
units to the same byte, at least one of them a write, must be ordered by semaphores. An instruction starts after the
previous one of its unit has *started* and after the signals it waits for; a signal, and everything its unit did
before it, is complete. Within a unit order is kept, except that a unit may not read what an earlier instruction of
its own wrote to LV1 without waiting for it: its pipeline may still hold it.

The order is exact for semaphores with one signalling and one waiting unit, which the check enforces.
"""

import numpy as np
import numpy.typing as npt

from hw.contract.isa import UNIT_OF, Insn, Op, Unit
from hw.contract.params import SocParams
from hw.contract.spaces import Space
from sim.functional.state import MemoryAccess

_UNITS = len(Unit)


class RaceError(Exception):
    """Two instructions of different units touch the same bytes in no fixed order; the message names both PCs."""


class RaceChecker:
    """An observer of :class:`sim.functional.machine.Machine`; raises :class:`RaceError` at the second access."""

    def __init__(self, params: SocParams) -> None:
        self._sizes = {
            Space.LV1: params.lv1_bytes, Space.LV2: params.lv2_bytes, Space.DRAM: params.dram_bytes,
            Space.LV0_ACT: params.lv0_act_bytes // params.rows, Space.LV0_WGT: params.lv0_wgt_bytes // params.rows,
            Space.LV0_ACC: params.lv0_acc_rows,
        }  # fmt: skip
        self._sequence = 0
        self._pcs: list[int] = [-1]
        self._last: dict[tuple[int, str, Unit, bool], npt.NDArray[np.int32]] = {}
        self._reset(0)

    def _reset(self, engine: int) -> None:
        # Everything before this point has drained.
        self._floor = self._sequence
        self._clock = np.full((_UNITS, _UNITS), self._sequence, np.int64)
        self._signals: dict[int, list[npt.NDArray[np.int64]]] = {}
        self._ends: dict[int, set[tuple[str, Unit]]] = {}

    def instruction(self, pc: int, engine: int, insn: Insn, accesses: list[MemoryAccess]) -> None:
        """Check one instruction and remember what it touched."""
        unit = UNIT_OF[insn.op]
        self._sequence += 1
        self._pcs.append(pc)
        clock = self._clock[unit]
        for sem in _bits(insn["wait"]):
            self._one_end(pc, sem, "wait", unit)
            clock = np.maximum(clock, self._signals[sem].pop(0))
        for access in accesses:
            self._check(pc, engine, unit, insn.op, access, clock)
        for access in accesses:
            self._times(engine, access.space, unit, access.write, access)[...] = self._sequence
        # Later instructions of the unit start after this one has started, not after it has ended.
        self._clock[unit] = clock
        done = clock.copy()
        done[unit] = self._sequence
        for sem in _bits(insn["signal"]):
            self._one_end(pc, sem, "signal", unit)
            self._signals.setdefault(sem, []).append(done)

    def end(self, engine: int) -> None:
        """The body has drained: what follows is ordered behind it."""
        self._reset(engine)

    def _one_end(self, pc: int, sem: int, end: str, unit: Unit) -> None:
        ends = self._ends.setdefault(sem, set())
        ends.add((end, unit))
        if len({u for e, u in ends if e == end}) > 1:
            raise RaceError(f"PC {pc}: semaphore {sem} has several units at its {end} end")

    def _times(self, engine: int, space: Space, unit: Unit, write: bool, access: MemoryAccess) -> npt.NDArray[np.int32]:
        key = (_owner(engine, space), space, unit, write)
        if key not in self._last:
            self._last[key] = np.zeros(self._sizes[space], np.int32)
        return access.where.view(self._last[key])

    def _check(
        self, pc: int, engine: int, unit: Unit, op: Op, access: MemoryAccess, clock: npt.NDArray[np.int64]
    ) -> None:
        for other in Unit:
            for wrote in (True, False):
                if not (wrote or access.write):
                    continue
                if other is unit and not (wrote and not access.write and access.space == Space.LV1):
                    continue
                if (_owner(engine, access.space), access.space, other, wrote) not in self._last:
                    continue
                latest = int(self._times(engine, access.space, other, wrote, access).max(initial=0))
                if latest > clock[other] and latest > self._floor:
                    verb = "writes" if access.write else "reads"
                    raise RaceError(
                        f"{op.name} at PC {pc} {verb} {access.space} {access.where.bounds()} that {other.name} at PC "
                        f"{self._pcs[latest]} {'wrote' if wrote else 'read'}, without a semaphore between them"
                    )


def _bits(mask: int) -> list[int]:
    return [bit for bit in range(mask.bit_length()) if mask >> bit & 1]


def _owner(engine: int, space: Space) -> int:
    """The engine whose memory ``space`` is, -1 if all share it."""
    return -1 if space in (Space.LV2, Space.DRAM) else engine
