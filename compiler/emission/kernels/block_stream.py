"""Weights on their way from LV1 to LV0 as a stream of blocks that no MAC instruction need read in the same pieces."""

from compiler.emission.program import BufferFill, JobProgram, Ring, Sem, Task, contiguous
from hw.contract.isa import Lv0Space, Lv0View, Op
from hw.contract.params import SocParams

_LATENCY = 3  #: blocks that MAC takes from the end of an instruction until a load begins, and its first word is there


class BlockStream:
    """Brings blocks of weights from buffers of LV1 to LV0, a half of it at a time, as they are taken.

    Int4 is multiplied as fast as DRAM brings it, so MAC must not wait: the loads of a buffer are of equal size, none
    too short to hide the next, and an instruction reads both halves only if the second has been loaded by then.
    """

    def __init__(self, job: JobProgram, source: Ring, params: SocParams, *, int4: bool = False) -> None:
        """``source``: the ring of LV1 that holds the blocks; ``int4``: packed, two in a byte."""
        self._job, self._source, self._params, self._int4 = job, source, params, int4
        self._half = params.lv0_wgt_bytes // 2 // (params.rows * params.rows)  #: blocks
        self._ring = Ring(Sem.WEIGHT0_FULL, Sem.WEIGHT0_FREE, 0, self._half * params.rows, 2)
        #: Blocks that MAC takes from one half before it goes on in the other: as many as hide a load.
        self._lead = self._half // 2 + _LATENCY if int4 else 0
        self._total = self._loaded = self._taken = self._since = 0

    def begin(self, held: BufferFill, total: int) -> None:
        """Go on with the ``total`` blocks with which the LV1 buffer ``held`` begins; all before have been taken."""
        self._held, self._total = held, total
        self._loaded = self._taken = 0

    def take(self, most: int) -> tuple[list[BufferFill], int, int]:
        """Return the next blocks, ``most`` at most: the buffers of LV0 that hold them, the word at which they begin,
        and how many there are. They lie side by side, and for one load at most must be waited."""
        fills = [self._load() if self._taken == self._loaded else self._latest]
        word = fills[0].address + (self._taken - self._first) * self._params.rows
        waited = self._since > self._lead
        beside = fills[0].number % 2 == 0 and self._loaded == self._first + self._half
        # An instruction signals once, so it cannot be the last to read both halves.
        if waited and beside and self._loaded < self._taken + most < min(self._loaded + self._half, self._total):
            fills.append(self._load())
        count = min(most, self._loaded - self._taken)
        self._taken += count
        self._since = 0 if self._int4 and len(fills) > 1 else self._since + count
        return fills, word, count

    def read_by(self, fills: list[BufferFill], task: Task) -> None:
        """``task`` reads what :meth:`take` returned."""
        for fill in fills:
            self._ring.read_by(fill, task)

    def _load(self) -> BufferFill:
        p, ratio = self._params, 2 if self._int4 else 1
        block = p.rows * p.out_channels // ratio
        left = self._total - self._loaded
        count = -(-left // -(-left // self._half)) if self._int4 else min(self._half, left)
        fill = self._ring.fill((self._held, self._loaded))
        target = fill.address * p.lv1_word // ratio
        copies = contiguous(self._held.address + self._loaded * block, target, count * block)
        space = Lv0Space.INT4 if self._int4 else Lv0Space.WGT
        loads = self._job.emit_all(Op.LD0, copies, space=space, view=Lv0View.INTERLEAVED)
        self._source.read_by(self._held, *loads)
        self._ring.filled_by(fill, loads)
        self._first, self._latest, self._since = self._loaded, fill, 0
        self._loaded += count
        return fill
