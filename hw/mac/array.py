"""Defines the multiply-accumulate array of one PE, without its accumulators."""

from amaranth.hdl import Const, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

WIDE = 9  #: bits of an operand after its zero point was subtracted


class PeArray(wiring.Component):
    """Computes ``rows`` x ``cols`` products and the sum of each column, fully pipelined.

    Bytes arrive with their sign bit flipped where they are signed, zero points likewise, so that both are unsigned.
    Weights enter a shadow array word by word, as in a shift register, along the rows or along the columns: after
    ``rows`` words, word 0 is row (column) 0. ``swap`` makes the shadow the active array.

    Members, all In but the last: ``wgt``, ``w_zp``, ``w_cols`` with ``w_load``: one weight word per cycle; ``tap``:
    ``taps`` activation words, ``x_zp``, ``depthwise`` with ``x_load``: one pixel per cycle (row r takes byte r of tap
    0, or with ``depthwise`` byte c of tap r in column c, zero beyond the taps); ``swap``: together with the first
    ``x_load`` of a block; ``mul_en``, ``half_en``, ``sum_en``: the pixel is one, two, three cycles older; ``dot``: Out,
    ``cols`` sums, valid one cycle after ``sum_en``.
    """

    def __init__(self, rows: int, cols: int, taps: int) -> None:
        self._rows, self._cols = rows, cols
        self._sum = signed(2 * WIDE + (rows - 1).bit_length())
        super().__init__(
            {
                "wgt": In(8 * rows), "w_zp": In(8), "w_cols": In(1), "w_load": In(1), "swap": In(1),
                "tap": In(8 * rows).array(taps), "x_zp": In(8), "depthwise": In(1), "x_load": In(1),
                "mul_en": In(1), "half_en": In(1), "sum_en": In(1), "dot": Out(self._sum).array(cols),
            }
        )  # fmt: skip

    def elaborate(self, platform):
        m = Module()
        rows, cols = self._rows, self._cols
        weights = self._weights(m)
        operands = self._operands(m)
        for c in range(cols):
            products = []
            for r in range(rows):
                product = Signal(signed(2 * WIDE), name=f"product{r}_{c}")
                with m.If(self.mul_en):
                    m.d.sync += product.eq(operands[r][c] * weights[r][c])
                products.append(product)
            halves = []
            for h in range(0, rows, 4):
                half = Signal(signed(2 * WIDE + 2), name=f"half{h}_{c}")
                with m.If(self.half_en):
                    m.d.sync += half.eq((products[h] + products[h + 1]) + (products[h + 2] + products[h + 3]))
                halves.append(half)
            with m.If(self.sum_en):
                m.d.sync += self.dot[c].eq(sum(halves[1:], halves[0]))
        return m

    def _weights(self, m) -> list[list[Signal]]:
        """Return the active array per row and column."""
        rows, cols = self._rows, self._cols
        shadow, active = (
            [[Signal(signed(WIDE), name=f"{name}{r}_{c}") for c in range(cols)] for r in range(rows)]
            for name in ("shadow", "active")
        )
        fresh = [Signal(signed(WIDE), name=f"fresh{i}") for i in range(rows)]
        m.d.comb += [fresh[i].eq(self.wgt.word_select(i, 8) - self.w_zp) for i in range(rows)]
        by_row = [*shadow[1:], fresh]
        by_col = [[*shadow[r][1:], fresh[r]] for r in range(rows)]
        for r in range(rows):
            for c in range(cols):
                with m.If(self.w_load):
                    m.d.sync += shadow[r][c].eq(Mux(self.w_cols, by_col[r][c], by_row[r][c]))
                with m.If(self.swap):
                    m.d.sync += active[r][c].eq(shadow[r][c])
        return active

    def _operands(self, m) -> list[list]:
        """Return the activations per row and column; rows that no tap reaches share one register over the columns."""
        rows, cols = self._rows, self._cols
        operands = []
        for r in range(rows):
            dense = Signal(signed(WIDE), name=f"dense{r}")
            m.d.comb += dense.eq(self.tap[0].word_select(r, 8) - self.x_zp)
            held = []
            for c in range(cols if r < len(self.tap) else 1):
                operand = Signal(signed(WIDE), name=f"operand{r}_{c}")
                deep = self.tap[r].word_select(c, 8) - self.x_zp if r < len(self.tap) else 0
                with m.If(self.x_load):
                    m.d.sync += operand.eq(Mux(self.depthwise, deep, dense))
                held.append(operand)
            operands.append(held if len(held) == cols else held * cols)
        return operands


def sign_flip(bytes_: int) -> Const:
    """Return the mask whose exclusive or turns ``bytes_`` int8 into uint8 of the same order."""
    return Const(int.from_bytes(b"\x80" * bytes_, "little"), 8 * bytes_)
