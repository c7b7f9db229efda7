"""Cycles of MAC and VEC instructions within their units (``hw/mac``, ``hw/vec``), with ports that never refuse."""

from functools import lru_cache
from typing import NamedTuple

from hw.contract.isa import TABLE_BYTES, VEC_CHANNEL_BYTES, VecOp
from hw.contract.params import SocParams
from hw.contract.timing import TABLE_ROW_BYTES, VEC_CHECK, VEC_PIPELINE, VEC_RAW_PIPELINE

MAC_FIELDS = ("n2", "n1", "n0", "p1", "p0", "acc_s", "accumulate")
VEC_FIELDS = ("op", "table", "per_channel", "n2", "n1", "n0", "k1", "k0")


class MacBlocks(NamedTuple):
    """``blocks`` of weights, each followed by the next after ``period`` cycles; the last fires for ``last``."""

    blocks: int
    period: int
    last: int
    accepted: int  #: pixels in all


@lru_cache(maxsize=1 << 14)
def mac_blocks(
    params: SocParams, n2: int, n1: int, n0: int, p1: int, p0: int, acc_s: int, accumulate: int
) -> MacBlocks:
    """Of the MAC instruction with ``MAC_FIELDS`` of the values given.

    A pixel waits for the two before it where it adds to the accumulator of one of them.
    """
    pixels, blocks = p1 * p0, n2 * n1 * n0
    added = pixels + _clashes(p1, p0, acc_s)
    first = added if accumulate else pixels
    period = max(added, params.rows)
    if blocks == 1:
        return MacBlocks(1, max(first, params.rows), first, pixels)
    return MacBlocks(blocks, period, added, blocks * pixels)


def _clashes(p1: int, p0: int, acc_s: int) -> int:
    """Cycles that pixels of one block wait for each other."""
    if p1 == 1 or p0 > 2 or acc_s >= p0:
        return 0
    time = 0
    fired: dict[int, int] = {}
    for y in range(p1):
        for x in range(p0):
            row = y * acc_s + x
            time = max(time + 1, fired.get(row, -3) + 3)
            fired[row] = time
    return time - p1 * p0


class VecSteps(NamedTuple):
    """``setup`` cycles from acceptance to the first of ``steps``, one per cycle, and ``tail`` from the last to the
    signal; ``words`` of LV1 are read before the first."""

    setup: int
    steps: int
    tail: int
    words: int

    @property
    def accepted(self) -> int:
        """Operands."""
        return self.steps


@lru_cache(maxsize=1 << 14)
def vec_steps(
    params: SocParams, op: int, table: int, per_channel: int, n2: int, n1: int, n0: int, k1: int, k0: int
) -> VecSteps:
    """Of the VEC instruction with ``VEC_FIELDS`` of the values given."""
    steps = n2 * n1 * n0 * k1 * k0
    if op == VecOp.RAW:
        return VecSteps(VEC_CHECK + 1, steps, VEC_RAW_PIPELINE, 0)
    word = params.lv1_word
    groups = n0 if per_channel else 1
    words = (params.vec_header_bytes + groups * params.vec_lanes * VEC_CHANNEL_BYTES) // word
    setup = VEC_CHECK + words + 2
    if table:
        rows = word // TABLE_ROW_BYTES
        tables = TABLE_BYTES // word
        setup += 1 + (tables - 1) * (rows + 1) + rows + 1
        words += tables
    return VecSteps(setup, steps, VEC_PIPELINE, words)
