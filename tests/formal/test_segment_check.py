"""The check of every copy: no run that passes it has a byte beyond its segment, whatever its address does."""

import pytest
from amaranth.hdl import Assert, Assume, Module, Signal

from hw.dma.layouts import LEN
from hw.dma.planner import _beyond
from hw.interfaces import ADDR
from tests.formal.harness import prove, specification


def claims(beyond) -> tuple[Module, list[Signal]]:
    """Of any byte of any run: it is below the limit, or the run is refused; and the culprit that is named is not."""
    m = specification()
    first, limit, size, number = Signal(ADDR + 1), Signal(ADDR), Signal(LEN), Signal(LEN)
    base, before, end, byte = Signal(ADDR), Signal(LEN), Signal(ADDR + 1), Signal(ADDR)
    # It may begin so far behind its base that all of it lies around the end of the address space.
    m.d.comb += [
        Assume(before <= number),
        Assume(number < size),
        first.eq(base + before),
        end.eq(base + size),
        byte.eq(base + number),
    ]
    refused, culprit = beyond(m, "run", first, end, limit)
    m.d.comb += [Assert(refused | (byte < limit)), Assert(~refused | (culprit >= limit))]
    # Nothing is refused of which every byte is below the limit.
    straight = end[ADDR] == first[ADDR]
    m.d.comb += Assert(~refused | ~(straight & (end[:ADDR] <= limit)))
    return m, [base, before, limit, size, number]


@pytest.mark.formal
def test_no_byte_beyond_a_limit_passes(tmp_path):
    m, inputs = claims(_beyond)
    prove(m, inputs, tmp_path, depth=2, induction=True)


@pytest.mark.formal
def test_a_check_that_forgets_addresses_that_go_around_is_caught(tmp_path):
    m, inputs = claims(lambda m, name, first, end, limit: (end[:ADDR] > limit, limit))
    with pytest.raises(AssertionError, match="Assert failed"):
        prove(m, inputs, tmp_path, depth=2, induction=False)
