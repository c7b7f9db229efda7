"""Instructions under construction, and the buffers they fill and read.

Kernels emit tasks in the order in which each unit shall execute them; the order *between* units is left to
:mod:`compiler.emission.program.schedule`.
"""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, cast

from compiler.emission.program.address import Address, JobAddresses, Symbol, offset_of
from compiler.emission.program.semaphores import Sem
from hw.contract.isa import UNIT_OF, Insn, Op, Unit
from hw.contract.params import SocParams
from hw.contract.slots import Added
from sim.cost import insn_cycles

_NO_SYMBOLS: Mapping[str, Symbol] = {}  #: of the tasks that have none


class ParameterUse(NamedTuple):
    """Says that a job adds ``parameter`` to ``field``, ``most`` at most."""

    field: str
    parameter: int
    most: int


@dataclass(eq=False, slots=True)
class Task:
    """Is one instruction: its fields without semaphores, the semaphores it waits for and signals, the buffer of a ring
    that it helps to fill, and those it reads.

    Fields to which jobs add parameters hold what results at most; ``more`` says which, and how much of it is added.
    ``numbers`` are the fields as numbers, in which symbolic addresses count from their anchors; ``symbols`` are those
    that are symbolic."""

    op: Op
    fields: Mapping[str, Address]
    more: tuple["ParameterUse", ...] = ()
    waits: set[Sem] = field(default_factory=set)
    signals: set[Sem] = field(default_factory=set)
    fills: "BufferFill | None" = None
    reads: "list[BufferFill]" = field(default_factory=list)
    unit: Unit = field(init=False)  #: that executes the instruction
    numbers: Mapping[str, int] = field(init=False)
    symbols: Mapping[str, Symbol] = field(init=False)
    _took: tuple[int, int] = (0, 0)  #: typical cycles, and for how many engines

    def __post_init__(self) -> None:
        self.unit = UNIT_OF[self.op]
        self._resolve()

    def _resolve(self) -> None:
        fields = self.fields
        if Symbol in map(type, fields.values()):
            self.numbers = {name: offset_of(value) for name, value in fields.items()}
            self.symbols = {name: value for name, value in fields.items() if isinstance(value, Symbol)}
        else:
            self.numbers, self.symbols = cast(Mapping[str, int], fields), _NO_SYMBOLS

    def cycles(self, params: SocParams, engines: int) -> int:
        """Return the typical cycles of the instruction while ``engines`` share DRAM, wherever it is moved."""
        if self._took[1] != engines:
            self._took = insn_cycles(self.op, self.fields, params, engines), engines
        return self._took[0]

    def move(self, fields: Mapping[str, Address]) -> None:
        """Replace ``fields``, which are addresses."""
        if fields:
            self.fields = {**self.fields, **fields}
            self._resolve()

    def insn(self, addresses: JobAddresses) -> Insn:
        """Return the instruction of a job that lies at ``addresses``."""
        insn = self.largest(addresses)
        if not self.more:
            return insn
        less = {one.field: insn[one.field] - one.most for one in self.more}
        return Insn(self.op, insn.fields | less, tuple(Added(one.field, one.parameter) for one in self.more))

    def largest(self, addresses: JobAddresses) -> Insn:
        """Return what the instruction is with the largest parameters."""
        if self.numbers is self.fields:  # no address is symbolic
            fields = dict(self.numbers)
        else:
            fields = {name: addresses.resolve(value) for name, value in self.fields.items()}
        if self.waits:
            fields["wait"] = _mask(self.waits)
        if self.signals:
            fields["signal"] = _mask(self.signals)
        return Insn(self.op, fields)


def _mask(semaphores: Iterable[Sem]) -> int:
    mask = 0
    for semaphore in semaphores:
        mask |= 1 << semaphore
    return mask


def release(tasks: Iterable[Task]) -> None:
    """Let ``tasks``, which nobody looks at any more, go: they and their buffers hold each other, and as a compilation
    collects no circles of objects, those of all jobs would stay until its end."""
    for task in tasks:
        task.fills = None
        task.reads.clear()


@dataclass(eq=False, slots=True)
class BufferFill:
    """What one buffer of a ring holds for a while: ``address`` of the buffer, the tasks that fill and read it, and when
    the latest of these comes among all that read the ring."""

    key: Hashable
    address: int
    number: int
    fillers: list[Task] = field(default_factory=list)
    readers: list[Task] = field(default_factory=list)
    last_read: int = 0
