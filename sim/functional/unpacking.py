"""Unpacks int4 on the way from LV1 to LV0: LD0 with space INT4."""

import numpy as np
import numpy.typing as npt

from sim.functional.copies import moving, source_box, target_box
from sim.functional.strided import Box

Bytes = npt.NDArray[np.uint8]


def unpack(f: dict, lv1: Bytes, halves: Bytes, before: int) -> None:
    """Carry out a copy with the fields ``f`` to ``halves`` of LV0: of low and of high halves of bytes, as many as there
    are packed ones; ``before``: packed bytes in front of them."""
    source, target = source_box(f), target_box(f)
    low, high = source.bounds()
    read = Box(source.offset - low, source.shape, source.strides)
    written = Box(target.offset - before, target.shape, target.strides)
    packed, fill = lv1[low:high], np.full(1, f["fill"], np.uint8)
    for half, shift in zip(halves, (0, 4), strict=True):
        linear = half.reshape(-1)
        fields = f | {"fill": int(_extended(fill, shift)[0])}
        moving(fields, read.view(_extended(packed, shift)), [written.view(linear)])()
        half[...] = linear.reshape(half.shape)


def _extended(packed: Bytes, shift: int) -> Bytes:
    """Return bits ``shift`` to ``shift`` + 3 of each byte, sign-extended."""
    return (((packed << 4 - shift) & 0xF0).view(np.int8) >> 4).view(np.uint8)
