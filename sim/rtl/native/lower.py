"""Cells of the netlist become operations on integers of at most 64 bits."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from amaranth.hdl import _nir as nir

from sim.rtl.native.bits import CONSTANT, Piece, Word, constant, constant_of, cut, joined, sliced, width_of
from sim.rtl.native.cells import TOP, Cells, NetlistError, word
from sim.rtl.native.design import Design, Flop, Memory, Pairs, ReadPort, Register, WritePort
from sim.rtl.native.nodes import ONE, ZERO, Builder
from sim.rtl.native.slices import WORD, Slices, slices

_BINARY = {
    "&": "and", "|": "or", "^": "xor", "+": "add", "-": "sub", "*": "mul", "<<": "shl", "u>>": "shr", "s>>": "sar",
    "u//": "udiv", "u%": "umod",
}  # fmt: skip
_COMPARE = {
    "==": ("eq", False, False), "!=": ("ne", False, False),
    "u<": ("ult", False, False), "u<=": ("ule", False, False), "u>": ("ult", True, False), "u>=": ("ule", True, False),
    "s<": ("slt", False, False), "s<=": ("sle", False, False), "s>": ("slt", True, False), "s>=": ("sle", True, False),
}  # fmt: skip
_REDUCE = {"b": "any", "r|": "any", "r&": "all", "r^": "odd"}


def lower(cells: Cells, kept: list[int]) -> Design:
    """The design of ``cells``; the memories ``kept`` (cell numbers) are looked at from outside."""
    return _Lowering(cells, kept).design()


@contextmanager
def _deep_recursion() -> Iterator[None]:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(1_000_000)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


class _Lowering:
    """Words are made when they are asked for, so that each comes after what it depends on."""

    def __init__(self, cells: Cells, kept: list[int]) -> None:
        self._cells = cells
        self._slices: Slices = slices(cells, cells.outputs.values(), kept)
        self._builder = Builder()
        self._done: dict[tuple[int, int], Word] = {}
        self._busy: set[tuple[int, int]] = set()
        self._starts: dict[int, list[tuple[int, int]]] = {}
        self._inputs: dict[int, tuple[str, Word]] = {}  # by bit of the top
        self._reads: list[ReadPort] = []

    def design(self) -> Design:
        cells, b = self._cells, self._builder
        inputs = {}
        for name, port in cells.inputs.items():
            made = b.source("input", port[0].width, name)
            self._inputs[port[0].low] = (name, made)
            inputs[name] = made[0].node
        for index in self._slices.need:
            cell = cells.cells[index]
            if isinstance(cell, nir.FlipFlop | nir.SyncReadPort):
                self._source(index, cell)
        with _deep_recursion():
            registers = [one for index in self._live(nir.FlipFlop) for one in self._registers(index)]
            for index in self._live(nir.SyncReadPort):
                self._read_port(index)
            writes = [self._write_port(cells.cells[index]) for index in self._live(nir.SyncWritePort)]
            outputs = {name: self._resolve(value) for name, value in cells.outputs.items()}
        memories = {index: self._memory(cells.cells[index]) for index in self._live(nir.Memory)}
        return Design(
            b.nodes, cells.modules, inputs, outputs, registers, self._reads, writes, memories, list(self._flops())
        )

    def _live(self, kind: type) -> list[int]:
        return sorted(index for index in self._slices.need if isinstance(self._cells.cells[index], kind))

    # -- words of cells --------------------------------------------------------------------------------------
    def _words(self, index: int) -> list[tuple[int, int]]:
        if index not in self._starts:
            self._starts[index] = list(self._slices.words(index))
        return self._starts[index]

    def _resolve(self, value: Word) -> Word:
        """A word of cells as a word of nodes."""
        result: list[Piece] = []
        for piece in value:
            if piece.node == CONSTANT:
                result.append(piece)
            elif piece.repeat:
                bit = self._bits(piece.node, piece.low, 1)
                result.extend(self._repeated(bit, piece.width))
            else:
                result.extend(self._bits(piece.node, piece.low, piece.width))
        return joined(result)

    @staticmethod
    def _repeated(bit: Word, count: int) -> Word:
        known = constant_of(bit)
        if known is not None:
            return constant(-known, count)
        return (Piece(bit[0].node, bit[0].low, count, count > 1),)

    def _bits(self, index: int, low: int, width: int) -> Word:
        if index == TOP:
            return self._input_bits(low, width)
        result: list[Piece] = []
        for start, size in self._words(index):
            first, last = max(low, start), min(low + width, start + size)
            if first < last:
                result.extend(sliced(self._word(index, start, size), first - start, last - first))
        if low + width > self._slices.need[index]:
            raise AssertionError("bits were taken for unneeded")
        return joined(result)

    def _input_bits(self, low: int, width: int) -> Word:
        for start, (_, made) in self._inputs.items():
            if start <= low and low + width <= start + made[0].width:
                return (cut(made[0], low - start, width),)
        raise NetlistError("a combinational use of the clock")

    def _word(self, index: int, start: int, width: int) -> Word:
        key = (index, start)
        if key not in self._done:
            if key in self._busy:
                cell = self._cells.cells[index]
                raise NetlistError(f"{self._cells.where(cell)}: combinational loop through a {type(cell).__name__} cell")
            self._busy.add(key)
            made = self._make(index, start, width)
            self._busy.discard(key)
            self._done[key] = made
        return self._done[key]

    def _make(self, index: int, start: int, width: int) -> Word:
        cell = self._cells.cells[index]
        match cell:
            case nir.Operator():
                return self._operator(cell, start, width)
            case nir.AssignmentList():
                args = self._pairs(cell, start, width)
                self._builder.module = cell.module_idx
                return self._builder.chain(width, *args)
            case nir.PriorityMatch():
                return self._priority(cell)
            case nir.Matches():
                return self._matches(cell)
            case nir.Part():
                return self._part(cell, start, width)
            case nir.AsyncReadPort():
                address = self._resolve(word(cell.addr))
                self._builder.module = cell.module_idx
                return self._builder.op("aread", width, address, info=(cell.memory, start))
        raise NetlistError(f"{self._cells.where(cell)}: cells of type {type(cell).__name__} cannot be simulated")

    def _operator(self, cell: nir.Operator, start: int, width: int) -> Word:
        op, words = cell.operator, [word(value) for value in cell.inputs]
        b = self._builder
        if op in ("&", "|", "^", "~"):
            args = [self._resolve(sliced(one, start, width)) for one in words]
            b.module = cell.module_idx
            return b.op("not" if op == "~" else _BINARY[op], width, *args)
        if op == "m":
            args = [self._resolve(words[0]), *(self._resolve(sliced(one, start, width)) for one in words[1:])]
            b.module = cell.module_idx
            return b.op("mux", width, *args)
        if op in _REDUCE:
            arg = self._resolve(words[0])
            b.module = cell.module_idx
            return b.op(_REDUCE[op], 1, arg)
        if op in _COMPARE:
            name, swap, _ = _COMPARE[op]
            args = [self._resolve(one) for one in (reversed(words) if swap else words)]
            self._check_width(cell, *args, limit=None if name in ("eq", "ne") else WORD)
            b.module = cell.module_idx
            return b.op(name, 1, *args)
        if op in ("+", "-", "*") :
            args = [self._resolve(sliced(one, 0, width)) for one in words]
            self._check_width(cell, *args)
            b.module = cell.module_idx
            return b.op("neg" if len(args) == 1 else _BINARY[op], width, *args)
        if op in ("<<", "u>>", "s>>", "u//", "u%"):
            first = sliced(words[0], 0, width) if op == "<<" else words[0]
            args = [self._resolve(first), self._resolve(words[1])]
            b.module = cell.module_idx
            if op == "u>>" and width_of(args[0]) > WORD:
                return b.op("wide_shr" if width > WORD else "part", width, *args)
            self._check_width(cell, *args)
            return b.op(_BINARY[op], width, *args)
        raise NetlistError(f"{self._cells.where(cell)}: the operator {op!r} cannot be simulated")

    def _check_width(self, cell: nir.Cell, *args: Word, limit: int | None = WORD) -> None:
        widest = max(map(width_of, args))
        if limit is not None and widest > limit:
            what = f"{type(cell).__name__} {getattr(cell, 'operator', '')}".strip()
            raise NetlistError(f"{self._cells.where(cell)}: {what} of {widest} bits; the limit is {limit}")

    # -- conditions ------------------------------------------------------------------------------------------
    def _net(self, net: nir.Net) -> Word:
        return self._resolve(word(nir.Value((net,))))

    def _matches(self, cell: nir.Matches) -> Word:
        value = self._resolve(word(cell.value))
        b = self._builder
        b.module = cell.module_idx
        result = ZERO
        for pattern in cell.patterns:
            checked = joined(piece for i, bit in enumerate(reversed(pattern)) if bit != "-" for piece in sliced(value, i, 1))
            expected = int("".join(bit for bit in pattern if bit != "-") or "0", 2)
            same = b.op("eq", 1, checked, constant(expected, width_of(checked))) if checked else ONE
            result = b.either(result, same)
        return result

    def _priority(self, cell: nir.PriorityMatch) -> Word:
        """All bits of a priority match; each excludes those before it that do not exclude themselves."""
        return joined(piece for i in range(len(cell.inputs)) for piece in self._selected(cell, i, ()))

    def _selected(self, cell: nir.PriorityMatch, position: int, excluded: tuple[int, ...]) -> Word:
        """Bit ``position``; that the inputs ``excluded`` are not set is known."""
        b = self._builder
        result = self._net(cell.inputs[position])
        for earlier in range(position):
            if earlier in excluded or self._disjoint(cell.inputs[earlier], cell.inputs[position]):
                continue
            other = self._net(cell.inputs[earlier])
            b.module = cell.module_idx
            result = b.both(result, b.invert(other))
        enable = self._net(cell.en)
        b.module = cell.module_idx
        return b.both(enable, result)

    def _disjoint(self, first: nir.Net, second: nir.Net) -> bool:
        """Whether two matches of one value can never both be set."""
        if not (first.is_cell and second.is_cell):
            return False
        a, b = self._cells.cells[first.cell], self._cells.cells[second.cell]
        if not (isinstance(a, nir.Matches) and isinstance(b, nir.Matches) and a.value == b.value):
            return False
        return not any(
            all(x == y or "-" in (x, y) for x, y in zip(one, other, strict=True))
            for one in a.patterns
            for other in b.patterns
        )

    def _pairs(self, cell: nir.AssignmentList, start: int, width: int) -> tuple[list[tuple[Word, Word]], Word]:
        """The assignments to a word, the last first, as (condition, value), and the default.

        Branches of one ``If`` or ``Switch`` exclude each other: they are tried in their own order, and then a branch
        need not ask again whether an earlier one was taken.
        """
        chosen = [
            one for one in reversed(cell.assignments) if one.start <= start and start + width <= one.start + len(one.value)
        ]
        result: list[tuple[Word, Word]] = []
        at = 0
        while at < len(chosen):
            source = self._match_of(chosen[at].cond)
            end = at + 1
            while end < len(chosen) and source is not None and self._match_of(chosen[end].cond) is source:
                end += 1
            if source is None or end == at + 1:
                result.append((self._net(chosen[at].cond), self._value(chosen[at], start, width)))
            else:
                taken: list[int] = []
                for one in sorted(chosen[at:end], key=lambda one: one.cond.bit):
                    if one.cond.bit not in taken:  # of two assignments in one branch, the last: it comes first here
                        result.append((self._selected(source, one.cond.bit, tuple(taken)), self._value(one, start, width)))
                        taken.append(one.cond.bit)
            at = end
        return result, self._resolve(sliced(word(cell.default), start, width))

    def _match_of(self, net: nir.Net) -> nir.PriorityMatch | None:
        cell = self._cells.cells[net.cell] if net.is_cell else None
        return cell if isinstance(cell, nir.PriorityMatch) else None

    def _value(self, one: nir.Assignment, start: int, width: int) -> Word:
        return self._resolve(sliced(word(one.value), start - one.start, width))

    def _part(self, cell: nir.Part, start: int, width: int) -> Word:
        value, offset = self._resolve(word(cell.value)), self._resolve(word(cell.offset))
        b = self._builder
        b.module = cell.module_idx
        count = -(-width_of(value) // cell.stride)
        padded = value + constant(0, cell.width + cell.stride)
        if cell.value_signed:
            raise NetlistError(f"{self._cells.where(cell)}: parts of signed values cannot be simulated")
        if cell.stride > 1 or width_of(value) <= 2:
            choices = [sliced(padded, i * cell.stride + start, width) for i in range(min(count, 1 << width_of(offset)))]
            return b.op("pick", width, offset, *choices)
        if start:
            raise NetlistError(f"{self._cells.where(cell)}: a part of more than {WORD} bits at any bit")
        return b.op("part", width, value, offset)

    # -- state -----------------------------------------------------------------------------------------------
    def _source(self, index: int, cell: nir.Cell) -> None:
        """Registers exist before anything is computed."""
        self._builder.module = cell.module_idx
        op = "reg" if isinstance(cell, nir.FlipFlop) else "rdata"
        for start, width in self._words(index):
            self._done[index, start] = self._builder.source(op, width, (self._cells.names.get(index), index, start))

    def _clocked(self, cell: nir.FlipFlop | nir.SyncReadPort | nir.SyncWritePort) -> None:
        if int(cell.clk) != self._cells.clock or cell.clk_edge != "pos":
            raise NetlistError(f"{self._cells.where(cell)}: only the rising edge of one clock can be simulated")

    def _registers(self, index: int) -> Iterator[Register]:
        cell = self._cells.cells[index]
        self._clocked(cell)
        if int(cell.arst) != 0:
            raise NetlistError(f"{self._cells.where(cell)}: asynchronous resets cannot be simulated")
        data = word(cell.data)
        for start, width in self._words(index):
            own = self._done[index, start]
            pairs, default = self._next(sliced(data, start, width), width)
            pairs, default = self._builder.pruned(pairs, default)
            initial = cell.init >> start & ((1 << width) - 1)
            kept = None if default == own else default
            yield Register(own[0].node, initial, tuple(pairs), kept, cell.module_idx)

    def _next(self, data: Word, width: int) -> tuple[list[tuple[Word, Word]], Word]:
        """The input of a register as a choice, where an assignment list drives it."""
        if len(data) == 1 and data[0].node > TOP and not data[0].repeat:
            cell = self._cells.cells[data[0].node]
            if isinstance(cell, nir.AssignmentList) and (data[0].low, width) in self._words(data[0].node):
                return self._pairs(cell, data[0].low, width)
        return [], self._resolve(data)

    def _read_port(self, index: int) -> None:
        cell = self._cells.cells[index]
        self._clocked(cell)
        if cell.transparent_for:
            raise NetlistError(f"{self._cells.where(cell)}: transparent read ports cannot be simulated")
        words = tuple((self._done[index, start][0].node, start, width) for start, width in self._words(index))
        address, enable = self._resolve(word(cell.addr)), self._net(cell.en)
        self._reads.append(ReadPort(cell.memory, address, enable, words, cell.module_idx))

    def _write_port(self, cell: nir.SyncWritePort) -> WritePort:
        self._clocked(cell)
        enable = self._resolve(word(cell.en))
        parts: list[tuple[int, int, Word]] = []
        for at in range(width_of(enable)):
            bit = sliced(enable, at, 1)
            if parts and parts[-1][2] == bit:
                parts[-1] = (parts[-1][0], parts[-1][1] + 1, bit)
            else:
                parts.append((at, 1, bit))
        enables = tuple(part for part in parts if constant_of(part[2]) != 0)
        address, data = self._resolve(word(cell.addr)), self._resolve(word(cell.data))
        return WritePort(cell.memory, address, data, enables, cell.module_idx)

    def _memory(self, cell: nir.Memory) -> Memory:
        initial = tuple((row, value) for row, value in enumerate(cell.init) if value)
        name = ".".join(part for part in (self._cells.modules[cell.module_idx], cell.name) if part)
        return Memory(name, cell.width, cell.depth, initial)

    def _flops(self) -> Iterator[Flop]:
        for index in self._live(nir.FlipFlop):
            name = self._cells.names.get(index)
            if name and self._slices.need[index] == len(self._cells.cells[index].data):
                yield Flop(name, tuple((self._done[index, at][0].node, width) for at, width in self._words(index)))


__all__ = ["Pairs", "lower"]
