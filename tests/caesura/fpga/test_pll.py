"""Clocks that a PLL makes of an oscillator."""

import pytest

from caesura import api
from caesura.fpga.pll import pll


@pytest.mark.parametrize(
    ("oscillator", "clock"),
    [(25, 37.5), (25, 40), (25, 50), (12, 48), (12, 60), (48, 62.4), (100, 62.5), (25, 33.3333)],
)
def test_the_output_is_what_was_asked_for_and_the_part_stays_within_its_limits(oscillator, clock):
    """Limits are those of Project Trellis' ecppll."""
    found = pll(oscillator, clock)
    assert oscillator / found.input * found.feedback == pytest.approx(clock, rel=1e-4)
    assert 400 <= clock * found.output <= 800
    assert oscillator / found.input >= 3.125
    assert 1 <= found.input <= 128 and 1 <= found.feedback <= 80 and 1 <= found.output <= 128


@pytest.mark.parametrize(
    ("oscillator", "clock", "told"),
    [
        (48, 62, "no PLL makes 62 MHz of 48: try 61.7143, 62.4"),
        (25, 33.4, "no PLL makes 33.4 MHz of 25: try 33.3333"),
        (25, 9, "a PLL makes 10 to 400 MHz, not 9"),
        (25, 401, "a PLL makes 10 to 400 MHz, not 401"),
    ],
)
def test_what_there_cannot_be_is_refused_with_what_is_near(oscillator, clock, told):
    with pytest.raises(api.UsageError, match=told):
        pll(oscillator, clock)
    for near in told.partition("try ")[2].split(", ") if "try" in told else ():
        assert pll(oscillator, float(near))
