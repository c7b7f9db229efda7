"""Turns combinational cells into operations on integers of at most 64 bits."""

from amaranth.hdl import _nir as nir

from sim.rtl.native.bits import CONSTANT, Piece, Word, constant, constant_of, cut, joined, sliced, width_of
from sim.rtl.native.cells import TOP, Cells, NetlistError, bit
from sim.rtl.native.nodes import ONE, ZERO, Builder
from sim.rtl.native.slices import WORD, Slices

_BINARY = {
    "&": "and", "|": "or", "^": "xor", "+": "add", "-": "sub", "*": "mul", "<<": "shl", "u>>": "shr", "s>>": "sar",
    "u//": "udiv", "u%": "umod",
}  # fmt: skip
_COMPARE = {
    "==": ("eq", False), "!=": ("ne", False),
    "u<": ("ult", False), "u<=": ("ule", False), "u>": ("ult", True), "u>=": ("ule", True),
    "s<": ("slt", False), "s<=": ("sle", False), "s>": ("slt", True), "s>=": ("sle", True),
}  # fmt: skip
_REDUCE = {"b": "any", "r|": "any", "r&": "all", "r^": "odd"}


class Combinational:
    """Makes words when they are asked for, so that each comes after what it depends on. ``builder`` holds the nodes."""

    def __init__(self, cells: Cells, slices: Slices) -> None:
        self._cells, self._slices = cells, slices
        self.builder = Builder()
        self._done: dict[tuple[int, int], Word] = {}
        self._busy: set[tuple[int, int]] = set()
        self._starts: dict[int, list[tuple[int, int]]] = {}
        self._inputs: dict[int, Word] = {}  # by bit of the top

    def input(self, name: str, port: Word) -> int:
        """Return the node of an input of the design."""
        made = self.builder.source("input", port[0].width, name)
        self._inputs[port[0].low] = made
        return made[0].node

    def state(self, index: int) -> None:
        """Return the words of a register or read port, which exist before anything is computed."""
        cell = self._cells.cells[index]
        self.builder.module = cell.module_idx
        op = "reg" if isinstance(cell, nir.FlipFlop) else "rdata"
        for start, width in self.words(index):
            self._done[index, start] = self.builder.source(op, width, (self._cells.names.get(index), index, start))

    def node(self, index: int, start: int) -> int:
        """Return the node of a word of a register or read port."""
        return self._done[index, start][0].node

    # -- words of cells --------------------------------------------------------------------------------------
    def words(self, index: int) -> list[tuple[int, int]]:
        """Return (first bit, width) of the words that a cell is cut into."""
        if index not in self._starts:
            self._starts[index] = list(self._slices.words(index))
        return self._starts[index]

    def resolve(self, value: Word) -> Word:
        """Return a word of cells as a word of nodes; what it depends on is made now. Raises :class:`NetlistError`."""
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
        for start, size in self.words(index):
            first, last = max(low, start), min(low + width, start + size)
            if first < last:
                result.extend(sliced(self._word(index, start, size), first - start, last - first))
        if low + width > self._slices.need[index]:
            raise AssertionError("bits were taken for unneeded")
        return joined(result)

    def _input_bits(self, low: int, width: int) -> Word:
        for start, made in self._inputs.items():
            if start <= low and low + width <= start + made[0].width:
                return (cut(made[0], low - start, width),)
        raise NetlistError("a combinational use of the clock")

    def _word(self, index: int, start: int, width: int) -> Word:
        key = (index, start)
        if key not in self._done:
            if key in self._busy:
                cell = self._cells.cells[index]
                raise NetlistError(
                    f"{self._cells.where(cell)}: combinational loop through a {type(cell).__name__} cell"
                )
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
                args = self.pairs(cell, start, width)
                self.builder.module = cell.module_idx
                return self.builder.chain(width, *args)
            case nir.PriorityMatch():
                return self._priority(cell)
            case nir.Matches():
                return self._matches(cell)
            case nir.Part():
                return self._part(cell, start, width)
            case nir.AsyncReadPort():
                address = self.resolve(self._cells.word(cell.addr))
                self.builder.module = cell.module_idx
                return self.builder.op("aread", width, address, info=(cell.memory, start))
        raise NetlistError(f"{self._cells.where(cell)}: cells of type {type(cell).__name__} cannot be simulated")

    def _operator(self, cell: nir.Operator, start: int, width: int) -> Word:
        op, words = cell.operator, [self._cells.word(value) for value in cell.inputs]
        b = self.builder
        if op in ("&", "|", "^", "~"):
            args = [self.resolve(sliced(one, start, width)) for one in words]
            b.module = cell.module_idx
            return b.op("not" if op == "~" else _BINARY[op], width, *args)
        if op == "m":
            args = [self.resolve(words[0]), *(self.resolve(sliced(one, start, width)) for one in words[1:])]
            b.module = cell.module_idx
            return b.op("mux", width, *args)
        if op in _REDUCE:
            arg = self.resolve(words[0])
            b.module = cell.module_idx
            return b.op(_REDUCE[op], 1, arg)
        if op in _COMPARE:
            name, swap = _COMPARE[op]
            args = [self.resolve(one) for one in (reversed(words) if swap else words)]
            b.module = cell.module_idx
            if width_of(args[0]) > WORD and name not in ("eq", "ne"):
                return self._wide_compare(name, *args)
            return b.op(name, 1, *args)
        if op in ("+", "-", "*"):
            args = [self.resolve(sliced(one, 0, width)) for one in words]
            b.module = cell.module_idx
            if width > WORD and op != "*":
                return self._wide_sum(op, width, *args)
            self._check_width(cell, *args)
            return b.op("neg" if len(args) == 1 else _BINARY[op], width, *args)
        if op in ("<<", "u>>", "s>>", "u//", "u%"):
            first = sliced(words[0], 0, width) if op == "<<" else words[0]
            args = [self.resolve(first), self.resolve(words[1])]
            b.module = cell.module_idx
            if op == "u>>" and width_of(args[0]) > WORD:
                return b.op("wide_shr" if width > WORD else "part", width, *args)
            self._check_width(cell, *args)
            return b.op(_BINARY[op], width, *args)
        raise NetlistError(f"{self._cells.where(cell)}: the operator {op!r} cannot be simulated")

    def _wide_sum(self, op: str, width: int, *args: Word) -> Word:
        a, other = args if len(args) == 2 else (constant(0, width), args[0])
        if op == "+":
            return self.builder.sum(a, other, ZERO)[0]
        return self.builder.sum(a, self._inverted(other), ONE)[0]

    def _wide_compare(self, name: str, a: Word, other: Word) -> Word:
        if name.startswith("s"):  # with the sign turned over, the order is that of unsigned numbers
            top = width_of(a) - 1
            a, other = (joined(sliced(one, 0, top) + self._inverted(sliced(one, top, 1))) for one in (a, other))
        if name.endswith("le"):
            a, other = other, a
        # a - other does not borrow where a carry comes out of a + ~other + 1.
        no_borrow = self.builder.sum(a, self._inverted(other), ONE)[1]
        return no_borrow if name.endswith("le") else self.builder.invert(no_borrow)

    def _inverted(self, value: Word) -> Word:
        """Return the inverse of a word of any width."""
        width = width_of(value)
        return joined(
            piece
            for at in range(0, width, WORD)
            for piece in self.builder.invert(sliced(value, at, min(WORD, width - at)))
        )

    def _check_width(self, cell: nir.Cell, *args: Word, limit: int | None = WORD) -> None:
        widest = max(map(width_of, args))
        if limit is not None and widest > limit:
            what = f"{type(cell).__name__} {getattr(cell, 'operator', '')}".strip()
            raise NetlistError(f"{self._cells.where(cell)}: {what} of {widest} bits; the limit is {limit}")

    # -- conditions ------------------------------------------------------------------------------------------
    def net(self, net: nir.Net) -> Word:
        """Return a single bit as a word of nodes."""
        return self.resolve(bit(net))

    def _matches(self, cell: nir.Matches) -> Word:
        value = self.resolve(self._cells.word(cell.value))
        b = self.builder
        b.module = cell.module_idx
        result = ZERO
        for pattern in cell.patterns:
            checked = joined(
                piece for i, bit in enumerate(reversed(pattern)) if bit != "-" for piece in sliced(value, i, 1)
            )
            expected = int("".join(bit for bit in pattern if bit != "-") or "0", 2)
            same = b.op("eq", 1, checked, constant(expected, width_of(checked))) if checked else ONE
            result = b.either(result, same)
        return result

    def _priority(self, cell: nir.PriorityMatch) -> Word:
        """Return all bits of a priority match; each excludes those before it that do not exclude themselves."""
        return joined(piece for i in range(len(cell.inputs)) for piece in self._selected(cell, i, ()))

    def _selected(self, cell: nir.PriorityMatch, position: int, excluded: tuple[int, ...]) -> Word:
        """Return bit ``position`` of a priority match, given that the inputs ``excluded`` are not set."""
        b = self.builder
        result = self.net(cell.inputs[position])
        for earlier in range(position):
            if earlier in excluded or self._disjoint(cell.inputs[earlier], cell.inputs[position]):
                continue
            other = self.net(cell.inputs[earlier])
            b.module = cell.module_idx
            result = b.both(result, b.invert(other))
        enable = self.net(cell.en)
        b.module = cell.module_idx
        return b.both(enable, result)

    def _disjoint(self, first: nir.Net, second: nir.Net) -> bool:
        """Return whether two matches of one value can never both be set."""
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

    def pairs(self, cell: nir.AssignmentList, start: int, width: int) -> tuple[list[tuple[Word, Word]], Word]:
        """Return the assignments to a word, the last first, as (condition, value), and the default.

        Branches of one ``If`` or ``Switch`` exclude each other: they are tried in their own order, and then a branch
        need not ask again whether an earlier one was taken.
        """
        chosen = [
            one
            for one in reversed(cell.assignments)
            if one.start <= start and start + width <= one.start + len(one.value)
        ]
        result: list[tuple[Word, Word]] = []
        at = 0
        while at < len(chosen):
            source = self._match_of(chosen[at].cond)
            end = at + 1
            while end < len(chosen) and source is not None and self._match_of(chosen[end].cond) is source:
                end += 1
            if source is None or end == at + 1:
                result.append((self.net(chosen[at].cond), self._value(chosen[at], start, width)))
            else:
                taken: list[int] = []
                for one in sorted(chosen[at:end], key=lambda one: one.cond.bit):
                    if one.cond.bit not in taken:  # of two assignments in one branch, the last: it comes first here
                        result.append(
                            (self._selected(source, one.cond.bit, tuple(taken)), self._value(one, start, width))
                        )
                        taken.append(one.cond.bit)
            at = end
        return result, self.resolve(sliced(self._cells.word(cell.default), start, width))

    def _match_of(self, net: nir.Net) -> nir.PriorityMatch | None:
        cell = self._cells.cells[net.cell] if net.is_cell else None
        return cell if isinstance(cell, nir.PriorityMatch) else None

    def _value(self, one: nir.Assignment, start: int, width: int) -> Word:
        return self.resolve(sliced(self._cells.word(one.value), start - one.start, width))

    def _part(self, cell: nir.Part, start: int, width: int) -> Word:
        value, offset = self.resolve(self._cells.word(cell.value)), self.resolve(self._cells.word(cell.offset))
        b = self.builder
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
        if width <= width_of(value) <= WORD:
            return b.op("shr", width, value, offset)
        return b.op("part", width, value, offset)
