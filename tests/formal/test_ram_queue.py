import pytest
from amaranth.hdl import Assert, Cat, Module, Mux, Signal

from hw.control.unit_queue import RamQueue
from tests.formal.harness import prove, specification

WIDTH = 3


class OpenQueue(RamQueue):
    """A queue one row of whose RAM can be seen: row ``spy`` holds ``seen``."""

    def __init__(self, depth: int, slow: slice = slice(0, 0)) -> None:
        super().__init__(WIDTH, depth, slow)
        self.spy, self.seen = Signal(range(depth)), Signal(WIDTH)

    def elaborate(self, platform) -> Module:
        m = super().elaborate(platform)
        if not len(self.spy):
            m.d.comb += self.seen.eq(self._row)
            return m
        first, last = self._slow.start, self._slow.stop
        parts = {"ram": Cat(self.seen[:first], self.seen[last:]), "block": self.seen[first:last]}
        for name, part in parts.items():
            if len(part):
                port = getattr(m.submodules, name).read_port(domain="comb")
                m.d.comb += [port.addr.eq(self.spy), part.eq(port.data)]
        return m


def claims(dut: OpenQueue) -> tuple[Module, list[Signal], Signal, Signal]:
    """What a queue is, for any one entry that enters it: returns the specification, its inputs, and, of the entry
    that is watched, whether there is one and how many entries are ahead of it."""
    m = specification()
    m.submodules.dut = dut
    depth = 1 << len(dut.spy)
    valid, ready, payload, watch = Signal(), Signal(), Signal(WIDTH), Signal()
    push, take = dut.i.valid & dut.i.ready, dut.o.valid & dut.o.ready
    m.d.comb += [dut.i.valid.eq(valid), dut.o.ready.eq(ready), dut.i.payload.eq(payload)]

    # Nothing is lost or made up: as many entries as went in and have not come out.
    held = Signal(range(depth + 2))
    m.d.sync += held.eq(held + push - take)
    m.d.comb += [
        Assert(dut._level + dut.o.valid == held),
        Assert(dut.empty == (held == 0)),
        Assert(dut._level <= depth),
        Assert(dut._next == (dut._oldest + dut._level)[: len(dut._next)]),
    ]

    # Order: an entry leaves after exactly those that were there when it came, with the value it had.
    watching, value, ahead = Signal(), Signal(WIDTH), Signal(range(depth + 2))
    with m.If(watching):
        with m.If(take):
            m.d.sync += [ahead.eq(ahead - 1), watching.eq(ahead != 0)]
    with m.Elif(watch & push):
        m.d.sync += [watching.eq(1), value.eq(payload), ahead.eq(held - take)]
    at_head = dut.o.valid & (ahead == 0)
    m.d.comb += dut.spy.eq(dut._oldest + ahead - dut.o.valid)
    with m.If(watching):
        m.d.comb += [Assert(ahead < held), Assert(Mux(at_head, dut.o.payload, dut.seen) == value)]

    # It gets there: the head is missing for at most one cycle after the RAM has something.
    missing = Signal()
    m.d.sync += missing.eq(~dut.o.valid & (dut._level != 0))
    m.d.comb += Assert(~missing | dut.o.valid)
    return m, [valid, ready, payload, watch], watching, ahead


@pytest.mark.formal
@pytest.mark.parametrize(("depth", "slow"), [(1, (0, 0)), (2, (0, 0)), (4, (0, 0)), (2, (1, 2))])
def test_queue_keeps_order_and_neither_loses_nor_duplicates(tmp_path, depth, slow):
    m, inputs, _, _ = claims(OpenQueue(depth, slice(*slow)))
    prove(m, inputs, tmp_path, depth=5, induction=True)


@pytest.mark.formal
def test_claims_are_not_empty(tmp_path):
    """An entry with others ahead of it does get watched, and reaches the head."""
    m, inputs, watching, ahead = claims(OpenQueue(2))
    second = Signal()
    with m.If(watching & (ahead == 1)):
        m.d.sync += second.eq(1)
    m.d.comb += Assert(~(watching & (ahead == 0) & second))
    with pytest.raises(AssertionError, match="Assert failed"):
        prove(m, inputs, tmp_path, depth=8, induction=False)


class Overtaking(OpenQueue):
    """Hands over the same row again once its RAM holds two entries."""

    def elaborate(self, platform) -> Module:
        m = super().elaborate(platform)
        with m.If(self._level == 2):
            m.d.sync += self._oldest.eq(self._oldest)
        return m


@pytest.mark.formal
def test_a_wrong_queue_is_caught(tmp_path):
    m, inputs, _, _ = claims(Overtaking(2))
    with pytest.raises(AssertionError, match="Assert failed"):
        prove(m, inputs, tmp_path, depth=8, induction=False)
