"""The banked scratchpad: no row is read while it is written, and nobody waits for ever."""

import pytest
from amaranth.hdl import Assert, Assume, Const, Module, Signal

from hw.scratchpad import Scratchpad
from tests.formal.harness import prove_for_ever, specification

READERS, WRITERS = 3, 2
BANKS, ROWS = 2, 2


class TinyScratchpad(Scratchpad):
    """Has four words of a byte."""

    def __init__(self) -> None:
        super().__init__(BANKS * ROWS, 1, BANKS, READERS, WRITERS)


def claims(dut: Scratchpad) -> tuple[Module, list[Signal]]:
    """What readers and writers may rely on, if their requests stay until they are taken."""
    m = specification()
    m.submodules.dut = dut
    inputs = []
    for side, ports, most in (("read", dut.read, 2 * READERS), ("write", dut.write, 3 * WRITERS)):
        for c, port in enumerate(ports):
            request = port.req
            valid = Signal(name=f"{side}{c}_valid")
            addr = Signal(dut.addr_width, name=f"{side}{c}_addr")
            asked, same = Signal(name=f"{side}{c}_asked"), Signal.like(addr, name=f"{side}{c}_same")
            waited = Signal(range(most + 1), name=f"{side}{c}_waited")
            m.d.comb += [
                request.valid.eq(valid),
                (request.payload.addr if side == "write" else request.payload).eq(addr),
                Assume(~asked | valid & (addr == same)),
                Assert(waited < most),
            ]
            if side == "write":
                m.d.comb += request.payload.en.eq(1)
            m.d.sync += [asked.eq(valid & ~request.ready), same.eq(addr), waited.eq(0)]
            with m.If(valid & ~request.ready):
                m.d.sync += waited.eq(waited + 1)
            inputs += [valid, addr]
    for read in dut.read:
        for write in dut.write:
            meet = (read.req.payload == write.req.payload.addr) & read.req.ready & write.req.ready
            m.d.comb += Assert(~(read.req.valid & write.req.valid & meet))
    return m, inputs


@pytest.mark.formal
def test_no_row_is_read_while_it_is_written_and_nobody_starves(tmp_path):
    m, inputs = claims(TinyScratchpad())
    prove_for_ever(m, inputs, tmp_path)


class Careless(TinyScratchpad):
    """Writes what is being read."""

    def _collisions(self, reads, writes):
        return Const(0, len(writes))


class Starving(TinyScratchpad):
    """Never makes readers wait."""

    def elaborate(self, platform) -> Module:
        m = super().elaborate(platform)
        m.d.sync += self._pause.eq(0)
        return m


class Blind(TinyScratchpad):
    """Overlooks the last reader."""

    def _collisions(self, reads, writes):
        return super()._collisions(reads[:-1], writes)


@pytest.mark.formal
@pytest.mark.parametrize("wrong", [Careless, Starving, Blind])
def test_a_wrong_scratchpad_is_caught(tmp_path, wrong):
    m, inputs = claims(wrong())
    with pytest.raises(AssertionError, match="Assert failed"):
        prove_for_ever(m, inputs, tmp_path)
