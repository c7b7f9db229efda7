"""The decoder: which segments a copy may name. Other faults are tested with the engine's control around it."""

import pytest
from amaranth.sim import Simulator

from hw.contract.isa import DESTINATION_SEGMENTS, SOURCE_SEGMENTS, Op
from hw.contract.params import preset
from hw.control.decode import Decoder
from tests.support.raw_insns import COPIES, WRONG_SEGMENTS, legal_copy, with_field


def verdicts(decoder: Decoder, raws: list[bytes], *, parameters: int = 0) -> list[int]:
    """What the decoder says to each: illegal or not."""
    said = []

    async def testbench(ctx):
        ctx.set(decoder.parameters, parameters)
        for raw in raws:
            ctx.set(decoder.insn, int.from_bytes(raw, "little"))
            said.append(ctx.get(decoder.illegal))

    simulator = Simulator(decoder)
    simulator.add_testbench(testbench)
    simulator.run()
    return said


def test_segments_out_of_reach_are_illegal():
    decoder = Decoder(preset("tiny"))
    assert verdicts(decoder, [with_field(legal_copy(*case[:1]), *case[1:]) for case in WRONG_SEGMENTS]) == [1] * len(
        WRONG_SEGMENTS
    )


@pytest.mark.parametrize("op", COPIES)
def test_segments_within_reach_are_legal(op):
    ends = (("src_seg", SOURCE_SEGMENTS), ("dst_seg", DESTINATION_SEGMENTS))
    raws = [legal_copy(op, **{name: int(s)}).encode() for name, allowed in ends for s in allowed.get(op, ())]
    assert verdicts(Decoder(preset("tiny")), raws) == [0] * len(raws)


def test_a_prologue_names_no_lv2_as_its_source():
    decoder = Decoder(preset("tiny"), (Op.LD2, Op.END), semaphores=False)
    wrong = [with_field(legal_copy(Op.LD2), "src_seg", number) for number in (6, 7)]
    assert verdicts(decoder, [*wrong, legal_copy(Op.LD2, src_seg=1).encode()]) == [1, 1, 0]
