"""That something happens: within so many cycles, if the surroundings do their part in every cycle."""

import pytest
from amaranth.hdl import Assert, Assume, Const, Module, Signal

from hw.axi.interconnect import AxiInterconnect
from hw.contract.isa import Unit
from hw.contract.timing import UNIT_IN_FLIGHT
from hw.control.unit_queue import UnitQueue
from tests.formal.harness import prove_for_ever, specification
from tests.formal.test_memory_port import CLIENTS, PARAMS, Writer, legal_burst, offer

READ_TURNS = CLIENTS  #: cycles until the request of a reader is taken: each other may be first
#: Until that of a writer is: behind the bursts of two that were chosen before.
WRITE_TURNS = 3 * PARAMS.axi_burst_beats + CLIENTS
ISSUED = 6  #: cycles until a command that has its semaphores is offered to a unit that is free


def waits_less_than(m: Module, waiting, most: int, name: str) -> None:
    """``waiting`` is never true for ``most`` cycles in a row and one more."""
    count = Signal(range(most + 1), name=name)
    with m.If(~waiting):
        m.d.sync += count.eq(0)
    with m.Elif(count != most):
        m.d.sync += count.eq(count + 1)
    m.d.comb += Assert(~(waiting & (count == most)))


def port_progress(dut: AxiInterconnect, *, writes: bool, turns: int) -> tuple[Module, list[Signal]]:
    """Any client's request is taken soon by a port whose slave is ready; writers have their data at hand."""
    m = specification()
    m.submodules.dut = dut
    inputs: list[Signal] = []
    m.d.comb += [dut.axi.arready.eq(1), dut.axi.awready.eq(1), dut.axi.wready.eq(1)]
    for i in range(CLIENTS):
        if writes:
            Writer(m, dut.write[i], inputs)
            m.d.comb += Assume(inputs[-2])  # it goes
        else:
            offer(m, dut.read[i].req, inputs)
            m.d.comb += Assume(~dut.read[i].req.valid | legal_burst(dut.read[i].req.p, PARAMS.axi_burst_beats))
        req = dut.write[i].req if writes else dut.read[i].req
        waits_less_than(m, req.valid & ~req.ready, turns, f"waited{i}")
    return m, inputs


@pytest.mark.formal
@pytest.mark.parametrize(("writes", "turns"), [(False, READ_TURNS), (True, WRITE_TURNS)])
def test_every_request_is_taken_by_a_port_whose_slave_is_ready_for_ever(tmp_path, writes, turns):
    dut = AxiInterconnect(PARAMS, readers=CLIENTS, writers=CLIENTS)
    m, inputs = port_progress(dut, writes=writes, turns=turns)
    prove_for_ever(m, inputs, tmp_path)


class Unfair(AxiInterconnect):
    """The first client comes first, always."""

    def elaborate(self, platform) -> Module:
        m = super().elaborate(platform)
        for channel in ("ar", "aw"):
            arbiter = getattr(m.submodules, f"{channel}_arbiter")
            m.d.comb += arbiter.taken.eq(0)
        return m


@pytest.mark.formal
@pytest.mark.parametrize(("writes", "turns"), [(False, READ_TURNS), (True, WRITE_TURNS)])
def test_a_port_that_starves_a_client_is_caught(tmp_path, writes, turns):
    m, inputs = port_progress(Unfair(PARAMS, readers=CLIENTS, writers=CLIENTS), writes=writes, turns=turns)
    with pytest.raises(AssertionError, match="Assert failed"):
        prove_for_ever(m, inputs, tmp_path)


def queue_progress(most: int) -> tuple[Module, list[Signal]]:
    """A queue with a command offers it, if semaphores are granted when they are asked for, the unit takes what is
    offered, and what it has taken is done before it is full."""
    m = specification()
    m.submodules.dut = dut = UnitQueue(PARAMS, Unit.LD1)
    come, command, done = Signal(), Signal.like(dut.push.payload.as_value()), Signal()
    inside, flying = Signal(range(PARAMS.unit_queue_depth + 3)), Signal(range(UNIT_IN_FLIGHT + 1))
    pushed, taken = dut.push.valid & dut.push.ready, dut.cmd.valid & dut.cmd.ready
    m.d.comb += [
        dut.push.valid.eq(come), dut.push.payload.as_value().eq(command), dut.cmd.ready.eq(1), dut.done.eq(done),
        dut.halt.eq(Const(0)), Assume(~done | (flying != 0)), Assume(done | (flying < 2)),
    ]  # fmt: skip
    m.d.sync += [
        dut.grant.eq(dut.request & ~dut.grant),
        inside.eq(inside + pushed - taken),
        flying.eq(flying + taken - done),
    ]
    waits_less_than(m, (inside != 0) & ~dut.cmd.valid, most, "waited")
    return m, [come, command, done]


@pytest.mark.formal
def test_a_queue_with_a_command_issues_it_for_ever(tmp_path):
    m, inputs = queue_progress(ISSUED)
    prove_for_ever(m, inputs, tmp_path)


@pytest.mark.formal
def test_a_queue_is_not_faster_than_it_can_be(tmp_path):
    m, inputs = queue_progress(1)
    with pytest.raises(AssertionError, match="Assert failed"):
        prove_for_ever(m, inputs, tmp_path)
