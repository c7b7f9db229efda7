"""The proofs are worth something only if a false claim fails."""

import pytest
from amaranth.hdl import Assert, Assume, Signal

from tests.formal.harness import prove, prove_for_ever, specification


def counting():
    m = specification()
    step, count = Signal(), Signal(4)
    with m.If(step & (count != 9)):
        m.d.sync += count.eq(count + 1)
    return m, step, count


@pytest.mark.formal
def test_false_claim_fails_the_bounded_proof(tmp_path):
    m, step, count = counting()
    m.d.comb += Assert(count != 3)
    with pytest.raises(AssertionError, match="Assert failed"):
        prove(m, [step], tmp_path, depth=6, induction=False)


@pytest.mark.formal
def test_claim_that_fails_late_fails_the_induction(tmp_path):
    m, step, count = counting()
    m.d.comb += Assert(count != 9)
    with pytest.raises(AssertionError, match=r"-i spec\.smt2"):
        prove(m, [step], tmp_path, depth=6, induction=True)


@pytest.mark.formal
def test_true_claim_is_proved(tmp_path):
    m, step, count = counting()
    m.d.comb += Assert(count <= 9)
    prove(m, [step], tmp_path, depth=6, induction=True)


@pytest.mark.formal
@pytest.mark.parametrize("verilog", [False, True])
def test_reachability_proves_what_is_true_for_ever(tmp_path, verilog):
    m, step, count = counting()
    m.d.comb += Assert(count <= 9)
    prove_for_ever(m, [step], tmp_path, verilog=verilog)


@pytest.mark.formal
@pytest.mark.parametrize("verilog", [False, True])
def test_reachability_finds_what_fails_late(tmp_path, verilog):
    m, step, count = counting()
    m.d.comb += Assert(count != 9)
    with pytest.raises(AssertionError, match="Assert failed"):
        prove_for_ever(m, [step], tmp_path, verilog=verilog)


@pytest.mark.formal
def test_reachability_keeps_to_assumptions(tmp_path):
    m, step, count = counting()
    m.d.comb += [Assume(~step | (count != 5)), Assert(count <= 5)]
    prove_for_ever(m, [step], tmp_path)
