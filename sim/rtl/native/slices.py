"""Finds which bits of each cell are needed, and where wide cells are cut into words of at most 64 bits.

A register or a multiplexer of hundreds of bits is a vector of independent fields: cut where its producers and
consumers cut it, each field becomes a plain integer of its own.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from amaranth.hdl import _nir as nir

from sim.rtl.native.bits import CONSTANT, Word, placed, width_of
from sim.rtl.native.cells import TOP, Cells, bit

WORD = 64  #: bits of the widest integer
FIELD = 16  #: consumers of narrower parts of a wide cell do not cut it

_BITWISE = ("&", "|", "^", "~", "m")
_LOW_BITS = ("+", "-", "*", "<<")  #: the low n bits of the result need the low n bits of the (first) operands


class Operand(NamedTuple):
    """Describes one input of a cell. ``offset``: bit i of the word is used by bit ``offset + i`` of the output alone;
    None if any bit may depend on any. ``low``: the low n bits of the output need the low n bits of the word alone."""

    word: Word
    offset: int | None = None
    low: bool = False


def operands(cells: Cells, cell: nir.Cell) -> list[Operand]:
    """Return all inputs of ``cell``, without clocks."""
    word = cells.word
    match cell:
        case nir.Operator():
            words = [word(value) for value in cell.inputs]
            if cell.operator in _BITWISE:
                control = len(words) == 3
                return [Operand(one, None if control and i == 0 else 0) for i, one in enumerate(words)]
            if cell.operator in _LOW_BITS:
                return [Operand(one, low=cell.operator != "<<" or i == 0) for i, one in enumerate(words)]
            return [Operand(one) for one in words]
        case nir.AssignmentList():
            result = [Operand(word(cell.default), 0)]
            for one in cell.assignments:
                result += [Operand(bit(one.cond)), Operand(word(one.value), one.start)]
            return result
        case nir.FlipFlop():
            return [Operand(word(cell.data), 0)]
        case nir.Part():
            return [Operand(word(cell.value)), Operand(word(cell.offset))]
        case nir.Matches():
            return [Operand(word(cell.value))]
        case nir.PriorityMatch():
            return [Operand(bit(cell.en)), Operand(word(cell.inputs))]
        case nir.SyncReadPort():
            return [Operand(word(cell.addr)), Operand(bit(cell.en))]
        case nir.AsyncReadPort():
            return [Operand(word(cell.addr))]
        case nir.SyncWritePort():
            return [Operand(word(cell.addr)), Operand(word(cell.data)), Operand(word(cell.en))]
        case _:
            return []


@dataclass(frozen=True)
class Slices:
    """Holds what is needed of cells. ``need``: for each live cell, the bits from bit 0 on that something reads.
    ``cuts``: for each cell that is cut, the bits at which its words begin."""

    need: dict[int, int]
    cuts: dict[int, list[int]]

    def words(self, index: int) -> Iterator[tuple[int, int]]:
        """Yield (first bit, width) of every word of a cell."""
        starts = self.cuts.get(index, [0])
        for start, stop in zip(starts, [*starts[1:], self.need[index]], strict=True):
            yield start, stop - start


def slices(cells: Cells, roots: Iterable[Word], kept: Iterable[int]) -> Slices:
    """Find slices from the words ``roots`` and the memories ``kept``, whose contents are looked at from outside."""
    inputs = _Inputs(cells)
    need = _needed(cells, inputs, roots, kept)
    return Slices(need, _cut(cells, inputs, need))


class _Inputs:
    """Finds operands by cell, computed once."""

    def __init__(self, cells: Cells) -> None:
        self._cells = cells
        self._known: dict[int, list[Operand]] = {}

    def __getitem__(self, index: int) -> list[Operand]:
        if index not in self._known:
            self._known[index] = operands(self._cells, self._cells.cells[index])
        return self._known[index]


def _needed(cells: Cells, inputs: _Inputs, roots: Iterable[Word], kept: Iterable[int]) -> dict[int, int]:
    writers = defaultdict(list)
    for index, cell in enumerate(cells.cells):
        if isinstance(cell, nir.SyncWritePort):
            writers[cell.memory].append(index)
    need: dict[int, int] = {}
    work: list[tuple[int, int]] = []

    def want(word: Word, bits: int) -> None:
        for at, piece in placed(word):
            if at >= bits:
                break
            if piece.node not in (CONSTANT, TOP):
                work.append((piece.node, piece.low + (1 if piece.repeat else min(piece.width, bits - at))))

    def want_memory(memory: int) -> None:
        if memory not in need:
            need[memory] = 0
            work.extend((port, 1) for port in writers[memory])

    for root in roots:
        want(root, width_of(root))
    for memory in kept:
        want_memory(memory)
    while work:
        index, bits = work.pop()
        if need.get(index, -1) >= bits:
            continue
        need[index] = bits
        cell = cells.cells[index]
        if isinstance(cell, nir.SyncReadPort | nir.AsyncReadPort):
            want_memory(cell.memory)
        for operand in inputs[index]:
            used = width_of(operand.word)
            if operand.offset is not None:
                used = min(used, bits - operand.offset)
            elif operand.low:
                used = min(used, bits)
            want(operand.word, used)
    return need


def _cut(cells: Cells, inputs: _Inputs, need: dict[int, int]) -> dict[int, list[int]]:
    """Spread cuts from bit to bit along wires until nothing changes."""
    cuttable = {index for index in need if _cuttable(cells.cells[index], need[index])}
    wide = {index for index in cuttable if need[index] > WORD}
    cuts: dict[int, set[int]] = {index: set() for index in cuttable}
    readers: dict[int, list[tuple[int, int, int, int]]] = defaultdict(list)  # cell -> (reader, low, width, at)
    work: list[tuple[int, int]] = []

    def add(index: int, bit: int) -> None:
        if 0 < bit < need[index] and bit not in cuts[index]:
            cuts[index].add(bit)
            work.append((index, bit))

    for index in need:
        cell = cells.cells[index]
        if isinstance(cell, nir.AssignmentList):
            for one in cell.assignments:
                add(index, one.start)
                add(index, one.start + len(one.value))
        for operand in inputs[index]:
            for at, piece in placed(operand.word):
                here = operand.offset is not None and index in cuttable
                position = at + (operand.offset or 0)
                if here and index in wide and piece.width >= FIELD:
                    add(index, position)
                    add(index, position + piece.width)
                if piece.node not in cuttable or piece.repeat:
                    continue
                if here:
                    readers[piece.node].append((index, piece.low, piece.width, position))
                if piece.node in wide and piece.width >= FIELD:
                    add(piece.node, piece.low)
                    add(piece.node, piece.low + piece.width)

    def linked(a: int, b: int) -> bool:
        """Return whether cuts of one are cuts of the other."""
        kinds = {type(cells.cells[a]), type(cells.cells[b])}
        return (a in wide and b in wide) or kinds == {nir.AssignmentList, nir.FlipFlop}

    while work:
        index, bit = work.pop()
        for operand in inputs[index]:
            if operand.offset is None:
                continue
            for at, piece in placed(operand.word):
                inner = bit - at - operand.offset
                if (
                    0 < inner < piece.width
                    and piece.node in cuttable
                    and not piece.repeat
                    and linked(index, piece.node)
                ):
                    add(piece.node, piece.low + inner)
        for reader, low, width, at in readers[index]:
            if low < bit < low + width and linked(index, reader):
                add(reader, at + bit - low)
    return {index: _subdivided(sorted(cuts[index]), need[index]) for index in cuttable}


def _cuttable(cell: nir.Cell, width: int) -> bool:
    if isinstance(cell, nir.FlipFlop | nir.AssignmentList):
        return True
    bitwise = isinstance(cell, nir.Operator) and cell.operator in _BITWISE
    return width > WORD and (bitwise or isinstance(cell, nir.SyncReadPort | nir.AsyncReadPort | nir.Part))


def _subdivided(cuts: list[int], width: int) -> list[int]:
    """Return where words begin: at 0, at every cut, and every 64 bits from there."""
    result: list[int] = []
    for start, stop in zip([0, *cuts], [*cuts, width], strict=True):
        result.extend(range(start, stop, WORD))
    return result
