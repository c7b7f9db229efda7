"""A SoC of random logic: what it does makes no sense, and every simulator must agree on it."""

import random

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hw.contract.params import SocParams
from hw.interfaces import AXI_ID_WIDTH, Axi4, Axi4Lite

REGISTERS = 60
WIDTHS = (1, 1, 2, 3, 7, 8, 9, 16, 17, 31, 32, 33, 48, 63, 64, 65, 100, 130)
DEPTHS = (1, 2, 7, 8, 15, 31)


class RandomSoc(wiring.Component):
    """``REGISTERS`` registers named ``r<n>`` in the module ``soc``, combinational signals and memories between them.

    Three noise registers that are never the same twice feed it; some registers hold for long.
    """

    def __init__(self, params: SocParams, seed: int) -> None:
        self._rng = random.Random(seed)
        super().__init__(
            {
                "axil": In(Axi4Lite()),
                "axi": Out(Axi4(data_bytes=params.dram_word, id_width=AXI_ID_WIDTH)),
                "irq": Out(1),
            }
        )
        rng = self._rng
        self.registers = []
        for n in range(REGISTERS):
            width = rng.choice(WIDTHS)
            shape = signed(width) if rng.random() < 0.3 else width
            self.registers.append(Signal(shape, name=f"r{n}", init=rng.getrandbits(width - 1) if width > 1 else 0))
        self.noise = [Signal(32, name=f"noise{i}", init=rng.getrandbits(32) | 1) for i in range(3)]

    def elaborate(self, platform) -> Module:
        m = Module()
        for state in self.noise:
            value: Value = state
            for shift in (13, -17, 5):
                value = (value ^ (value << shift if shift > 0 else value >> -shift))[:32]
            m.d.sync += state.eq(value)
        self._leaves: list[Value] = [*self.registers, *self.noise]
        for n in range(20):
            self._wire(m, n)
        for n in range(6):
            self._memory(m, n)
        for n, register in enumerate(self.registers):
            self._drive(m, m.d.sync, register, slow=n % 3 == 0)
        # Everything counts: what reaches no output would not be simulated.
        m.d.comb += self.irq.eq(Cat(register.xor() for register in self.registers).xor())
        return m

    def _wire(self, m: Module, n: int) -> None:
        wire = Signal(self._rng.choice(WIDTHS), name=f"wire{n}")
        self._drive(m, m.d.comb, wire, slow=False)
        self._leaves.append(wire)

    def _drive(self, m: Module, domain, target: Signal, *, slow: bool) -> None:
        """Assign in one of the forms that designs have: plain, with conditions, by parts, by cases."""
        rng = self._rng
        kind = rng.randrange(4)
        condition = self._leaf()[:16] == rng.randrange(4) if slow else self._value(1)[0]
        if kind == 0 and not slow:
            domain += target.eq(self._value(3))
        elif kind <= 1:
            with m.If(condition):
                domain += target.eq(self._value(3))
                with m.If(self._value(1)[0]):
                    domain += target.eq(self._value(2))
            with m.Elif(self._value(1)[0]):
                domain += target.eq(self._value(2))
        elif kind == 2:
            with m.If(condition):
                low = rng.randrange(len(target))
                domain += target[low : low + rng.randrange(1, 40)].eq(self._value(2))
            with m.If(self._value(1)[0]):
                domain += target[: rng.randrange(1, len(target) + 1)].eq(self._value(2))
        else:
            with m.Switch(Cat(self._leaf(), self._leaf(), self._leaf())[:3]):
                with m.Case(0, 5):
                    domain += target.eq(self._value(2))
                with m.Case("01-"):
                    domain += target.eq((target if domain is m.d.sync else self._leaf()) + 1)
                with m.Case(6):
                    with m.If(condition):
                        domain += target.eq(self._value(2))
                if not slow:
                    with m.Default():
                        domain += target.eq(self._value(2))

    def _memory(self, m: Module, n: int) -> None:
        rng = self._rng
        width, depth = rng.choice((4, 8, 24, 64, 72, 128, 136)), rng.choice(DEPTHS)
        init = [rng.getrandbits(width) for _ in range(rng.randrange(depth + 1))]
        m.submodules[f"memory{n}"] = memory = Memory(shape=width, depth=depth, init=init)
        granularity = 8 if width % 8 == 0 and rng.random() < 0.6 else None
        write = memory.write_port(granularity=granularity)
        m.d.comb += [write.addr.eq(self._value(1)), write.data.eq(self._value(2)), write.en.eq(self._value(1))]
        read = memory.read_port()
        m.d.comb += [read.addr.eq(self._value(1)), read.en.eq(self._value(1)[0])]
        self._leaves.append(read.data)
        if rng.random() < 0.5:
            look = memory.read_port(domain="comb")
            m.d.comb += look.addr.eq(self._leaf())
            self._leaves.append(look.data)

    # -- expressions -----------------------------------------------------------------------------------------
    def _leaf(self) -> Value:
        leaf = self._rng.choice(self._leaves)
        if len(leaf) > 4 and self._rng.random() < 0.4:
            low = self._rng.randrange(len(leaf))
            leaf = leaf[low : low + self._rng.randrange(1, 40)]
        return leaf

    def _narrow(self, depth: int, limit: int = 30) -> Value:
        """At most ``limit`` bits, with or without sign."""
        value = self._value(depth)
        value = value[:limit] if len(value) > limit else value
        return value.as_signed() if self._rng.random() < 0.3 else value

    def _value(self, depth: int) -> Value:
        """A random expression of at least one bit."""
        rng = self._rng
        if depth == 0 or rng.random() < 0.1:
            if rng.random() < 0.15:
                return Const(rng.getrandbits(rng.choice((1, 5, 40))))
            return self._leaf()
        a, b = self._value(depth - 1), self._value(depth - 1)
        x, y = self._narrow(depth - 1), self._narrow(depth - 1)
        return rng.choice((
            lambda: a & b, lambda: a | b, lambda: a ^ b, lambda: ~a,
            lambda: x + y, lambda: x - y, lambda: x * y, lambda: -x,
            lambda: a + b, lambda: a - b, lambda: a < b, lambda: a >= b, lambda: -a,
            lambda: x == y, lambda: a != b, lambda: x < y, lambda: x <= y, lambda: x > y, lambda: x >= y,
            lambda: x.as_unsigned() // y.as_unsigned(), lambda: x.as_unsigned() % y.as_unsigned(),
            lambda: x << y.as_unsigned()[:5], lambda: x >> y.as_unsigned()[:6],
            lambda: a.as_unsigned() >> y.as_unsigned()[:8],
            lambda: Mux(self._value(0), a, b), lambda: Cat(a, b), lambda: Cat(a[: len(a) // 2], b, a[len(a) // 2 :]),
            lambda: a.any(), lambda: a.all(), lambda: a.xor(), lambda: a.bool(),
            # Cat: Amaranth 0.5's simulator looks beyond the width of operators in parts.
            lambda: Cat(a).bit_select(y.as_unsigned()[:7], rng.randrange(1, 30)),
            lambda: Cat(a).word_select(y.as_unsigned()[:3], rng.choice((1, 4, 8, 16, 64, 80))),
            lambda: a[0].replicate(rng.randrange(1, 70)),
            lambda: x.as_unsigned().matches("--1", "10-") if len(x) == 3 else x,
            lambda: Mux(self._value(0), x, y),
        ))()  # fmt: skip
