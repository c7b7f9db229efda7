"""Loads from memory, for all commands, all speeds of bus and scratchpad, and an abort at any time."""

import pytest
from amaranth.hdl import Assert, Assume, Module, Signal

from hw.contract.params import preset
from hw.dma.units import Ld2Unit
from tests.formal.harness import prove, prove_for_ever, specification
from tests.formal.test_memory_port import legal_burst

PARAMS = preset("tiny").replace(axi_burst_beats=4, axi_outstanding=2)
_MOST = 7  #: bursts that are counted
_SOON = 10  #: cycles from power-on in which what is wrong shows, the latest in its eighth


def load_claims(dut: Ld2Unit) -> tuple[Module, list[Signal]]:
    """What the unit keeps to. The memory answers nothing that was not asked for, in any number of beats."""
    m = specification()
    m.submodules.dut = dut
    unit, req, answer, landing = dut.unit, dut.src.req, dut.src.data, dut.dst.req
    inputs: list[Signal] = []

    def free(wire, name: str) -> None:
        anything = Signal(len(wire), name=name)
        m.d.comb += wire.eq(anything)
        inputs.append(anything)

    for wire, name in (
        (unit.cmd.valid, "come"), (unit.cmd.payload.as_value(), "command"), (req.ready, "granted"),
        (answer.valid, "answered"), (answer.payload.as_value(), "beat"), (landing.ready, "free"),
    ):  # fmt: skip
        free(wire, name)
    abort, aborted = Signal(), Signal()
    inputs.append(abort)
    m.d.comb += unit.abort.eq(abort | aborted)
    m.d.sync += aborted.eq(abort | aborted)

    asked, came = Signal(), Signal()
    open_bursts = Signal(range(_MOST + 1))  # granted, and not answered to their last beat
    m.d.comb += [
        asked.eq(req.valid & req.ready),
        came.eq(answer.valid & answer.ready & answer.p.last),
        Assume(~answer.valid | (open_bursts != 0)),
    ]
    m.d.sync += open_bursts.eq(open_bursts + asked - came)

    # Bursts: legal ones, held until they are taken, and no more than the unit may have in flight.
    waits, before = Signal(), Signal.like(req.payload.as_value())
    m.d.sync += [waits.eq(req.valid & ~req.ready), before.eq(req.payload.as_value())]
    m.d.comb += [
        Assert(~req.valid | legal_burst(req.p, PARAMS.axi_burst_beats)),
        Assert(~waits | (req.valid & (req.payload.as_value() == before))),
        Assert(open_bursts + req.valid <= PARAMS.axi_outstanding),
    ]

    # An abort: nothing more is asked for, all that comes is taken at once, and no further word of it is written.
    landing_waits, stopped = Signal(), Signal()
    m.d.sync += [landing_waits.eq(landing.valid & ~landing.ready), stopped.eq(unit.abort)]
    m.d.comb += [
        Assert(~(stopped & req.valid) | waits),
        Assert(~unit.abort | answer.ready),
        Assert(~(stopped & landing.valid) | landing_waits),
        Assert(~(stopped & unit.done)),
    ]

    # A unit that is not busy has nothing under way: after a reset, no word of an old burst can come.
    m.d.comb += Assert(unit.busy | ((open_bursts == 0) & ~req.valid & ~landing.valid))
    return m, inputs


@pytest.mark.formal
def test_no_word_of_an_abandoned_load_is_written_soon(tmp_path):
    m, inputs = load_claims(Ld2Unit(PARAMS))
    prove(m, inputs, tmp_path, depth=_SOON, induction=False)


@pytest.mark.slow
@pytest.mark.formal
def test_no_word_of_an_abandoned_load_is_written_for_ever(tmp_path):
    m, inputs = load_claims(Ld2Unit(PARAMS))
    prove_for_ever(m, inputs, tmp_path)


class Heedless(Ld2Unit):
    """One signal of the unit is wrong."""

    def __init__(self, wrong: str) -> None:
        super().__init__(PARAMS)
        self.wrong = wrong

    def elaborate(self, platform) -> Module:
        m = super().elaborate(platform)
        parts = m.submodules
        changes = {
            "words are written after an abort": parts.realign.discard.eq(0),
            "bursts are asked for after an abort": parts.source.stop.eq(0),
            "idle while a burst is under way": self.unit.busy.eq(parts.planner.busy),
        }
        m.d.comb += changes[self.wrong]
        return m


WRONG = (
    "words are written after an abort",
    "bursts are asked for after an abort",
    "idle while a burst is under way",
)


@pytest.mark.formal
@pytest.mark.parametrize("wrong", WRONG)
def test_a_unit_that_does_not_heed_an_abort_is_caught(tmp_path, wrong):
    m, inputs = load_claims(Heedless(wrong))
    with pytest.raises(AssertionError, match="Assert failed"):
        prove(m, inputs, tmp_path, depth=_SOON, induction=False)


@pytest.mark.slow
@pytest.mark.formal
@pytest.mark.parametrize("wrong", WRONG)
def test_such_a_unit_is_not_proved_either(tmp_path, wrong):
    m, inputs = load_claims(Heedless(wrong))
    with pytest.raises(AssertionError, match="Assert failed"):
        prove_for_ever(m, inputs, tmp_path)
