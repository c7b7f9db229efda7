import pytest
from amaranth.hdl import Assert, Assume, Module, Signal

from hw.axi.arbiter import RoundRobinArbiter
from tests.formal.harness import prove, specification

COUNT = 4


def fairness(dut: RoundRobinArbiter) -> tuple[Module, list[Signal]]:
    """Any one client that keeps asking is passed over by each other client at most once.

    What carries the induction: the *distance* of a client is the number of others that come before it in the current
    order of priority, and every turn that goes to another while it waits brings it closer.
    """
    m = specification()
    m.submodules.dut = dut
    requests, taken, client = Signal(COUNT), Signal(), Signal(range(COUNT))
    grant = dut.grant
    mine, asking = grant.bit_select(client, 1), requests.bit_select(client, 1)
    same, started, waiting = Signal(range(COUNT)), Signal(), Signal()
    m.d.comb += [dut.requests.eq(requests), dut.taken.eq(taken)]
    m.d.comb += [Assume(~started | (client == same)), Assume(~waiting | asking)]
    m.d.sync += [same.eq(client), started.eq(1), waiting.eq(asking & ~(taken & mine))]

    last, distance = Signal(range(COUNT), init=COUNT - 1), Signal(range(COUNT))  # last: whose turn it was
    m.d.comb += distance.eq((client - last - 1) % COUNT)
    for number in range(COUNT):
        with m.If(taken & grant[number]):
            m.d.sync += last.eq(number)
    m.d.comb += Assert(dut._behind == ((~1 << last) & (2**COUNT - 1)))

    before, passed_over = Signal(range(COUNT)), Signal(range(COUNT + 1))
    turn = Signal()  # the previous cycle gave a turn to another client while this one waited
    m.d.sync += [before.eq(distance), turn.eq(taken & asking & ~mine)]
    m.d.comb += [Assert(~turn | (distance < before)), Assert(passed_over < COUNT)]
    with m.If(~asking | (taken & mine)):
        m.d.sync += passed_over.eq(0)
    with m.Elif(taken):
        m.d.sync += passed_over.eq(passed_over + 1)
    m.d.comb += Assert(passed_over + distance < COUNT)
    return m, [requests, taken, client]


@pytest.mark.formal
def test_round_robin_starves_nobody_for_ever(tmp_path):
    m, inputs = fairness(RoundRobinArbiter(COUNT))
    prove(m, inputs, tmp_path, depth=8, induction=True)


class FixedPriority(RoundRobinArbiter):
    """Forgets whose turn it was."""

    def elaborate(self, platform) -> Module:
        m = super().elaborate(platform)
        m.d.sync += self._behind.eq(0)
        return m


@pytest.mark.formal
def test_an_unfair_arbiter_is_caught(tmp_path):
    m, inputs = fairness(FixedPriority(COUNT))
    with pytest.raises(AssertionError, match="Assert failed"):
        prove(m, inputs, tmp_path, depth=8, induction=False)


@pytest.mark.formal
def test_round_robin_grant_is_one_hot_for_ever(tmp_path):
    m = specification()
    m.submodules.dut = dut = RoundRobinArbiter(COUNT)
    requests, taken = Signal(COUNT), Signal()
    m.d.comb += [dut.requests.eq(requests), dut.taken.eq(taken)]
    m.d.comb += [
        Assert((dut.grant & ~requests) == 0),
        Assert((dut.grant & (dut.grant - 1)) == 0),
        Assert(dut.grant.any() == requests.any()),
    ]
    prove(m, [requests, taken], tmp_path, depth=4, induction=True)
