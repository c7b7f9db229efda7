"""What the campaigns found, and what they are too rare for: RTL and functional model say the same of each."""

import random

import pytest

from benchmarks.trust.differential import ATTACKER, Pair
from benchmarks.trust.program_campaign import ProgramCampaign
from benchmarks.trust.programs import RandomProgram
from benchmarks.trust.soc import PARAMS
from benchmarks.trust.words import raw_word
from hw.contract.isa import Insn, Op, VecOp
from hw.contract.job import Fault
from sim.functional.machine import FunctionalFault


@pytest.fixture(scope="module")
def pair():
    made = Pair()
    yield made
    made.close()


def verdict(pair: Pair, insn: Insn) -> Fault | None:
    """What both say of ``insn`` as a program of its own; memories are compared as well."""
    author = pair.authors[ATTACKER]
    program = RandomProgram(states=[author.state()])
    segment = insn["dst_seg"] if insn.op in (Op.LD2, Op.ST2, Op.ST1) else None
    program.writes.append(segment)
    try:
        pair.machine.execute(insn, author.segments, ATTACKER)
        program.states.append(author.state())
    except FunctionalFault as fault:
        program.fault = fault
    program.body = [insn.encode(), Insn(Op.END).encode()]
    pair.soc.queue(ATTACKER, program.body)
    pair.soc.ring(ATTACKER)
    pair.check(program)
    return None if program.fault is None else program.fault.code


@pytest.mark.parametrize(
    "name", ["a_s2", "a_s1", "a_s0", "a_k1", "a_k0", "b_s2", "b_s1", "b_s0", "d_s2", "d_s1", "d_s0"]
)
def test_a_stride_that_is_not_aligned_is_illegal_whatever_its_loop(pair, name):
    fields = {"op": int(VecOp.LIN), "b_en": 1, "a": 4096, "b": 8192, "d": 12288}
    assert verdict(pair, Insn(Op.VEC, fields)) is None
    assert verdict(pair, Insn(Op.VEC, fields | {name: 4})) is Fault.ILLEGAL


def test_strides_of_operands_that_are_not_used_do_not_matter(pair):
    assert verdict(pair, Insn(Op.VEC, {"op": int(VecOp.LIN), "a": 4096, "d": 8192, "b_s0": 3, "b": 5})) is None
    assert verdict(pair, Insn(Op.VEC, {"op": int(VecOp.LIN), "src_acc": 1, "d": 8192, "a_k0": 3})) is None


@pytest.mark.parametrize("view", [0, 1])
@pytest.mark.parametrize("space", [0, 1, 2])
def test_a_pe_that_is_not_there_is_illegal(pair, space, view):
    fields = {"len": 8, "hi": 8, "hi1": 1, "hi0": 1, "space": space, "view": view}
    assert verdict(pair, Insn(Op.LD0, fields | {"pe_mask": (1 << PARAMS.pes) - 1})) is None
    assert verdict(pair, Insn(Op.LD0, fields | {"pe_mask": 1 << PARAMS.pes})) is Fault.ILLEGAL


@pytest.mark.parametrize("start", [0, 1 << 32, 3 << 32, -(1 << 32)])
def test_the_way_to_the_first_run_that_is_read_may_go_around_the_address_space(pair, start):
    """Runs that are not read have no address that counts; offsets are modulo 2^32."""
    stride = (1 << 27) - 8
    fields = {"src_seg": 6, "dst": 512, "len": 8, "hi": 8, "n0": 40, "lo0": 37, "hi0": 38, "hi1": 1, "dst_s0": 8}
    legal = Insn(Op.LD1, fields | {"src_s0": stride, "src": (start + 256 - 37 * stride) % (1 << 32)})
    assert verdict(pair, legal) is None
    assert verdict(pair, Insn(Op.LD1, legal.fields | {"hi0": 39})) is Fault.LIMIT
    assert verdict(pair, Insn(Op.LD1, legal.fields | {"src": (legal["src"] - 257) % (1 << 32)})) is Fault.LIMIT


def test_a_store_to_code_is_illegal(pair):
    word = raw_word(Op.ST2, {"src_seg": 6, "dst_seg": 0, "len": 8, "hi": 8, "hi1": 1, "hi0": 1})
    author = pair.authors[ATTACKER]
    program = RandomProgram(states=[author.state()], body=[word, Insn(Op.END).encode()], writes=[None])
    program.fault = FunctionalFault(Fault.ILLEGAL, 0, 0, 9)
    pair.soc.queue(ATTACKER, program.body)
    pair.soc.ring(ATTACKER)
    pair.check(program)


@pytest.mark.parametrize(
    ("address", "told"),
    [
        (0x1A000, "is not the attacker's, and changed"),
        (0x12040, "where the host alone writes, has changed"),  # code of the victim
        (0x00010, "where the host alone writes, has changed"),  # the attacker's own ring
    ],
)
def test_a_campaign_sees_an_escape(monkeypatch, address, told):
    """A byte that changes under its owner is found at once."""
    campaign = ProgramCampaign("native", hostile=True)
    try:
        wait = campaign._pair.check_victim

        def spoil(victim) -> None:
            wait(victim)
            campaign._pair.bus.write_mem(address, b"\x5a\xa5", charge=False)

        monkeypatch.setattr(campaign._pair, "check_victim", spoil)
        with pytest.raises(AssertionError, match=told):
            campaign.round(random.Random(0).randrange(100))
    finally:
        campaign.close()


def test_a_campaign_sees_a_read_of_what_is_not_the_attackers(monkeypatch):
    """By the error that all DRAM of others answers with, while nobody else runs."""
    campaign = ProgramCampaign("native", hostile=True)
    pair = campaign._pair
    try:
        monkeypatch.setattr("benchmarks.trust.hostile._ALONE", 1.0)
        queue = pair.soc.queue

        def stray(tenant, body, prologue=None, **fields) -> None:
            whole = {"base2": 0, "limit2": 0x20000} if tenant == ATTACKER else {}
            load = {"src_seg": 2, "src": 0x1A000, "dst_seg": 6, "len": 64, "hi": 64, "hi1": 1, "hi0": 1}
            queue(tenant, [raw_word(Op.LD2, load), *body] if whole else body, None, **fields | whole)

        campaign.round(3)
        monkeypatch.setattr(campaign._hostile, "_alone", _with(pair, stray, campaign._hostile._alone))
        with pytest.raises(AssertionError, match="it reached memory that answers with an error"):
            campaign.round(3)
    finally:
        campaign.close()


def _with(pair: Pair, queue, alone):
    def run(body, fields, prologue):
        before, pair.soc.queue = pair.soc.queue, queue
        try:
            return alone(body, {}, None)
        finally:
            pair.soc.queue = before

    return run
