"""Stores to memory, for all words that may come from the realigner, all speeds of the bus, and an abort at any time."""

import pytest
from amaranth.hdl import Assert, Assume, Cat, Module, Mux, Signal

from hw.contract.params import preset
from hw.dma.sink import BusSink
from tests.formal.harness import prove_for_ever, specification
from tests.formal.test_memory_port import legal_burst, offer

PARAMS = preset("tiny").replace(axi_burst_beats=4, axi_outstanding=2)
_WORDS = 15  #: words that are counted: more than the unit holds
_MOST = 3  #: bursts that are counted: announced, or with words that have not gone


def store_claims(dut: BusSink, *, late: bool) -> tuple[Module, list[Signal]]:
    """What the end of ST2 keeps to, whatever ``remaining`` and addresses say.

    The memory takes words of bursts that it was told of, and answers those of which it has all. ``late``: also
    what the words are that fill a burst up after an abort.
    """
    m = specification()
    m.submodules.dut = dut
    inputs: list[Signal] = []
    offer(m, dut.beat, inputs)
    req, words, rsp = dut.port.req, dut.port.data, dut.port.rsp
    discard, discarded = Signal(), Signal()
    takes, goes, answers, wrong = Signal(), Signal(), Signal(), Signal()
    inputs += [discard, takes, goes, answers, wrong]
    m.d.comb += [
        dut.discard.eq(discard | discarded), req.ready.eq(takes), words.ready.eq(goes), rsp.valid.eq(answers),
        rsp.payload.error.eq(wrong),
    ]  # fmt: skip
    m.d.sync += discarded.eq(dut.discard)

    # Bursts: legal ones, held until they are taken.
    waits, before = Signal(), Signal.like(req.payload.as_value())
    m.d.sync += [waits.eq(req.valid & ~req.ready), before.eq(req.payload.as_value())]
    m.d.comb += [
        Assert(~req.valid | legal_burst(req.p, PARAMS.axi_burst_beats)),
        Assert(~waits | (req.valid & (req.payload.as_value() == before))),
    ]

    # Words: each is of a burst that was announced no later, held until it is taken, and the last of a burst is marked.
    fresh, sent = Signal(), Signal()
    left = [Signal(range(PARAMS.axi_burst_beats + 1), name=f"left{i}") for i in range(_MOST)]
    known = [Signal.like(left[0], name=f"known{i}") for i in range(_MOST)]  # with the burst that is announced now
    m.d.comb += [fresh.eq(req.valid & ~waits), sent.eq(words.valid & words.ready)]
    taken = [burst != 0 for burst in left]
    for i in range(_MOST):
        here = ~taken[i] if not i else taken[i - 1] & ~taken[i]
        m.d.comb += known[i].eq(Mux(fresh & here, req.p.beats, left[i]))
    marks = Cat(words.p.last, words.p.strb)
    word_waits, word = Signal(), Signal.like(marks)
    m.d.sync += [word_waits.eq(words.valid & ~words.ready), word.eq(marks)]
    m.d.comb += [
        Assert(~fresh | ~taken[-1]),
        Assert(~words.valid | (known[0] != 0)),
        Assert(~words.valid | (words.p.last == (known[0] == 1))),
        Assert(~word_waits | (words.valid & (marks == word))),
    ]
    over = sent & (known[0] == 1)
    for i in range(_MOST):
        following = known[i + 1] if i + 1 < _MOST else 0
        first = known[0] - sent if not i else known[i]
        m.d.sync += left[i].eq(Mux(over, following, first))

    # The memory takes words of bursts that it was told of, and answers those of which it has all.
    granted, whole, unanswered = (Signal(range(PARAMS.axi_outstanding + 2), name=name) for name in "gwu")
    answered = rsp.valid & rsp.ready
    m.d.sync += [
        granted.eq(granted + (req.valid & req.ready) - over),
        whole.eq(whole + over - answered),
        unanswered.eq(unanswered + fresh - answered),
    ]
    m.d.comb += [
        Assume(~words.ready | (granted != 0)),
        Assume(~rsp.valid | (whole != 0)),
        Assert(unanswered + fresh <= PARAMS.axi_outstanding),
        Assert(~dut.done | answered),
        Assert(dut.busy | ((unanswered == 0) & ~req.valid & ~words.valid)),
    ]

    # After an abort nothing is announced any more, all that comes is taken, and nothing new is written.
    stopped = Signal()
    m.d.sync += stopped.eq(dut.discard)
    m.d.comb += [Assert(~(stopped & fresh)), Assert(~discarded | dut.beat.ready)]
    if late:
        inside = Signal(range(_WORDS + 1))  # words that came before the abort and have not gone
        came = dut.beat.valid & dut.beat.ready & ~dut.discard
        m.d.sync += inside.eq(inside + came - (sent & (inside != 0)))
        m.d.comb += Assert(~(words.valid & dut.discard & (inside == 0)) | (words.p.strb == 0))
    return m, inputs


@pytest.mark.slow
@pytest.mark.formal
def test_bursts_of_stores_are_legal_for_ever(tmp_path):
    m, inputs = store_claims(BusSink(PARAMS), late=False)
    prove_for_ever(m, inputs, tmp_path)


@pytest.mark.formal
@pytest.mark.slow
def test_what_fills_a_burst_up_after_an_abort_is_not_written_for_ever(tmp_path):
    m, inputs = store_claims(BusSink(PARAMS), late=True)
    prove_for_ever(m, inputs, tmp_path, seconds=600)


class Mutant(BusSink):
    """One line of the unit is wrong."""

    def __init__(self, wrong: str) -> None:
        super().__init__(PARAMS)
        self.wrong = wrong

    def elaborate(self, platform) -> Module:
        m = super().elaborate(platform)
        words, req = m.submodules.words, self.port.req
        match self.wrong:
            case "the last word is not marked":
                m.d.comb += words.i.payload.last.eq(0)
            case "a burst is withdrawn":
                m.d.sync += req.valid.eq(0)
            case "bursts go on behind their boundary":
                with m.If(~req.valid):
                    m.d.sync += req.payload.beats.eq(PARAMS.axi_burst_beats)
            case "what fills a burst up is written":
                m.d.comb += words.i.payload.strb.eq(~0)
        return m


@pytest.mark.formal
@pytest.mark.parametrize(
    "wrong",
    [
        "the last word is not marked",
        "a burst is withdrawn",
        "bursts go on behind their boundary",
        "what fills a burst up is written",
    ],
)
def test_wrong_stores_are_caught(tmp_path, wrong):
    m, inputs = store_claims(Mutant(wrong), late="fills" in wrong)
    with pytest.raises(AssertionError, match="Assert failed"):
        prove_for_ever(m, inputs, tmp_path)
