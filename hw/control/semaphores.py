"""Defines the counting semaphores of one engine."""

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.axi.arbiter import RoundRobinArbiter
from hw.contract.job import SEMAPHORE_CLASSES, SEMAPHORES
from hw.contract.params import SocParams
from hw.control.signatures import SEMAPHORE_GROUP, SemaphoreSetup

Planes = list[Value]  #: a vector of numbers as bit planes: element b holds bit b of every number


class _Words:
    """Computes on words of one bit per semaphore. Each result that is used twice is a signal: Amaranth copies a shared
    expression to every place that uses it."""

    def __init__(self, m: Module, width: int) -> None:
        self._m, self._width = m, width

    def named(self, value: Value, name: str) -> Signal:
        """Return a signal that carries ``value``."""
        signal = Signal(self._width, name=name)
        self._m.d.comb += signal.eq(value)
        return signal

    def add(self, x: Value, y: Value, carry: Value | None, name: str) -> tuple[Value, Value]:
        """Return the sum and carry of two or three bits in each position."""
        if carry is None:
            return x ^ y, x & y
        half = self.named(x ^ y, f"{name}_half")
        return half ^ carry, (x & y) | (half & carry)

    def population(self, masks: list[Value], planes: int) -> Planes:
        """Return how many of ``masks`` are set at each position: a tree of full adders."""
        total: Planes = []
        column = list(masks)
        for b in range(planes):
            carries: list[Value] = []
            while len(column) > 1:
                x, y, *rest = column[:3]
                name = f"signals{b}_{len(carries)}"
                bit, carry = self.add(x, y, rest[0] if rest else None, name)
                column = [*column[3:], self.named(bit, name)]
                carries.append(self.named(carry, f"{name}_carry"))
            total += column or [Const(0, self._width)]
            column = carries
        return total

    def lower_zeros(self, a: Planes) -> Planes:
        """Return for each bit whether all below it are zero: those that change where one is subtracted."""
        result: Planes = [Const(-1, self._width)]
        for b, x in enumerate(a[:-1]):
            result.append(self.named(~x & result[-1], f"zeros_below{b + 1}"))
        return result

    def sum(self, a: Planes, b: Planes) -> tuple[Planes, Value]:
        """Return the element-wise sum of two vectors with equally many planes, and the carries out."""
        total: Planes = []
        carry: Value | None = None
        for k, (x, y) in enumerate(zip(a, b, strict=True)):
            bit, out = self.add(x, y, carry, f"total{k}")
            total.append(self.named(bit, f"total{k}"))
            carry = self.named(out, f"carry{k}")
        assert carry is not None
        return total, carry


def _above(a: Planes, limit: int) -> Value:
    """Return the positions where the number is larger than the constant ``limit``."""
    greater: Value | None = None
    for b, plane in enumerate(a):
        if limit >> b & 1:
            greater = None if greater is None else plane & greater
        else:
            greater = plane if greater is None else plane | greater
    return Const(0) if greater is None else greater


class SemaphoreFile(wiring.Component):
    """Keeps counters with all-or-nothing waits and simultaneous signals.

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
    setup : In(SemaphoreSetup)
        Counters that are loaded must be zero, and nothing waits or signals then.
    overflow : Out(semaphores)
        Counters that this cycle's signals take above ``params.semaphore_max``: counts mean nothing until all are
        cleared. That ends the job, and no path is the longer for what becomes of them.
    index, count : In(5), Out(8)
        Register read of one counter; zero above ``params.semaphores``.
    """

    def __init__(self, params: SocParams, units: int) -> None:
        self.params, self.units = params, units
        n = params.semaphores
        # State, here rather than in elaborate() so that a proof can relate one to the other.
        self._planes = [Signal(n, name=f"plane{b}") for b in range(params.semaphore_max.bit_length())]
        self._nonzero = Signal(n)  #: which counters are above zero
        super().__init__(
            {
                "wait": In(n).array(units),
                "request": In(units),
                "grant": Out(units),
                "missing": Out(SEMAPHORE_CLASSES).array(units),
                "signal": In(n).array(units),
                "setup": In(SemaphoreSetup(params)),
                "overflow": Out(n),
                "index": In(5),
                "count": Out(8),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        n = self.params.semaphores
        planes, nonzero = self._planes, self._nonzero
        width = len(planes)

        # Who may go.
        m.d.comb += self.setup.nonzero.eq(nonzero)
        m.submodules.arbiter = arbiter = RoundRobinArbiter(self.units)
        lacking = [Signal(n, name=f"lacking{u}") for u in range(self.units)]
        for u in range(self.units):
            m.d.comb += lacking[u].eq(self.wait[u] & ~nonzero)
            with m.If(self.request[u]):
                groups = (lacking[u][g : g + SEMAPHORE_CLASSES] for g in range(0, n, SEMAPHORE_CLASSES))
                m.d.comb += self.missing[u].eq(reduce(or_, groups))
        m.d.comb += [
            arbiter.requests.eq(Cat(self.request[u] & ~lacking[u].any() for u in range(self.units))),
            arbiter.taken.eq(1),
            self.grant.eq(arbiter.grant),
        ]
        taken = Signal(n)
        for u in range(self.units):
            with m.If(self.grant[u]):
                m.d.comb += taken.eq(self.wait[u])

        # What becomes of each counter is worked out both ways, as who may go is known last: it only chooses. A counter
        # that is taken from is above zero.
        words = _Words(m, n)
        signals = words.population(list(self.signal), self.units.bit_length())
        highest = max(width, len(signals))
        wide = [[*some, *[Const(0, n)] * (highest - len(some))] for some in (planes, signals)]
        total, carry = words.sum(*wide)
        total = [*total, carry]
        most = self.params.semaphore_max
        too_many = words.named(_above(total, most), "too_many")
        too_many_less = words.named(_above(total, most + 1), "too_many_less")
        more = words.named(reduce(or_, total[1:]), "more")  # two or more
        some = words.named(total[0] | more, "some")
        m.d.comb += self.overflow.eq((taken & too_many_less) | (~taken & too_many))
        for plane, kept, lower in zip(planes, total, words.lower_zeros(total), strict=False):
            m.d.sync += plane.eq(Mux(self.setup.clear, 0, kept ^ (lower & taken)))
        m.d.sync += nonzero.eq(Mux(self.setup.clear, 0, (taken & more) | (~taken & some)))
        group = Signal(SEMAPHORES)
        m.d.comb += group.word_select(self.setup.group, SEMAPHORE_GROUP).eq(~0)
        loaded = [Cat(self.setup.counts[b::8]).replicate(SEMAPHORES // SEMAPHORE_GROUP) for b in range(width)]
        with m.If(self.setup.load):
            for word, of_group in zip([*planes, nonzero], [*loaded, reduce(or_, loaded)], strict=True):
                m.d.sync += word.eq(word | (of_group & group)[:n])

        m.d.comb += self.count.eq(Cat(plane.bit_select(self.index, 1) for plane in planes))
        return m
