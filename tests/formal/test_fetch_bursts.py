"""Bursts that fetch instructions and descriptors, for all places, all speeds of the bus, and stops at any time."""

import pytest
from amaranth.hdl import Assert, Assume, Module, Mux, Signal

from hw.contract.isa import INSN_BYTES
from hw.contract.job import JOB
from hw.contract.params import preset
from hw.control.fetch import InstructionFetch, burst_words
from hw.control.ring import JobRing
from hw.interfaces import ADDR, PC
from tests.formal.harness import prove, prove_for_ever, specification

#: Wide words, so that an instruction has two and a descriptor eight, in two bursts.
PARAMS = preset("base").replace(axi_burst_beats=4, dram_word=32)
_WORD = PARAMS.dram_word
_MOST = 127  #: words that are counted
_PAGE = 4096


def _legal(request):
    """Whether a burst is one that the memory port allows."""
    within, size = request.addr[: (_PAGE - 1).bit_length()], request.beats * _WORD
    whole = request.addr[: (_WORD - 1).bit_length()] == 0
    return whole & (request.beats != 0) & (request.beats <= burst_words(PARAMS)) & (within + size <= _PAGE)


class Memory:
    """A memory that takes and answers at any speed; and what is asked of it. ``wild``: it answers also what was not
    asked for."""

    def __init__(self, m: Module, bus, inputs: list[Signal], *, wild: bool) -> None:
        takes, answers, beat = Signal(), Signal(), Signal.like(bus.data.payload.as_value())
        inputs += [takes, answers, beat]
        req = bus.req
        self.waits, before = Signal(), Signal.like(req.payload.as_value())
        self.fresh, self.open = Signal(), Signal(range(_MOST + 1))  # a burst is offered now; words that are to come
        came = bus.data.valid & bus.data.ready
        m.d.comb += [
            req.ready.eq(takes), bus.data.valid.eq(answers), bus.data.payload.as_value().eq(beat),
            self.fresh.eq(req.valid & ~self.waits),
        ]  # fmt: skip
        if not wild:
            m.d.comb += Assume(~answers | (self.open != 0))
        m.d.sync += [
            self.waits.eq(req.valid & ~req.ready),
            before.eq(req.payload.as_value()),
            self.open.eq(self.open + Mux(req.valid & req.ready, req.p.beats, 0) - came),
        ]
        self.legal = ~req.valid | _legal(req.p)
        m.d.comb += [
            Assert(~self.waits | (req.valid & (req.payload.as_value() == before))),
        ]


def fetch_claims(dut: InstructionFetch) -> tuple[Module, list[Signal]]:
    """What a fetch of any segment keeps to: legal bursts, none behind a flush, and no more words than the segment has
    behind the PC. Where it is and the words that it knows to be left carry the induction."""
    m = specification()
    m.submodules.dut = dut
    inputs: list[Signal] = []
    memory = Memory(m, dut.bus, inputs, wild=True)
    start, flush, pc, base, limit = Signal(), Signal(), Signal(PC), Signal(ADDR), Signal(ADDR)
    takes = Signal()
    inputs += [start, flush, pc, base, limit, takes]
    m.d.comb += [
        dut.start.eq(start), dut.flush.eq(flush), dut.pc.eq(pc), dut.base.eq(base), dut.limit.eq(limit),
        dut.insn.ready.eq(takes & dut.insn.valid),
        Assume(~start | (~dut.running & ~flush)), Assume(base % INSN_BYTES == 0),
    ]  # fmt: skip

    # Words that are left of the segment, by what was asked for since the start.
    left = Signal(ADDR - 5)
    with m.If(start):
        whole = limit[6:]
        m.d.sync += left.eq(Mux(pc < whole, whole - pc, 0) * (INSN_BYTES // _WORD))
    with m.Elif(memory.fresh):
        m.d.sync += left.eq(left - dut.bus.req.p.beats)
    stopped = Signal()
    m.d.sync += stopped.eq(flush)
    m.d.comb += [
        Assert(~memory.fresh | (dut.bus.req.p.beats <= left)),
        Assert(dut._left == left - Mux(memory.fresh, dut.bus.req.p.beats, 0)),
        Assert(dut._address % _WORD == 0),
        Assert(memory.legal),
        Assert(~(stopped & memory.fresh)),
    ]
    return m, inputs


@pytest.mark.formal
def test_bursts_of_instructions_are_legal_and_within_their_segment_for_ever(tmp_path):
    m, inputs = fetch_claims(InstructionFetch(PARAMS))
    prove(m, inputs, tmp_path, depth=4, induction=True)


def ring_claims(dut: JobRing) -> tuple[Module, list[Signal]]:
    """What the fetch of descriptors keeps to: all bursts of one, in order, within its place in the ring, then quiet."""
    m = specification()
    m.submodules.dut = dut
    inputs: list[Signal] = []
    memory = Memory(m, dut.bus, inputs, wild=False)
    base, size = Signal(ADDR), Signal(4)
    rest = Signal(1 + 1 + 1 + 32 + 32)
    inputs += [base, size, rest]
    same, fixed = Signal(ADDR + 4), Signal()
    m.d.sync += [same.eq(base | size << ADDR), fixed.eq(1)]
    m.d.comb += [
        dut.control.base.eq(base), dut.control.size_log2.eq(size),
        dut.enable.eq(rest[0]), dut.halt.eq(rest[1]), dut.control.tail_stb.eq(rest[2]),
        dut.control.tail_data.eq(rest[3:35]), dut.released.eq(rest[35:]),
        Assume(base % JOB.size == 0), Assume(~fixed | (same == base | size << ADDR)),
    ]  # fmt: skip
    addr, chunk = dut.bus.req.p.addr, burst_words(PARAMS) * _WORD
    part = Signal(range(JOB.size // chunk))
    with m.If(memory.fresh):
        m.d.sync += part.eq(part + 1)
    m.d.comb += [
        Assert(memory.legal),
        Assert(~memory.fresh | (addr[: JOB.size.bit_length() - 1] == part * chunk)),
        Assert(~memory.fresh | (dut.bus.req.p.beats * _WORD == chunk)),
        Assert(~dut.quiet | ((memory.open == 0) & ~dut.bus.req.valid & (part == 0))),
    ]
    return m, inputs


@pytest.mark.formal
@pytest.mark.slow
def test_bursts_of_descriptors_are_legal_for_ever(tmp_path):
    m, inputs = ring_claims(JobRing(PARAMS))
    prove_for_ever(m, inputs, tmp_path)


class WrongFetch(InstructionFetch):
    """One line of the fetch is wrong."""

    def __init__(self, wrong: str) -> None:
        super().__init__(PARAMS)
        self.wrong = wrong

    def elaborate(self, platform) -> Module:
        m = super().elaborate(platform)
        req = self.bus.req
        match self.wrong:
            case "a burst is withdrawn by a flush":
                with m.If(self.flush):
                    m.d.sync += req.valid.eq(0)
            case "all bursts are of full length":
                m.d.sync += req.payload.beats.eq(burst_words(PARAMS))
            case "it begins at the end of an instruction":
                with m.If(~req.valid):
                    m.d.sync += req.payload.addr.eq(self.base + _WORD - 1)
        return m


@pytest.mark.formal
@pytest.mark.parametrize(
    "wrong",
    [
        "a burst is withdrawn by a flush",
        "all bursts are of full length",
        "it begins at the end of an instruction",
    ],
)
def test_a_wrong_fetch_is_caught(tmp_path, wrong):
    m, inputs = fetch_claims(WrongFetch(wrong))
    with pytest.raises(AssertionError, match="Assert failed"):
        prove(m, inputs, tmp_path, depth=8, induction=False)


class WrongRing(JobRing):
    """Quiet as soon as it has asked."""

    def elaborate(self, platform) -> Module:
        m = super().elaborate(platform)
        m.d.comb += self.quiet.eq(~self.bus.req.valid)
        return m


@pytest.mark.formal
def test_a_wrong_ring_is_caught(tmp_path):
    m, inputs = ring_claims(WrongRing(PARAMS))
    with pytest.raises(AssertionError, match="Assert failed"):
        prove_for_ever(m, inputs, tmp_path)
