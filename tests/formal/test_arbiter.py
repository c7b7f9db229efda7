import pytest
from amaranth.hdl import Assert, Assume, Signal

from hw.axi.arbiter import RoundRobin
from tests.formal.harness import prove, specification

COUNT = 4


@pytest.mark.formal
def test_round_robin_grants_one_request_and_starves_nobody(tmp_path):
    m = specification()
    m.submodules.dut = dut = RoundRobin(COUNT)
    requests, taken, client = Signal(COUNT), Signal(), Signal(range(COUNT))
    m.d.comb += [dut.requests.eq(requests), dut.taken.eq(taken)]
    grant = dut.grant
    m.d.comb += [
        Assert((grant & ~requests) == 0),
        Assert((grant & (grant - 1)) == 0),
        Assert(grant.any() == requests.any()),
    ]

    # Any one client that keeps asking: others are served before it at most COUNT - 1 times.
    passed_over, same = Signal(range(COUNT + 1)), Signal(range(COUNT))
    asked, started = Signal(), Signal()
    mine = grant.bit_select(client, 1)
    asking = requests.bit_select(client, 1)
    m.d.sync += [same.eq(client), started.eq(1), asked.eq(asking & ~(taken & mine))]
    m.d.comb += [Assume(~started | (client == same)), Assume(~asked | asking)]
    with m.If(~asking | (taken & mine)):
        m.d.sync += passed_over.eq(0)
    with m.Elif(taken & grant.any()):
        m.d.sync += passed_over.eq(passed_over + 1)
    m.d.comb += Assert(passed_over < COUNT)
    prove(m, [requests, taken, client], tmp_path, depth=12, induction=False)


@pytest.mark.formal
def test_round_robin_grant_is_one_hot_for_ever(tmp_path):
    m = specification()
    m.submodules.dut = dut = RoundRobin(COUNT)
    requests, taken = Signal(COUNT), Signal()
    m.d.comb += [dut.requests.eq(requests), dut.taken.eq(taken)]
    m.d.comb += [
        Assert((dut.grant & ~requests) == 0),
        Assert((dut.grant & (dut.grant - 1)) == 0),
        Assert(dut.grant.any() == requests.any()),
    ]
    prove(m, [requests, taken], tmp_path, depth=4, induction=True)
