"""Writes supervisor programs: instructions whose order between units follows from the bytes they touch."""

from dataclasses import dataclass, field
from itertools import count

from hw.contract.isa import UNIT_OF, Insn, Op, Unit
from hw.contract.params import SocParams
from hw.contract.spaces import Space
from sw.driver.memory.footprint import MemoryId

MemoryRange = tuple[MemoryId, int, int]  #: memory, first byte, end

MAX_INSTRUCTIONS = 120  #: of one program, so that no semaphore can count too far however far a unit runs ahead


@dataclass
class _Step:
    op: Op
    fields: dict[str, int]
    reads: list[MemoryRange]
    writes: list[MemoryRange]
    wait: int = 0
    signal: int = 0


@dataclass
class Program:
    """Holds instructions in program order. :meth:`encode` adds the semaphores: wherever an instruction touches bytes
    that one of another unit touched before, and one of the two writes them, it waits for that one's signal.

    One semaphore per ordered pair of units. Units complete in order, so the latest conflict stands for all before it.
    """

    params: SocParams
    steps: list[_Step] = field(default_factory=list)

    def add(self, op: Op, fields: dict[str, int], reads: list[MemoryRange], writes: list[MemoryRange]) -> None:
        """Append an instruction (``fields`` without wait and signal) with the bytes it touches."""
        self.steps.append(_Step(op, fields, reads, writes))

    @property
    def moved(self) -> int:
        """Return how many bytes of DRAM the instructions read or write."""
        touched = [r for step in self.steps for r in (*step.reads, *step.writes)]
        return sum(end - start for memory, start, end in touched if memory[0] == Space.DRAM)

    def split(self) -> list["Program"]:
        """Return the same instructions in programs that may run one behind the other."""
        starts = range(0, len(self.steps), MAX_INSTRUCTIONS)
        return [Program(self.params, self.steps[i : i + MAX_INSTRUCTIONS]) for i in starts]

    def encode(self) -> bytes:
        """Return the encoded program with END; call this once."""
        self._synchronise()
        insns = [Insn(s.op, s.fields | {"wait": s.wait, "signal": s.signal}) for s in self.steps]
        return b"".join(insn.encode() for insn in (*insns, Insn(Op.END)))

    def _synchronise(self) -> None:
        numbers, free = dict[tuple[Unit, Unit], int](), count()
        ordered: dict[tuple[Unit, Unit], int] = {}  # latest instruction of the first that the second has waited for
        for i, step in enumerate(self.steps):
            unit = UNIT_OF[step.op]
            for other, j in self._conflicts(i).items():
                pair = (other, unit)
                if j > ordered.get(pair, -1):
                    if pair not in numbers:
                        numbers[pair] = next(free)
                    ordered[pair] = j
                    self.steps[j].signal |= 1 << numbers[pair]
                    step.wait |= 1 << numbers[pair]

    def _conflicts(self, i: int) -> dict[Unit, int]:
        """Return the latest earlier instruction of each other unit that step ``i`` must follow."""
        step, found = self.steps[i], dict[Unit, int]()
        for j in range(i - 1, -1, -1):
            earlier = self.steps[j]
            unit = UNIT_OF[earlier.op]
            if unit is UNIT_OF[step.op] or unit in found:
                continue
            if _touch(step.writes, earlier.reads + earlier.writes) or _touch(step.reads, earlier.writes):
                found[unit] = j
        return found


def _touch(a: list[MemoryRange], b: list[MemoryRange]) -> bool:
    return any(m == n and s < y and x < e for m, s, e in a for n, x, y in b)
