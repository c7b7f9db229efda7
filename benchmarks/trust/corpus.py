"""Instructions of compiled images, as material for mutations."""

import caesura
from benchmarks.trust.under_test import kept
from examples.digits import MODEL
from hw.contract.isa import INSN_BYTES, Insn
from hw.contract.params import preset


def instructions() -> list[Insn]:
    """Those of the digits classifier, for one engine and for both."""
    code = kept("code of digits on one and two engines of tiny", _code)
    return [Insn.decode(code[at : at + INSN_BYTES]) for at in range(0, len(code), INSN_BYTES)]


def _code() -> bytes:
    images = [caesura.compile(MODEL, preset("tiny").replace(engines=engines), engines=engines) for engines in (1, 2)]
    return b"".join(image.code for image in images)
