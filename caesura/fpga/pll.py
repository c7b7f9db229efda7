"""Makes a machine's clock of a board's oscillator, by a PLL of the ECP5."""

from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Instance

from caesura import api

#: What the part allows, in MHz: its slowest and fastest oscillation inside, comparison, and output.
_INSIDE, _COMPARED, _OUT = (400.0, 800.0), (3.125, 400.0), (10.0, 400.0)
_EXACT = 1e-4  #: of a clock: no oscillator is nearer to what it is called
_INPUT_DIVISORS, _FEEDBACK_DIVISORS, _OUTPUT_DIVISORS = range(1, 129), range(1, 81), range(1, 129)


@dataclass(frozen=True)
class Pll:
    """Says by what a PLL divides: its input, what it compares that with, which is its output, and the oscillation
    inside. The output is that of the input × ``feedback`` / ``input``."""

    input: int
    feedback: int
    output: int

    def instance(self, oscillator: Any, clock: Any, locked: Any) -> Instance:
        """Return the cell: ``clock`` comes out of it, and is the oscillator's while ``locked`` is high."""
        unused = {f"i_{name}": 0 for name in ("RST", "STDBY", "PHASESEL0", "PHASESEL1", "PLLWAKESYNC", "ENCLKOP")}
        return Instance(
            "EHXPLLL",
            a_ICP_CURRENT="12", a_LPF_RESISTOR="8", a_MFG_ENABLE_FILTEROPAMP="1", a_MFG_GMCREF_SEL="2",
            p_CLKI_DIV=self.input, p_CLKFB_DIV=self.feedback, p_CLKOP_DIV=self.output,
            p_CLKOP_CPHASE=(self.output - 1) // 2, p_CLKOP_FPHASE=0, p_CLKOP_ENABLE="ENABLED", p_FEEDBK_PATH="CLKOP",
            i_CLKI=oscillator, i_CLKFB=clock, o_CLKOP=clock, o_LOCK=locked,
            i_PHASEDIR=1, i_PHASESTEP=1, i_PHASELOADREG=1, **unused,
        )  # fmt: skip


def pll(oscillator: float, clock: float) -> Pll:
    """Return what makes ``clock`` of ``oscillator``, both in MHz, compared as fast as can be. Raises
    :class:`caesura.api.UsageError` where nothing does, with the clocks next to it."""
    if not _OUT[0] <= clock <= _OUT[1]:
        raise api.UsageError(f"a PLL makes {_OUT[0]:g} to {_OUT[1]:g} MHz, not {clock:g}")
    near: set[float] = set()
    for divisor in _INPUT_DIVISORS:
        compared = oscillator / divisor
        if not _COMPARED[0] <= compared <= _COMPARED[1]:
            continue
        feedback = max(1, round(clock / compared))
        if feedback not in _FEEDBACK_DIVISORS:
            continue
        made = compared * feedback
        near.add(round(made, 4))
        inside = [one for one in _OUTPUT_DIVISORS if _INSIDE[0] <= made * one <= _INSIDE[1]]
        if inside and abs(made - clock) <= _EXACT * clock:
            return Pll(divisor, feedback, inside[len(inside) // 2])
    told = ", ".join(f"{one:g}" for one in sorted(near, key=lambda one: abs(one - clock))[:3])
    raise api.UsageError(f"no PLL makes {clock:g} MHz of {oscillator:g}: try {told}")
