"""Instructions of compiled images, as material for mutations."""

import caesura
from examples.digits import MODEL
from hw.contract.isa import INSN_BYTES, Insn
from hw.contract.params import preset


def instructions() -> list[Insn]:
    """Those of the digits classifier, for one engine and for both."""
    found = []
    for engines in (1, 2):
        code = caesura.compile(MODEL, preset("tiny").replace(engines=engines), engines=engines).code
        found += [Insn.decode(code[at : at + INSN_BYTES]) for at in range(0, len(code), INSN_BYTES)]
    return found
