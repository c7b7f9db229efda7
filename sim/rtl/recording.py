"""Reads off the registers of the RTL, cycle by cycle, when instructions run."""

from collections import deque

import numpy as np
import numpy.typing as npt

from hw.contract.isa import Unit
from hw.contract.timing import UNIT_IN_FLIGHT
from sim.instruction_runs import InstructionRun
from sim.rtl.base import Until
from sim.rtl.compiled import CompiledBus
from sim.rtl.side_by_side import SideBySideBus


class RecordingBus(SideBySideBus):
    """Is a :class:`hw.contract.bus.Bus` over a compiled backend that goes cycle by cycle and tells when units accepted
    and finished each instruction of a body: the ground truth for the fast model.

    Members: ``runs``, of all instructions that have ended, in the order of their ends.
    """

    def __init__(self, bus: CompiledBus) -> None:
        super().__init__({"recorded": bus})
        self._bus = bus
        self._places = _places(bus)
        self.runs: list[InstructionRun] = []
        self._queues = [
            (engine, unit, _QueueWatch(self._places, engine, unit))
            for engine in range(bus.params.engines)
            for unit in Unit
        ]
        self._now = self._places["soc.now"]
        self._jobs = [self._places[f"soc.engine{e}.control.executor.released"] for e in range(bus.params.engines)]
        self._look()

    def _look(self) -> None:
        values = self._bus.registers()
        now = int(values[self._now])
        for engine, unit, queue in self._queues:
            for pc, taken, done in queue.look(values, now):
                self.runs.append(InstructionRun(engine, unit, int(values[self._jobs[engine]]), pc, taken, done))

    # -- hooks -----------------------------------------------------------------------------------------------
    def _start_access(self, write: bool, address: int, value: int) -> None:
        super()._start_access(write, address, value)
        self._look()

    def _run(self, limit: int, until: Until) -> tuple[int, bool]:
        for ran in range(1, limit + 1):
            _, met = super()._run(1, until)
            self._look()
            if met:
                return ran, True
        return limit, False


def _places(bus: CompiledBus) -> dict[str, int]:
    """Return where the first word of each register is."""
    places, at = {}, 0
    for bits, name in bus.register_names:
        places[name] = at
        at += -(-bits // 64)
    return places


class _QueueWatch:
    """Watches the queue of one unit: how many commands it has handed on, and the pulse that one is done."""

    def __init__(self, places: dict[str, int], engine: int, unit: Unit) -> None:
        name = unit.name.lower()
        queue = f"soc.engine{engine}.control.queue_{name}"
        self._taken = places[f"{queue}.flying.$signature__addr"]  # of the next entry of what is in flight
        self._in_flight = places[f"{queue}._in_flight"]
        self._was = 0
        self._flying: deque[tuple[int, int]] = deque()
        self._owed = 0
        self._count = 0
        self._before = 0

    def look(self, values: npt.NDArray[np.uint64], now: int) -> list[tuple[int, int, int]]:
        """Return for each instruction that has ended in the last cycle its number in its unit, its acceptance and its
        signal."""
        taken, in_flight = int(values[self._taken]), int(values[self._in_flight])
        accepted = (taken - self._was) % UNIT_IN_FLIGHT
        ended = self._before + accepted - in_flight
        self._was, self._before = taken, in_flight
        for _ in range(accepted):
            self._flying.append((self._count, now - 1))
            self._count += 1
        return [(*self._flying.popleft(), now - 1) for _ in range(ended)]
