"""Writes C expressions for words and operations.

Values are zero-extended, and computed in ``u32`` or ``u64``, never in the types that C would promote to ``int``.
"""

from collections.abc import Callable

from sim.rtl.native.bits import CONSTANT, Piece, Word, constant, constant_of, cut, placed, sliced, width_of
from sim.rtl.native.nodes import Node

Name = Callable[[int], str]  #: the C expression of a node's value


def storage(width: int) -> str:
    """Return the C type that a value of ``width`` bits is kept in."""
    return next(f"u{bits}" for bits in (8, 16, 32, 64) if width <= bits)


def computed(width: int) -> str:
    """Return the C type that a value of ``width`` bits is computed in."""
    return "u32" if width <= 32 else "u64"


def literal(value: int, width: int) -> str:
    """Return a constant of type ``computed(width)``."""
    return f"{value:#x}u" if width <= 32 else f"{value:#x}ull"


def mask(width: int) -> str:
    """Return a value with all bits set."""
    return literal((1 << width) - 1, width)


class Expressions:
    """Writes expressions over nodes whose values ``name`` gives."""

    def __init__(self, nodes: list[Node], name: Name) -> None:
        self._nodes, self._name = nodes, name

    # -- words -----------------------------------------------------------------------------------------------
    def word(self, word: Word) -> str:
        """Return the value of at most 64 bits, of type ``computed(width)``."""
        width = width_of(word)
        known = constant_of(word)
        if known is not None:
            return literal(known, max(width, 1))
        extended = self._extended(word, width)
        if extended:
            signed = f"({computed(width)}){extended}"
            return f"({signed} & {mask(width)})" if width not in (32, 64) else f"({signed})"
        kind = computed(width)
        terms, fixed = [], 0
        for at, piece in placed(word):
            if piece.node == CONSTANT:
                fixed |= piece.low << at
            else:
                terms.append(self._piece(piece, kind, at))
        if fixed or not terms:
            terms.append(literal(fixed, width))
        return terms[0] if len(terms) == 1 else f"({' | '.join(terms)})"

    def signed(self, word: Word, width: int) -> str:
        """Return the value of ``word`` with its sign, as an ``s32`` or ``s64`` that fits ``width`` bits."""
        kind = "s32" if width <= 32 else "s64"
        own = width_of(word)
        extended = self._extended(word, own)
        if extended and (own <= 32) == (width <= 32):
            return extended
        value = self.word(word)
        size = 32 if width <= 32 else 64
        if own == size:
            return f"({kind}){value}"
        return f"(({kind})(({computed(width)}){value} << {size - own}) >> {size - own})"

    def _extended(self, word: Word, width: int) -> str | None:
        """Return ``word`` as a signed C value if it ends in copies of the sign of what is before them."""
        if len(word) < 2 or not (word[-1].repeat or word[-1].width == 1):
            return None
        last, before = word[-1], word[-2]
        if before.node != last.node or before.repeat or before.low + before.width - 1 != last.low:
            return None
        return self.signed(word[:-1], width)

    def _piece(self, piece: Piece, kind: str, at: int) -> str:
        """Return the bits of ``piece``, in their place of a value of type ``kind``."""
        node = self._nodes[piece.node]
        value = self._name(piece.node)
        own = computed(min(node.width, 64))
        if node.width > 64:
            return self._shifted(f"({kind})(bits_of({value}, {piece.low}) & {mask(piece.width)})", at)
        if piece.repeat:
            one = value if node.width == 1 else f"({value} >> {piece.low} & 1)"
            return self._shifted(
                f"(-({kind}){one} & {literal((1 << piece.width) - 1, 64 if kind == 'u64' else 32)})", at
            )
        if piece.low:
            value = f"({value} >> {piece.low})"
        if piece.low + piece.width < node.width:
            value = f"({value} & {literal((1 << piece.width) - 1, min(node.width, 64))})"
        if own != kind:
            value = f"({kind}){value}"
        return self._shifted(value, at)

    @staticmethod
    def _shifted(value: str, at: int) -> str:
        return f"({value} << {at})" if at else value

    def words64(self, word: Word) -> list[str]:
        """Return the value of any width as 64-bit words from the least significant on."""
        width = width_of(word)
        return [f"(u64){self.word(sliced(word, at, min(64, width - at)))}" for at in range(0, width, 64)]

    # -- operations ------------------------------------------------------------------------------------------
    def operation(self, node: Node) -> str:
        """Return the value of ``node``; not for those that :mod:`sim.rtl.native.operations` writes as statements."""
        return getattr(self, f"_{node.op}")(node)

    def _operands(self, node: Node) -> list[str]:
        return [self.word(arg) for arg in node.args]

    def _not(self, node: Node) -> str:
        return f"({self.word(node.args[0])} ^ {mask(node.width)})"

    def _and(self, node: Node) -> str:
        return f"({' & '.join(self._operands(node))})"

    def _or(self, node: Node) -> str:
        return f"({' | '.join(self._operands(node))})"

    def _xor(self, node: Node) -> str:
        return f"({' ^ '.join(self._operands(node))})"

    def _neg(self, node: Node) -> str:
        return f"((0 - {self.word(node.args[0])}) & {mask(node.width)})"

    def _arithmetic(self, node: Node, symbol: str) -> str:
        """Return the operation modulo 2^width; operands with a sign are left as wide as C has them."""
        kind = computed(node.width)
        terms = []
        for arg in node.args:
            extended = self._extended(arg, node.width)
            terms.append(f"({kind}){extended}" if extended else self.word(arg))
        result = f"({terms[0]} {symbol} {terms[1]})"
        signs = any(self._extended(arg, node.width) for arg in node.args)
        if node.width in (32, 64) or (not signs and self._fits(node, symbol)):
            return result
        return f"({result} & {mask(node.width)})"

    @staticmethod
    def _fits(node: Node, symbol: str) -> bool:
        """Return whether the result cannot exceed the node's width."""
        a, b = (_significant(arg) for arg in node.args)
        return {"+": max(a, b) + 1, "*": a + b, "-": node.width + 1}[symbol] <= node.width

    def _add(self, node: Node) -> str:
        return self._arithmetic(node, "+")

    def _sub(self, node: Node) -> str:
        return self._arithmetic(node, "-")

    def _mul(self, node: Node) -> str:
        return self._arithmetic(node, "*")

    def _udiv(self, node: Node) -> str:
        a, b = self._operands(node)
        return self._low_bits(node, width_of(node.args[0]), f"({b} ? {a} / {b} : 0)")

    def _umod(self, node: Node) -> str:
        a, b = self._operands(node)
        return self._low_bits(node, width_of(node.args[0]), f"({b} ? {a} % {b} : 0)")

    def _mux(self, node: Node) -> str:
        c, a, b = self._operands(node)
        return f"({c} ? {a} : {b})"

    def _chain(self, node: Node) -> str:
        *pairs, default = self._operands(node)
        text = "".join(f"{c} ? {a} : " for c, a in zip(pairs[::2], pairs[1::2], strict=True))
        return f"({text}{default})"

    def _eq(self, node: Node) -> str:
        pairs = zip(*(self._chunks(node)), strict=True)
        return f"({' & '.join(f'({a} == {b})' for a, b in pairs)})"

    def _ne(self, node: Node) -> str:
        pairs = zip(*(self._chunks(node)), strict=True)
        return f"({' | '.join(f'({a} != {b})' for a, b in pairs)})"

    def _chunks(self, node: Node) -> list[list[str]]:
        if width_of(node.args[0]) <= 64:
            return [[self.word(arg)] for arg in node.args]
        return [self.words64(arg) for arg in node.args]

    def _compare(self, node: Node, symbol: str, signed: bool) -> str:
        if not signed:
            return f"({self.word(node.args[0])} {symbol} {self.word(node.args[1])})"
        width = width_of(node.args[0])
        return f"({self.signed(node.args[0], width)} {symbol} {self.signed(node.args[1], width)})"

    def _ult(self, node: Node) -> str:
        return self._compare(node, "<", False)

    def _ule(self, node: Node) -> str:
        return self._compare(node, "<=", False)

    def _slt(self, node: Node) -> str:
        return self._compare(node, "<", True)

    def _sle(self, node: Node) -> str:
        return self._compare(node, "<=", True)

    def _any(self, node: Node) -> str:
        kind = "u64" if any(self._nodes[p.node].width > 32 for p in node.args[0]) else "u32"
        terms: list[str] = []
        for piece in node.args[0]:
            source = self._nodes[piece.node]
            value = self._name(piece.node)
            if source.width > 64:
                bits = 1 if piece.repeat else piece.width
                parts = [cut(piece, at, min(64, bits - at)) for at in range(0, bits, 64)]
                terms.extend(self._piece(part, "u64", 0) for part in parts)
            elif piece.width == source.width:
                terms.append(value)
            else:
                bits = (1 << (1 if piece.repeat else piece.width)) - 1
                terms.append(f"({value} & {literal(bits << piece.low, source.width)})")
        return f"(({' | '.join(f'({kind}){term}' for term in terms)}) != 0)"

    def _all(self, node: Node) -> str:
        width = width_of(node.args[0])
        parts = [sliced(node.args[0], at, min(64, width - at)) for at in range(0, width, 64)]
        return f"({' & '.join(f'({self.word(part)} == {mask(width_of(part))})' for part in parts)})"

    def _odd(self, node: Node) -> str:
        return f"((u32)__builtin_parityll({' ^ '.join(self.words64(node.args[0]))}))"

    def _shl(self, node: Node) -> str:
        a, amount = self.word(sliced(node.args[0] + constant(0, node.width), 0, node.width)), self.word(node.args[1])
        size = 32 if node.width <= 32 else 64
        shifted = f"({a} << {amount})"
        if node.width != size:
            shifted = f"({shifted} & {mask(node.width)})"
        return self._within(node, size, shifted, "0")

    def _shr(self, node: Node) -> str:
        own = width_of(node.args[0])
        value = f"({self.word(node.args[0])} >> {self.word(node.args[1])})"
        return self._low_bits(node, own, self._within(node, 32 if own <= 32 else 64, value, "0"))

    def _sar(self, node: Node) -> str:
        own = width_of(node.args[0])
        size = 32 if own <= 32 else 64
        value, amount = self.signed(node.args[0], own), self.word(node.args[1])
        shifted = self._within(node, size, f"({value} >> {amount})", f"({value} >> {size - 1})")
        return self._low_bits(node, 65, f"({computed(own)}){shifted}")

    @staticmethod
    def _low_bits(node: Node, own: int, value: str) -> str:
        """Return as many bits of a value of ``own`` bits as the node has."""
        if own == node.width:
            return value
        return f"(({computed(node.width)}){value} & {mask(node.width)})"

    def _within(self, node: Node, size: int, value: str, beyond: str) -> str:
        """Return ``value`` where the amount is one that C shifts by, otherwise ``beyond``."""
        if (1 << _significant(node.args[1])) <= size:
            return value
        return f"({self.word(node.args[1])} < {size} ? {value} : {beyond})"


def _significant(word: Word) -> int:
    """Return the bits of ``word`` below its constant zeros at the top."""
    width = width_of(word)
    last = word[-1]
    return width - last.width + last.low.bit_length() if last.node == CONSTANT else width
