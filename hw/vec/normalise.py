"""Finds the leading one of a number by binary search while the number is shifted."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value


def normalise(m: Module, value: Signal) -> tuple[Signal, Value]:
    """Return ``value`` shifted left until its highest bit is set, and how many zeros stood before the leading one. For
    a ``value`` of 0 the first is 0, and the second means nothing."""
    width = len(value)
    zeros: list[Signal] = []
    shifted = value
    for step in reversed([1 << k for k in range((width - 1).bit_length())]):
        move = Signal(name=f"move{step}")
        stage = Signal(width, name=f"shift{step}")
        m.d.comb += [
            move.eq(shifted[width - step :] == 0),
            stage.eq(Mux(move, Cat(Const(0, step), shifted[:-step]), shifted)),
        ]
        shifted, zeros = stage, [move, *zeros]
    return shifted, Cat(zeros)
