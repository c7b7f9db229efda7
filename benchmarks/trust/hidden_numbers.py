"""Programs that mean what others do, with parts of their numbers in the parameters of the job."""

import random
from collections.abc import Sequence

from hw.contract.formats import PARAMETERS
from hw.contract.isa import FORMATS, Insn
from hw.contract.slots import WRAPPING, Added, slots_of


def parameters(rng: random.Random) -> list[int]:
    """Small numbers, as lengths are, and large ones, as offsets are."""
    return [rng.choice((0, 1, 2, 8, 40, rng.getrandbits(32))) for _ in range(PARAMETERS)]


def hidden(rng: random.Random, program: Sequence[Insn], values: Sequence[int]) -> list[Insn]:
    """Return instructions that become those of ``program`` in a job with the parameters ``values``."""
    return [_hidden(rng, insn, values) for insn in program]


def _hidden(rng: random.Random, insn: Insn, values: Sequence[int]) -> Insn:
    slots = slots_of(FORMATS[insn.op])
    if slots is None:
        return insn
    fields, added = dict(insn.fields), []
    known = {f.name: f for f in FORMATS[insn.op]}
    for _ in range(rng.randint(1, slots.count)):
        name, number = rng.choice(slots.fields), rng.randrange(PARAMETERS)
        before = fields.get(name, known[name].default) - values[number]
        if name in WRAPPING:
            before %= 1 << known[name].width
        if before >= known[name].minimum:
            fields[name] = before
            added.append(Added(name, number))
    made = Insn(insn.op, fields, tuple(added))
    assert made.resolve(values).encode() == insn.encode()
    return made
