"""Hostile programs on the RTL: whatever their instructions are, they reach nothing but their own segments.

What they compute is not compared, as it depends on the order in which units happen to work: their semaphores are
anything. A victim's program beside must be exact, and the engine usable afterwards. Some run alone, while the DRAM of
others answers with errors, so that a read of it is seen.
"""

import random

from benchmarks.trust.differential import ATTACKER, VICTIM, Mismatch, Pair, text
from benchmarks.trust.programs import RandomProgram, candidate
from benchmarks.trust.soc import CODE_BYTES, TENANT_BYTES, Wedged
from benchmarks.trust.words import mutated, raw_word, with_bits
from hw.contract.isa import INSN_BYTES, Insn, Op, field_place
from hw.contract.job import Fault

_ALONE = 0.25  #: of all programs
_SLVERR = 2
_PATIENCE = 20_000  #: cycles after which an attacker that has not ended is reset
_MOST = CODE_BYTES // INSN_BYTES


class HostilePrograms:
    """Programs from mutated instructions of compiled images (``corpus``), random ones and noise."""

    def __init__(self, pair: Pair, corpus: list[Insn]) -> None:
        self._pair, self._corpus = pair, corpus

    def round(self, rng: random.Random) -> str:
        """One program, and what became of it. Raises ``Mismatch``, ``Wedged``."""
        pair = self._pair
        if rng.random() < 0.1:
            pair.stall(rng)
        body = self._body(rng)
        prologue = self._prologue(rng) if rng.random() < 0.3 else None
        fields = {"cycle_limit": rng.choice((0, 500, 5000))}
        if rng.random() < 0.2:
            fields["body_pc"] = rng.choice((rng.randrange(_MOST), rng.randrange(1 << 24)))
        shown = RandomProgram(body=[*(prologue or []), *body])
        try:
            if rng.random() < _ALONE:
                ended = self._alone(body, fields, prologue)
            else:
                victim = pair.authors[VICTIM].write(rng, flawed=False)
                pair.run_beside(rng, body, victim, fields, prologue)
                ended = self._ended()
            if ended == Fault.BUS.name:
                raise Mismatch("it reached memory that answers with an error, which none of its own does")
            pair.recover(None)
        except (Mismatch, Wedged) as error:
            raise type(error)(f"{error}\n{text(shown)}") from None
        return ended

    def _alone(self, body: list[bytes], fields: dict[str, int], prologue: list[bytes] | None) -> str:
        """Nobody else runs, and all DRAM of others answers with errors: a read of it shows."""
        bus, soc = self._pair.bus, self._pair.soc
        bus.set_dram_fault(_SLVERR, TENANT_BYTES, bus.params.dram_bytes - TENANT_BYTES, cycles=1 << 32)
        soc.queue(ATTACKER, body, prologue, **fields)
        soc.ring(ATTACKER)
        ended = self._ended()
        bus.set_dram_fault(0)
        return ended

    def _ended(self) -> str:
        try:
            return Fault(self._pair.soc.wait(ATTACKER, _PATIENCE).status).name
        except Wedged:
            return "reset"

    def _body(self, rng: random.Random) -> list[bytes]:
        if self._corpus and rng.random() < 0.3:  # a stretch of an image, as it is but for a few flaws
            start = rng.randrange(len(self._corpus))
            stretch = self._corpus[start : start + rng.randint(2, 40)]
            words = [raw_word(insn.op, insn.fields) for insn in stretch]
            for _ in range(rng.randint(1, 4)):
                at = rng.randrange(len(words))
                words[at] = mutated(rng, stretch[at])
        else:
            words = [self._word(rng) for _ in range(rng.randint(1, 20))]
        return [*words, Insn(Op.END).encode()]

    def _prologue(self, rng: random.Random) -> list[bytes]:
        words = []
        for _ in range(rng.randint(1, 4)):
            insn = candidate(rng, ATTACKER)
            while insn.op is not Op.LD2 and rng.random() < 0.9:
                insn = candidate(rng, ATTACKER)
            words.append(mutated(rng, insn) if rng.random() < 0.3 else raw_word(insn.op, insn.fields))
        return [*words, Insn(Op.END).encode()]

    def _word(self, rng: random.Random) -> bytes:
        what = rng.random()
        if what < 0.02:
            return rng.randbytes(INSN_BYTES)
        insn = rng.choice(self._corpus) if self._corpus and what < 0.4 else candidate(rng, ATTACKER)
        word = mutated(rng, insn) if rng.random() < 0.15 else raw_word(insn.op, insn.fields)
        if insn.op in (Op.END, Op.CANCEL):
            return word
        for name in ("wait", "signal"):
            mask = rng.choice((0, 0, 1, 2, 1 << rng.randrange(4), rng.getrandbits(32) if rng.random() < 0.1 else 0))
            word = with_bits(word, *field_place(insn.op, name), mask)
        return word
