"""Products of a few rows and a matrix, as a decoder has them for one token: no weight is used twice.

Loading the weights from DRAM takes longer than all the rest, and each instruction is fetched from there, too. So as few
as possible do the work: activations come once for all tiles, one load to LV1 brings weights and parameters of whole
channel tiles, and their results leave together. The weights of these tiles are one stream of blocks to LV0, half of
it at a time, wherever a tile ends; a MAC instruction takes what lies side by side of a tile. Int4 is packed up
to LV1, and LD0 unpacks it.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from compiler.emission.kernels.block_stream import BlockStream
from compiler.emission.kernels.conv_buffers import kept_input
from compiler.emission.kernels.conv_constants import groups_of
from compiler.emission.kernels.conv_data import ConvData, blocks, sum_block
from compiler.emission.kernels.conv_work import Addend, ConvWork
from compiler.emission.program import BufferFill, JobProgram, Ring, Sem, Task, contiguous
from compiler.plan.layers import ChannelTile, conv_params_bytes, pixel_parts, sum_params_bytes
from compiler.plan.memory.budget import Lv2Budget
from compiler.plan.memory.tensor_view import PixelBox
from compiler.plan.tiling.conv_tiling import ALONE, WHOLE, Ends, KernelChunk
from hw.contract.isa import TABLE_BYTES, Lv0Space, MacMode, Op, VecOp
from hw.contract.params import KIB

_LOAD_CYCLES = 1280  #: of a load of several channel tiles to LV1: what comes behind it waits no longer
_PIECE = 4 * KIB  #: bytes of a load of weights by a body: a pause waits for all that the unit has taken
_LARGE = 192 * KIB  #: bytes of weights beside which the time in which a prologue begins is little
_PACKED = 160 * KIB  #: bytes of int4 of a job: they multiply nearly as long as they load, and so does the last job
_SPLIT_AT_THE_END = 128 * KIB  #: bytes of weights that take the array longer than further jobs take to begin
_AT_THE_END = (27, 18, 12, 8)  #: sizes of the last jobs of a model, each two thirds of the one before


def job_weights(budget: Lv2Budget, *, int4: bool = False) -> int:
    """Return the bytes of weights of a job that DRAM bounds: a quarter of the ring, so that there are windows whatever
    lies between them, and DRAM is never idle; but not so little that the time from one prologue to the next counts. Of
    ``int4``, no more than that takes."""
    found = max(budget.windows // 4, min(budget.windows // 2, _LARGE))
    return min(found, _PACKED) if int4 else found


def smaller_at_the_end(batches: list[list[ChannelTile]], size: int) -> list[list[ChannelTile]]:
    """Return ``batches`` of tiles of ``size`` bytes with the last in smaller parts: behind the last load nothing else
    is there to be done, and the array takes more than half of a load's time for what came with it. What takes little
    time stays whole."""
    if not batches or len(batches[-1]) * size < _SPLIT_AT_THE_END:
        return batches
    *others, last = batches
    bounds = [round(len(last) * at / sum(_AT_THE_END)) for at in itertools.accumulate(_AT_THE_END, initial=0)]
    return [*others, *(part for low, high in itertools.pairwise(bounds) if (part := last[low:high]))]


@dataclass(frozen=True)
class RowBuffers:
    """The buffers of a product. Bytes of LV1: ``act`` for all rows, ``tile`` for the weights and parameters of a
    channel tile, ``out`` for the results of a *run* of channel tiles, which leave together. ``group`` channel tiles
    come at once, into one of ``slots`` buffers."""

    act: int
    tile: int
    out: int
    run: int
    group: int
    slots: int

    @classmethod
    def of(cls, work: ConvWork, lv1_bytes: int) -> "RowBuffers | None":
        """Return what fits ``lv1_bytes`` of LV1; None if no whole tile does."""
        p, rows, depth = work.params, work.pixel_tiles[0].cols, _depth(work)
        tile = _weight_bytes(work) + conv_params_bytes(work.layer, p)
        results = work.words(rows * p.out_channels)
        room = lv1_bytes // 16 if work.y.view.on_chip else min(lv1_bytes // 16, work.staging.size // 4)
        run = max(1, min(len(work.layer.tiles), room // results))
        act, out = work.words(rows * depth * p.rows), run * results
        fixed = act + (work.words(TABLE_BYTES) if work.layer.table is not None else 0)
        fixed += sum_params_bytes(p) + 4 * out if work.addend else 2 * out
        for group in range(max(1, _LOAD_CYCLES * p.lv1_word // tile), 0, -1):
            slots = min(3, (lv1_bytes - fixed) // (group * tile))
            if slots >= 2:
                return cls(act, tile, out, run, group, slots)
        return None


def _depth(work: ConvWork) -> int:
    """Return the words of LV0 that an input pixel takes; each is multiplied by a block of weights."""
    return -(-work.most_channels // work.params.rows)


def _weight_bytes(work: ConvWork) -> int:
    """Return the bytes of the weights of a channel tile: int4 is packed."""
    return _depth(work) * work.params.rows * work.params.out_channels // (2 if work.int4 else 1)


class MatrixVectorEmitter:
    """Emits the jobs of one engine's part of a product of a few rows, one after the other: each computes some of the
    channel tiles."""

    def __init__(self, work: ConvWork, sizes: RowBuffers) -> None:
        self.work, self.sizes = work, sizes
        self.kept = kept_input(work)

    @classmethod
    def of(cls, work: ConvWork, lv1_bytes: int) -> "MatrixVectorEmitter | None":
        """Return who emits ``work`` with buffers in ``lv1_bytes`` of LV1; None if it is no such product, or its
        operands pass through LV2 in another way than whole."""
        layer, p = work.layer, work.params
        if not layer.flat or layer.by_channels or layer.uniform or work.streamed or len(work.pixel_tiles) != 1:
            return None
        tile, depth = work.pixel_tiles[0], _depth(work)
        whole = work.x.view.shape[3] == work.most_channels
        even = all(one.outs % p.vec_lanes == 0 for one in layer.tiles[:-1])
        one_row = tile.rows == 1 and tile.cols <= p.rows and tile.cols * depth * p.rows <= p.lv0_act_bytes
        apart = tile.cols > 1 and any(pixel_parts(layer, one, p) > 1 for one in layer.tiles)
        if not (whole and even and one_row) or apart or depth > 0xFFF:
            return None
        if work.addend and (work.addend.constant or work.addend.staged):
            return None
        sizes = RowBuffers.of(work, lv1_bytes)
        found = cls(work, sizes) if sizes else None
        return found if found and found._fits_staging() else None

    def _fits_staging(self) -> bool:
        work, end = self.work, self.work.staging.base + self.work.staging.size
        if not work.x.view.on_chip and self.kept is None:
            return False
        end = self.kept.kept.base if self.kept else end
        return work.y.view.on_chip or work.staging.base + 2 * self.sizes.out <= end

    def splits_ends(self, tiles: Sequence[ChannelTile]) -> bool:
        """Return whether pixel tiles at the ends of a job may be cut: never, as there is one."""
        return False

    def possible_ends(self, tiles: Sequence[ChannelTile]) -> tuple[Ends, ...]:
        """Return the ends to choose from."""
        return ALONE[:1]

    def job(
        self, number: int, engine: int, tiles: list[ChannelTile], own_loads: bool = False, ends: Ends = WHOLE
    ) -> JobProgram:
        """Return the job of layer ``number`` on ``engine`` that computes ``tiles``; ``own_loads``: see
        :class:`JobProgram`; ``ends`` plays no part."""
        self._job = JobProgram(self.work.params, number, engine, own_loads)
        if self.kept:
            self.kept.enter(self._job)
        self._place()
        self._act = self._activations()
        for first in range(0, len(tiles), self.sizes.run):
            self._run(tiles[first : first + self.sizes.run])
        return self._job

    def _place(self) -> None:
        """Give all buffers their places. Constants of the layer come with the first weights."""
        work, sizes, p = self.work, self.sizes, self.work.params
        self._first_loads: list[Task] = []
        at = work.lv1_base
        self._table = self._sums = at
        if work.layer.table is not None:
            self._first_loads += self._job.load_constant(work.layer.table.tobytes(), at)
            at += work.words(TABLE_BYTES)
        if work.addend:
            self._sums = at
            block = sum_block(work.layer, work.addend.own_zero_point, work.addend.other.zero_point, p)
            self._first_loads += self._job.load_constant(block, at, ConvData(work.layer.output, sum=True))
            at += sum_params_bytes(p)
        self._act1 = Ring(Sem.ACT1_FULL, Sem.ACT1_FREE, at, sizes.act, 1)
        at += sizes.act
        self._out = Ring(Sem.OUT_FULL, Sem.OUT_FREE, at, sizes.out, 2)
        at += 2 * sizes.out
        if work.addend:
            self._other = Ring(Sem.B_FULL, Sem.B_FREE, at, sizes.out, 2)
            at += 2 * sizes.out
        self._weights1 = Ring(Sem.WEIGHT1_FULL, Sem.WEIGHT1_FREE, at, sizes.group * sizes.tile, sizes.slots)
        self._params = Ring(Sem.PARAMS_FULL, Sem.PARAMS_FREE, at, sizes.group * sizes.tile, sizes.slots)
        self._act0 = Ring(Sem.ACT0_FULL, Sem.ACT0_FREE, 0, 0, 1)
        self._weights0 = BlockStream(self._job, self._weights1, p, int4=work.int4)
        self._acc = Ring(Sem.ACC_FULL, Sem.ACC_FREE, 0, p.lv0_acc_rows // 2, 2)
        spilled = not work.y.view.on_chip
        slots = Ring(Sem.SPILL_FULL, Sem.SPILL_FREE, work.staging.base, sizes.out, 2)
        self._spill = slots if spilled else None

    def _activations(self) -> BufferFill:
        """Bring all rows to LV0, where they stay."""
        work, p, pixels, pitch = self.work, self.work.params, self.work.pixel_tiles[0], _depth(self.work)
        size, box = pitch * p.rows, work.tile_box(pixels, 0, work.most_channels)
        lv1, held = self._act1.fill(box), self._act0.fill(box)
        place = lv1.address, pixels.cols * size, size, work.x.zero_byte
        if self.kept:
            self._act1.filled_by(lv1, self.kept.load(box, *place))
        else:
            self._act1.filled_by(lv1, self._job.load(work.x.view, box, *place, None, box))
        copies = contiguous(lv1.address, 0, pixels.cols * size)
        loads = self._job.emit_all(Op.LD0, copies, space=Lv0Space.ACT, pe_mask=(1 << p.pes) - 1)
        self._act1.read_by(lv1, *loads)
        self._act0.filled_by(held, loads)
        return held

    def _run(self, tiles: Sequence[ChannelTile]) -> None:
        """Multiply and store channel tiles that follow each other."""
        work, p, pixels = self.work, self.work.params, self.work.pixel_tiles[0]
        box = PixelBox(pixels.n, pixels.y, 1, pixels.x, pixels.cols, tiles[0].out, sum(one.outs for one in tiles))
        lanes = {one: -(-one.outs // p.vec_lanes) * p.vec_lanes for one in tiles}
        pitch, out = sum(lanes.values()), self._out.fill(box)
        most = 1 if self._job.own_loads else self.sizes.group  # work begins with the first load
        writers, at = list[Task](), out.address
        for group in dict.fromkeys(groups_of(list(tiles), most).values()):
            writers += self._group(group, at, pitch)
            at += sum(lanes[one] for one in group)
        if work.addend:
            writers[-1].signals.add(Sem.OWN_READY)
            writers.append(self._add(work.addend, box, out.address, pitch))
        self._out.filled_by(out, writers)
        store = self._job.store(work.y.view, box, out.address, pixels.cols * pitch, pitch, self._spill, box)
        self._out.read_by(out, store)

    def _group(self, group: Sequence[ChannelTile], target: int, pitch: int) -> list[Task]:
        """Load and multiply channel tiles that follow each other. Return what writes their results to LV1, from
        ``target`` on, those of two rows ``pitch`` bytes apart."""
        work, p, layer, depth = self.work, self.work.params, self.work.layer, _depth(self.work)
        kernel = KernelChunk(0, 1, 0, 1, 0, work.most_channels)
        tiles, areas = tuple((one, kernel) for one in group), tuple((one, 0) for one in group)
        part = ConvData(layer.output, weights=tiles, params=areas, int4=work.int4)
        data, size, block = blocks(part, layer, p), _weight_bytes(work), conv_params_bytes(layer, p)
        held, params = self._weights1.fill(part), self._params.fill(part)
        window = self._job.keep(data, part)
        loads = [*self._first_loads, *self._job.load_window(window, held.address, len(data), _PIECE)]
        self._first_loads = []
        self._weights1.filled_by(held, loads)
        self._params.filled_by(params, loads)  # last, so that the loads belong to the buffer that lives longer
        self._weights0.begin(held, len(group) * depth)
        writers = list[Task]()
        for index, one in enumerate(group):
            acc = self._acc.fill(one)
            self._acc.filled_by(acc, self._products(depth, acc.address))
            lanes = -(-one.outs // p.vec_lanes)
            fields = {
                "op": VecOp.LIN, "src_acc": 1, "per_channel": 1, "a": acc.address, "a_s1": 1,
                "n1": work.pixel_tiles[0].cols, "n0": lanes, "d": target, "d_s1": pitch, "d_s0": p.vec_lanes,
                "p": held.address + len(group) * size + index * block,
            }  # fmt: skip
            if layer.requantise.table is not None:
                fields |= {"table": 1, "t": self._table}
            writers.append(self._job.emit(Op.VEC, fields))
            self._params.read_by(params, writers[-1])
            self._acc.read_by(acc, writers[-1])
            target += lanes * p.vec_lanes
        return writers

    def _products(self, depth: int, acc: int) -> list[Task]:
        """Return the MAC instructions that add the next ``depth`` blocks up, to row ``acc`` of the accumulators."""
        work, rows = self.work, self.work.pixel_tiles[0].cols
        most = max(1, work.longest // max(work.params.rows, rows)) if work.longest else depth
        macs, done = list[Task](), 0
        while done < depth:
            fills, address, count = self._weights0.take(min(most, depth - done))
            fields = {
                "mode": MacMode.DENSE, "accumulate": int(done > 0), "x_signed": int(work.x.signed),
                "w_signed": int(work.layer.weights.dtype.kind == "i"), "x_zp": work.x.zero_byte,
                "w_zp": work.layer.weight_zero_point & 0xFF, "act": done, "wgt": address, "acc": acc, "n0": count,
                "k0_s": 1 if count > 1 else 0, "p0": rows, "p0_s": depth if rows > 1 else 0, "acc_s": rows,
            }  # fmt: skip
            macs.append(self._job.emit(Op.MAC, fields))
            self._act0.read_by(self._act, macs[-1])
            self._weights0.read_by(fills, macs[-1])
            done += count
        return macs

    def _add(self, addend: Addend, box: PixelBox, own: int, pitch: int) -> Task:
        """Add the other operand to the results at LV1 address ``own``, in place."""
        lanes, other, fill = self.work.params.vec_lanes, addend.other, self._other.fill(box)
        place = box
        if addend.broadcast:
            place = PixelBox(0, 0, 1, 0, 1, box.c, box.channels)
        target = fill.address, place.cols * pitch, pitch, other.zero_byte
        self._other.filled_by(fill, self._job.load(other.view, place, *target, None, place))
        fields = {
            "op": VecOp.LIN, "b_en": 1, "a_signed": int(addend.own_signed), "b_signed": int(other.signed), "a": own,
            "b": fill.address, "d": own, "n1": box.cols, "n0": pitch // lanes, "p": self._sums,
        }  # fmt: skip
        for name in "abd":
            fields |= {f"{name}_s1": 0 if name == "b" and addend.broadcast else pitch, f"{name}_s0": lanes}
        if addend.table:
            fields |= {"table": 1, "t": self._table}
        task = self._job.emit(Op.VEC, fields)
        task.waits.add(Sem.OWN_READY)
        self._other.read_by(fill, task)
        return task
