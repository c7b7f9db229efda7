"""Counting semaphores of one engine."""

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.axi.arbiter import RoundRobin
from hw.job import SEMAPHORE_CLASSES, SEMAPHORES
from hw.params import SocParams

_LOADED = 8  #: semaphores loaded at once
Planes = list[Value]  #: a vector of numbers as bit planes: element b holds bit b of every number


def _add(a: Planes, b: Planes) -> tuple[Planes, Value]:
    """Element-wise sum of two vectors with equally many planes, and the carries out."""
    total, carry = [], None
    for x, y in zip(a, b, strict=True):
        half = x ^ y
        total.append(half if carry is None else half ^ carry)
        carry = (x & y) if carry is None else (x & y) | (half & carry)
    assert carry is not None
    return total, carry


def _subtract_bit(a: Planes, bit: Value) -> tuple[Planes, Value]:
    """Element-wise ``a - bit``, and the borrows out."""
    result, borrow = [], bit
    for x in a:
        result.append(x ^ borrow)
        borrow = ~x & borrow
    return result, borrow


def _population(masks: list[Value], planes: int) -> Planes:
    """How many of ``masks`` are set at each position."""
    total: Planes = [masks[0] & 0] * planes
    for mask in masks:
        carry = mask
        for b in range(planes):
            total[b], carry = total[b] ^ carry, total[b] & carry
    return total


def _above(a: Planes, limit: int) -> Value:
    """Positions where the number is larger than the constant ``limit``."""
    greater, equal = a[0] & 0, ~(a[0] & 0)
    for b in reversed(range(len(a))):
        if limit >> b & 1:
            equal = equal & a[b]
        else:
            greater = greater | (equal & a[b])
            equal = equal & ~a[b]
    return greater


class SemaphoreFile(wiring.Component):
    """Counters with all-or-nothing waits and simultaneous signals.

    In one cycle at most one unit is granted (in turn), and only when every semaphore of its mask is above zero:
    all of them are then decremented. Any number of units may signal in the same cycle. The counters are kept as bit
    planes (plane b holds bit b of every semaphore), so that an update is a few operations on words of
    ``params.semaphores`` bits: small in gates and quick in simulation.

    Members
    -------
    wait : In(semaphores).array(units)
        Mask each unit asks for while its bit of ``request`` is set.
    request, grant : In(units), Out(units)
        ``grant`` answers in the same cycle, one-hot.
    missing : Out(SEMAPHORE_CLASSES).array(units)
        Classes (number modulo ``SEMAPHORE_CLASSES``) of the semaphores that a unit requests and that are zero.
    signal : In(semaphores).array(units)
        Masks to add in this cycle; zero for units that signal nothing.
    clear : In(1)
        Set every counter to zero.
    load, load_group, load_counts : In(1), In(2), In(64)
        Set semaphores ``8 * load_group`` and up, one byte each, which must be zero; nothing waits or signals now.
    nonzero : Out(semaphores)
        Counters above zero.
    overflow : Out(semaphores)
        Counters that this cycle's signals would take above ``params.semaphore_max``; they keep their value.
    index, count : In(5), Out(8)
        Register read of one counter; zero above ``params.semaphores``.
    """

    def __init__(self, params: SocParams, units: int) -> None:
        self.params, self.units = params, units
        n = params.semaphores
        super().__init__(
            {
                "wait": In(n).array(units),
                "request": In(units),
                "grant": Out(units),
                "missing": Out(SEMAPHORE_CLASSES).array(units),
                "signal": In(n).array(units),
                "clear": In(1),
                "load": In(1),
                "load_group": In(2),
                "load_counts": In(8 * _LOADED),
                "nonzero": Out(n),
                "overflow": Out(n),
                "index": In(5),
                "count": Out(8),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        n = self.params.semaphores
        width = self.params.semaphore_max.bit_length()
        planes = [Signal(n, name=f"plane{b}") for b in range(width)]

        # Who may go.
        m.d.comb += self.nonzero.eq(reduce(or_, planes))
        m.submodules.arbiter = arbiter = RoundRobin(self.units)
        lacking = [Signal(n, name=f"lacking{u}") for u in range(self.units)]
        for u in range(self.units):
            m.d.comb += lacking[u].eq(self.wait[u] & ~self.nonzero)
            with m.If(self.request[u]):
                m.d.comb += self.missing[u].eq(
                    Cat(lacking[u][c::SEMAPHORE_CLASSES].any() for c in range(SEMAPHORE_CLASSES))
                )
        m.d.comb += [
            arbiter.requests.eq(Cat(self.request[u] & ~lacking[u].any() for u in range(self.units))),
            arbiter.taken.eq(1),
            self.grant.eq(arbiter.grant),
        ]
        taken = Signal(n)
        for u in range(self.units):
            with m.If(self.grant[u]):
                m.d.comb += taken.eq(self.wait[u])

        # change = signals - taken, as a signed number: its sign is the borrow.
        bits = self.units.bit_length()
        change, negative = _subtract_bit(_population(list(self.signal), bits), taken)
        change = [change[b] if b < bits else negative for b in range(max(width, bits))]
        counts = planes + [planes[0] & 0] * (len(change) - width)
        total, carry = _add(counts, change)
        over = (carry & ~negative) | _above(total, self.params.semaphore_max) & ~negative
        m.d.comb += self.overflow.eq(over)
        for b, plane in enumerate(planes):
            m.d.sync += plane.eq(Mux(self.clear, 0, (total[b] & ~self.overflow) | (plane & self.overflow)))
        with m.If(self.load):
            for b, plane in enumerate(planes):
                bits = Signal(SEMAPHORES, name=f"loaded{b}")
                m.d.comb += bits.eq(Cat(self.load_counts[b::8]) << (_LOADED * self.load_group))
                m.d.sync += plane.eq(plane | bits[:n])

        m.d.comb += self.count.eq(Cat(plane.bit_select(self.index, 1) for plane in planes))
        return m
