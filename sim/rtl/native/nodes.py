"""Describes what is simulated: operations on integers of at most 64 bits, folded, numbered by value, in an order in
which they can be computed, and the state between clock edges.

Operations and their arguments (words; ``c`` has one bit):

==================  ========================================================================================
``input reg rdata`` no arguments: a host's input, a register, a register behind a memory
``not neg``         a
``and or xor``      a, b
``add sub mul``     a, b of the node's width
``mux``             c, a, b: a where c, else b
``chain``           c0, a0, c1, a1, ..., z: the first a whose c is set, else z
``eq ne``           a, b of any width
``ult ule slt sle`` a, b of at most 64 bits
``udiv umod``       a, b; zero where b is zero
``any all odd``     a of any width: or, and, exclusive or of all its bits
``shl shr sar``     a, amount
``wide_shr``        a of any width, amount; the node may be wider than 64 bits
``pick``            index, a0, a1, ...: a[index], zero beyond
``part``            a of any width, amount: bits from there on, zero beyond
``aread``           address; ``info`` is the memory
==================  ========================================================================================
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sim.rtl.native.bits import CONSTANT, Piece, Word, constant, constant_of, joined, sliced, width_of

ONE, ZERO = constant(1, 1), constant(0, 1)

SOURCES = ("input", "reg", "rdata")
_LIMB = 62  #: bits of a sum that are added at a time where it is wider than an integer
_COMMUTES = ("and", "or", "xor", "add", "mul", "eq", "ne")


@dataclass
class Node:
    """Is one operation. ``module`` is the module it came from first; ``info`` belongs to the operation."""

    op: str
    width: int
    args: tuple[Word, ...]
    info: Any
    module: int


@dataclass
class Builder:
    """Makes nodes; equal ones are made once. Every method returns a word."""

    nodes: list[Node] = field(default_factory=list)
    module: int = 0
    _known: dict[tuple, int] = field(default_factory=dict)

    def source(self, op: str, width: int, info: Any) -> Word:
        """Return a node without arguments, which is never shared."""
        self.nodes.append(Node(op, width, (), info, self.module))
        return (Piece(len(self.nodes) - 1, 0, width),)

    def op(self, op: str, width: int, *args: Word, info: Any = None) -> Word:
        """Return the operation ``op``, simplified where its arguments allow it."""
        simpler = self._simplified(op, width, args)
        if simpler is not None:
            return simpler
        if op in _COMMUTES and args[1] < args[0]:
            args = (args[1], args[0])
        key = (op, width, args, info)
        number = self._known.get(key)
        if number is None:
            number = self._known[key] = len(self.nodes)
            self.nodes.append(Node(op, width, args, info, self.module))
        return (Piece(number, 0, width),)

    # -- conditions ------------------------------------------------------------------------------------------
    def invert(self, a: Word) -> Word:
        """Return the inverse of a word of any width up to 64."""
        return self.op("not", width_of(a), a)

    def both(self, a: Word, b: Word) -> Word:
        """Return the bitwise and of two words."""
        return self.op("and", width_of(a), a, b)

    def either(self, a: Word, b: Word) -> Word:
        """Return the bitwise or of two words."""
        return self.op("or", width_of(a), a, b)

    def sum(self, a: Word, b: Word, carry: Word) -> tuple[Word, Word]:
        """Return ``a + b + carry`` of two words of any one width, and the carry out."""
        result: Word = ()
        for at in range(0, width_of(a), _LIMB):
            width = min(_LIMB, width_of(a) - at)
            room = constant(0, 2)  # for the carry of either addition; only one of them can carry
            x, y = joined(sliced(a, at, width) + room), joined(sliced(b, at, width) + room)
            total = self.op("add", width + 2, self.op("add", width + 2, x, y), joined(carry + constant(0, width + 1)))
            result += sliced(total, 0, width)
            carry = sliced(total, width, 1)
        return joined(result), carry

    def chain(self, width: int, pairs: list[tuple[Word, Word]], default: Word) -> Word:
        """Return the value of the first pair whose condition is set, else ``default``."""
        pairs, default = self.pruned(pairs, default)
        if not pairs:
            return default
        if len(pairs) == 1:
            return self.op("mux", width, pairs[0][0], pairs[0][1], default)
        flat = [word for pair in pairs for word in pair]
        return self.op("chain", width, *flat, default)

    @staticmethod
    def pruned(pairs: list[tuple[Word, Word]], default: Word) -> tuple[list[tuple[Word, Word]], Word]:
        """Return the same choice without conditions that are constant, and without last pairs that equal the
        default."""
        result: list[tuple[Word, Word]] = []
        for condition, value in pairs:
            known = constant_of(condition)
            if known == 1:
                default = value
                break
            if known is None:
                result.append((condition, value))
        while result and result[-1][1] == default:
            result.pop()
        return result, default

    # -- rules -----------------------------------------------------------------------------------------------
    def _simplified(self, op: str, width: int, args: tuple[Word, ...]) -> Word | None:
        if op in ("and", "or", "xor"):
            return self._bitwise(op, width, *args)
        values = [constant_of(arg) for arg in args]
        if op == "not":
            if values[0] is not None:
                return constant(~values[0], width)
            inner = self._whole(args[0])
            return inner.args[0] if inner and inner.op == "not" else None
        if op == "mux":
            return self._mux(width, values, *args)
        if op in ("any", "all", "odd") and width_of(args[0]) == 1:
            return args[0]
        if op == "all" and not args[0]:
            return ONE
        if op == "any":
            return self._without_constants(args[0])
        if op in ("eq", "ne"):
            return self._equal(op, values, *args)
        if op in ("add", "sub") and values[1] == 0:
            return args[0]
        if op == "add" and values[0] == 0:
            return args[1]
        if op in ("shl", "shr", "sar", "wide_shr") and values[1] is not None:
            return self._shifted(op, width, args[0], values[1])
        if op == "part" and values[1] is not None:
            return sliced(args[0] + constant(0, width + values[1]), values[1], width)
        if op == "pick" and values[0] is not None:
            return args[1 + values[0]] if values[0] + 1 < len(args) else constant(0, width)
        return None

    def _whole(self, word: Word) -> Node | None:
        """Return the node that ``word`` is, all of it."""
        if len(word) != 1 or word[0].node == CONSTANT or word[0].repeat:
            return None
        node = self.nodes[word[0].node]
        return node if word[0].width == node.width else None

    def _bitwise(self, op: str, width: int, a: Word, b: Word) -> Word | None:
        """Return one smaller operation: bits beside a constant are known, or pass through."""
        if a == b:
            return constant(0, width) if op == "xor" else a
        known_a, known_b = constant_of(a), constant_of(b)
        if known_a is not None and known_b is not None:
            result = {"and": known_a & known_b, "or": known_a | known_b, "xor": known_a ^ known_b}[op]
            return constant(result, width)
        for known, other in ((known_a, b), (known_b, a)):
            if known is None:
                continue
            if (op == "and" and known == 0) or (op == "or" and known == (1 << width) - 1):
                return constant(known, width)
            if known == (0 if op != "and" else (1 << width) - 1):
                return other
            if op == "xor" and known == (1 << width) - 1:
                return self.invert(other)
        return None

    def _mux(self, width: int, values: list[int | None], c: Word, a: Word, b: Word) -> Word | None:
        if values[0] is not None:
            return a if values[0] else b
        if a == b:
            return a
        if width == 1:
            if values[1:] == [1, 0]:
                return c
            if values[1:] == [0, 1]:
                return self.invert(c)
            if values[1] == 0:
                return self.both(self.invert(c), b)
            if values[1] == 1:
                return self.either(c, b)
            if values[2] == 0:
                return self.both(c, a)
            if values[2] == 1:
                return self.either(self.invert(c), a)
        condition = self._whole(c)
        if condition and condition.op == "not":
            return self.op("mux", width, condition.args[0], b, a)
        return None

    def _without_constants(self, a: Word) -> Word | None:
        if not a:
            return ZERO
        if any(piece.node == CONSTANT and piece.low for piece in a):
            return ONE
        rest = joined(piece._replace(width=1, repeat=False) if piece.repeat else piece
                      for piece in a if piece.node != CONSTANT)  # fmt: skip
        if rest == a:
            return None
        return self.op("any", 1, rest) if rest else ZERO

    def _equal(self, op: str, values: list[int | None], a: Word, b: Word) -> Word | None:
        if a == b:  # also if both have no bits
            return ONE if op == "eq" else ZERO
        if values[0] is not None and values[1] is not None:
            return constant(int((values[0] == values[1]) == (op == "eq")), 1)
        for known, other in ((values[0], b), (values[1], a)):
            if known is not None and width_of(other) == 1:
                return other if (known == 1) == (op == "eq") else self.invert(other)
            if known == 0:
                some = self.op("any", 1, other)
                return some if op == "ne" else self.invert(some)
        return None

    def _shifted(self, op: str, width: int, a: Word, amount: int) -> Word:
        if op == "shl":
            return sliced(constant(0, min(amount, width)) + a, 0, width)
        if op == "sar":
            sign = sliced(a, width_of(a) - 1, 1)
            return sliced(a + sign * amount, min(amount, width_of(a)), width)
        return sliced(a + constant(0, amount + width), amount, width)


Pairs = tuple[tuple[Word, Word], ...]


@dataclass(frozen=True)
class Register:
    """Describes a word of a flip-flop. At the edge it takes the value of the first of ``pairs`` (condition, value)
    whose condition is set, else ``default``, which is None where it keeps its value."""

    node: int
    initial: int
    pairs: Pairs
    default: Word | None
    module: int


@dataclass(frozen=True)
class MemoryReadPort:
    """Describes a synchronous read port: where ``enable`` is set, the edge brings the row at ``address`` into its
    words. ``words``: (node, first bit, width)."""

    memory: int
    address: Word
    enable: Word
    words: tuple[tuple[int, int, int], ...]
    module: int


@dataclass(frozen=True)
class MemoryWritePort:
    """Describes a write port. ``enables``: (first bit, width, condition) of every part that can be written alone."""

    memory: int
    address: Word
    data: Word
    enables: tuple[tuple[int, int, Word], ...]
    module: int


@dataclass(frozen=True)
class MemoryNode:
    """Describes a memory of ``depth`` rows of ``width`` bits. ``initial``: (row, value) of the rows that are not
    zero."""

    name: str
    width: int
    depth: int
    initial: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Flop:
    """Describes a flip-flop as the design names it, made of words: (node, width) from the least significant on."""

    name: str
    words: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Design:
    """Holds a netlist ready to be scheduled. ``modules``: hierarchical names; ``inputs``: node by port."""

    nodes: list[Node]
    modules: list[str]
    inputs: Mapping[str, int]
    outputs: Mapping[str, Word]
    registers: list[Register]
    reads: list[MemoryReadPort]
    writes: list[MemoryWritePort]
    memories: dict[int, MemoryNode]
    flops: list[Flop]
