"""Holds programs by PC: what their instructions ask of their units, decoded in pieces as they come to be executed.

Code segments in DRAM are taken as one program for each base, whatever limits jobs put to it.
"""

from collections import OrderedDict
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

from hw.contract.isa import INSN_BYTES, Insn, Op
from hw.contract.params import SocParams
from sim.cost.exact.copies import BusCopy
from sim.cost.exact.decoded import CANCEL, END, ILLEGAL, Column, DecodedCode
from sim.cost.exact.pipelines import MacBlocks
from sim.cost.exact.resolved import resolved

PIECE = 4096  #: instructions that are decoded together
_KEPT = 64  #: pieces that stay for the next program
_CHUNK, _CHUNKS = 1024, 4  #: instructions whose fields are laid out together, and how many such chunks are kept
_RESOLVED = 64  #: programs with parameters that are kept
_NEVER = 1 << 60
_Key = tuple[int, tuple[int, ...]]  #: where a program begins, and parameters
_known: OrderedDict[tuple[SocParams, bytes], DecodedCode] = OrderedDict()


class ProgramTable:
    """Holds the instructions at the beginning of ``memory``, by PC.

    Columns are those of :class:`~sim.cost.exact.decoded.DecodedCode`, and hold what was asked for by :meth:`decode`;
    what was not is :data:`ILLEGAL`. Pieces of the same content are decoded once, in whichever program they lie.
    ``forgotten``: how often some of them were forgotten. ``parameters``: those of the jobs that run it, whose sums
    stand in the instructions; ``resolving``: cycles that took, by PC, if any.
    """

    def __init__(self, memory: npt.NDArray[np.uint8], params: SocParams, parameters: Sequence[int] = ()) -> None:
        self.params, self.parameters = params, parameters
        self._memory = memory
        self.resolving: dict[int, int] = {}
        self._count = len(memory) // INSN_BYTES
        self.forgotten = 0
        self._pieces: dict[int, DecodedCode] = {}
        self._insns: dict[int, dict[int, Insn]] = {}  # chunks that were laid out last
        self._cycles: dict[int, int] = {}
        self.units: list[int] = []
        self.work: list[Any] = []
        self.waits: list[tuple[int, ...]] = []
        self.signals: list[tuple[int, ...]] = []
        self.at: list[int] = []
        self.segment: list[int] = []
        self.into: list[int] = []
        self.into_segment: list[int] = []
        self.near: list[int] = []
        self.points: list[int] = []
        self.amount: list[int] = []
        self.extent: list[int] = []

    def __len__(self) -> int:
        return self._count

    def decode(self, first: int, end: int) -> int:
        """Have the instructions from ``first`` to before ``end``; return up to which PC they are there."""
        end = min(end, self._count)
        for number in range(first // PIECE, -(-end // PIECE)):
            if number not in self._pieces:
                self._add(number)
        return min(-(-end // PIECE) * PIECE, self._count)

    def forget(self, pc: int) -> None:
        """Forget what was decoded from ``pc`` on: the memory has changed there, and nobody executes what it was."""
        self._pieces = {number: piece for number, piece in self._pieces.items() if (number + 1) * PIECE <= pc}
        self.resolving = {place: taken for place, taken in self.resolving.items() if place // PIECE in self._pieces}
        self._insns.clear()
        self._cycles.clear()
        self.forgotten += 1

    def _add(self, number: int) -> None:
        first = number * PIECE
        code = self._memory[first * INSN_BYTES :][: PIECE * INSN_BYTES].tobytes()
        if self.parameters:
            code, cycles = resolved(code, self.parameters)
            self.resolving |= {first + place: taken for place, taken in cycles.items()}
        piece = self._pieces[number] = _decoded(code, self.params)
        end = first + len(piece)
        for name in DecodedCode.COLUMNS:
            column, found = getattr(self, name), getattr(piece, name)
            blank = ILLEGAL if name == "units" else None  # nobody looks at what was not asked for
            column.extend([blank] * (end - len(column)))
            column[first:end] = found

    def measured(self, pc: int) -> Any:
        """Return the ``work`` of the instruction at ``pc``, which a unit executes, however long it is."""
        work = self.work[pc]
        return self._pieces[pc // PIECE].measure(pc % PIECE) if work is None else work

    def cycles(self, pc: int) -> int:
        """Return the fewest cycles that the instruction at ``pc`` takes its unit."""
        found = self._cycles.get(pc)
        if found is None:
            found = self._cycles[pc] = _least(self.measured(pc))
        return found

    def insn(self, pc: int) -> Insn:
        """Return the instruction at ``pc``, which is legal, with all its fields."""
        chunk, place = pc // _CHUNK, pc % _CHUNK
        if chunk not in self._insns:
            if len(self._insns) == _CHUNKS:
                del self._insns[next(iter(self._insns))]
            number, part = divmod(chunk, PIECE // _CHUNK)
            self.decode(pc, pc + 1)
            self._insns[chunk] = self._pieces[number].insns(part * _CHUNK, (part + 1) * _CHUNK)
        return self._insns[chunk][place]

    def column(self, op: Op, name: str, rows: npt.NDArray[np.intp]) -> Column:
        """Return field ``name`` of the instructions at ``rows``, which were decoded and have the format of ``op``."""
        found = np.empty(len(rows), np.int64)
        for number in np.unique(rows // PIECE).tolist():
            there = rows // PIECE == number
            found[there] = self._pieces[number].column(op, name, rows[there] % PIECE)
        return found


def _least(work: Any) -> int:
    if isinstance(work, MacBlocks):
        return (work.blocks - 1) * work.period + work.last
    steps = work.steps.steps if isinstance(work, BusCopy) else work.steps
    assert isinstance(steps, int)
    return steps


def forget_decoded() -> None:
    """Forget all decoded code, so that what is asked for from now on is decoded again."""
    _known.clear()


def _decoded(code: bytes, params: SocParams) -> DecodedCode:
    key = params, blake2b(code, digest_size=16).digest()
    if key in _known:
        _known.move_to_end(key)
        return _known[key]
    piece = _known[key] = DecodedCode(code, params)
    if len(_known) > _KEPT:
        _known.popitem(last=False)
    return piece


class Programs:
    """Holds the programs of one DRAM."""

    def __init__(self, params: SocParams, dram: npt.NDArray[np.uint8]) -> None:
        self._params, self._dram = params.with_nominal_dram(), dram
        self._here: dict[_Key, _Program] = {}

    def at(self, base: int, limit: int, parameters: tuple[int, ...] = ()) -> ProgramTable:
        """Return the program in the segment of ``limit`` bytes at ``base``, as jobs with ``parameters`` run it. Its
        table is that of all segments at ``base``, so who executes it looks at the limit; it holds what was decoded by
        :meth:`ProgramTable.decode`."""
        key = base, parameters
        program = self._here.get(key)
        if program is None:
            self._make_room()
            program = self._here[key] = _Program(self.table(self._dram[base:], parameters))
        program.reach(limit)
        return program.table

    def table(self, memory: npt.NDArray[np.uint8], parameters: tuple[int, ...]) -> ProgramTable:
        """Return a new table of the program at the beginning of ``memory``."""
        return ProgramTable(memory, self._params, parameters)

    def _make_room(self) -> None:
        """Forget the oldest program with parameters, if there are many."""
        resolved_ones = [key for key in self._here if key[1]]
        if len(resolved_ones) >= _RESOLVED:
            del self._here[resolved_ones[0]]

    def changed(self, address: int, size: int) -> None:
        """Bytes of the DRAM were written."""
        for key, program in list(self._here.items()):
            base = key[0]
            if base < address + size and address < base + program.limit:
                del self._here[key]  # a job that runs it keeps what was decoded
            elif address >= base:
                program.behind = min(program.behind, address - base)


class _Program:
    """Holds the code at a base. ``limit`` is the largest of its segments. What lies behind it may have been decoded
    with it; ``behind`` is the first byte there that has changed since."""

    def __init__(self, table: ProgramTable) -> None:
        self.table, self.limit, self.behind = table, 0, _NEVER

    def reach(self, limit: int) -> None:
        """Take note of a segment of ``limit`` bytes."""
        if limit > self.limit:
            self.limit = limit
            if limit > self.behind:
                self.table.forget(self.behind // INSN_BYTES)
                self.behind = _NEVER


__all__ = ["CANCEL", "END", "ILLEGAL", "PIECE", "ProgramTable", "Programs", "forget_decoded"]
