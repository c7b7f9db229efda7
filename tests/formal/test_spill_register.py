import pytest
from amaranth.hdl import Assert, Module, Mux, Signal

from hw.spill_register import SpillRegister
from tests.formal.harness import prove, specification

WIDTH = 2


def claims(dut: SpillRegister) -> tuple[Module, list[Signal]]:
    """What a spill register is: returns the specification and its inputs."""
    m = specification()
    m.submodules.dut = dut
    valid, ready, payload, clear = Signal(), Signal(), Signal(WIDTH), Signal()
    m.d.comb += [dut.i.valid.eq(valid), dut.i.payload.eq(payload), dut.o.ready.eq(ready), dut.clear.eq(clear)]
    push, take = dut.i.valid & dut.i.ready, dut.o.valid & dut.o.ready

    # An entry is there in the cycle in which it comes, and until it is taken or dropped, whatever comes behind it.
    waits, waiting = Signal(), Signal(WIDTH)
    m.d.sync += waits.eq((waits | push) & ~take & ~clear)
    with m.If(~waits):
        m.d.sync += waiting.eq(payload)
    m.d.comb += [
        Assert(dut.kept == waits),
        Assert(dut.o.valid == (waits | valid)),
        Assert(~dut.o.valid | (dut.o.payload == Mux(waits, waiting, payload))),
    ]

    # Whether more may come was known a cycle before: it is so exactly if nothing waits.
    m.d.comb += Assert(dut.i.ready == ~waits)
    return m, [valid, ready, payload, clear]


@pytest.mark.formal
def test_spill_keeps_what_is_not_taken_and_no_more(tmp_path):
    m, inputs = claims(SpillRegister(WIDTH))
    prove(m, inputs, tmp_path, depth=3, induction=True)


class Forgetful(SpillRegister):
    """Forgets what it keeps when nothing comes behind it."""

    def elaborate(self, platform) -> Module:
        m = super().elaborate(platform)
        m.d.sync += self.kept.eq(self.i.valid & ~self.o.ready & ~self.clear)
        return m


@pytest.mark.formal
def test_one_that_forgets_is_caught(tmp_path):
    m, inputs = claims(Forgetful(WIDTH))
    with pytest.raises(AssertionError, match="Assert failed"):
        prove(m, inputs, tmp_path, depth=4, induction=False)
