"""When the bytes of a region's tensors are made: those in LV2 alone."""

from compiler.emission.program.dependencies import Made
from compiler.plan.memory.tensor_view import PixelBox, TensorView
from hw.contract.isa import Segment
from hw.contract.params import preset

TINY = preset("tiny")


def test_a_tensor_in_dram_has_no_bytes_in_lv2():
    """Its offsets are those of a segment of DRAM: of bytes in LV2 that are another tensor's, or beyond its end."""
    made, box = Made(TINY), PixelBox(0, 0, 2, 0, 4, 0, 8)
    made._times[:] = 70
    made._engines[:] = 0
    for offset in (0, TINY.lv2_bytes - 8):
        spilled = TensorView(Segment.SCRATCH, offset, (1, 2, 4, 8), (64, 32, 8))
        assert made.ready(spilled, box) == 0 and made.engine(spilled, box) == -1
    kept = TensorView(Segment.LV2, 0, (1, 2, 4, 8), (64, 32, 8))
    assert made.ready(kept, box) == 70 and made.engine(kept, box) == 0
