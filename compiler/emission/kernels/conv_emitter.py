"""Instructions of convolutions: tiles flow LV2 → LV1 → LV0 → MAC → VEC → LV1 → LV2 through rings of buffers."""

from collections.abc import Sequence
from dataclasses import replace

from compiler.emission.kernels.conv_buffers import ConvBuffers, kept_input
from compiler.emission.kernels.conv_constants import ConvConstants
from compiler.emission.kernels.conv_data import ConvData, sum_block
from compiler.emission.kernels.conv_lv0 import lv0_loads
from compiler.emission.kernels.conv_work import Addend, ConvWork
from compiler.emission.program import MOST_LV0_SLOTS, BufferFill, CopyLoop, JobProgram, Ring, Sem, Task, copy_fields
from compiler.plan.layers import ChannelTile, params_bytes
from compiler.plan.memory.tensor_view import PixelBox
from compiler.plan.tiling.conv_tiling import (
    ALONE,
    ENDS,
    HALVES,
    WHOLE,
    Ends,
    KernelChunk,
    PixelTile,
    TileGeometry,
    mac_slices,
    split_ends,
)
from compiler.plan.tiling.tile_parts import TileParts
from hw.contract.isa import MacMode, Op, Segment, VecOp

_SHORT = 1 << 14  #: cycles of the array in a job whose ends are cut where that pays


class ConvEmitter:
    """Emits the jobs of one engine's part of a convolution, one after the other: each computes some of the channel
    tiles, over all pixel tiles of the engine. Those after the first find an input that stays in LV2."""

    def __init__(self, work: ConvWork) -> None:
        self.work = work
        self.kept = kept_input(work)

    def splits_ends(self, tiles: Sequence[ChannelTile]) -> bool:
        """Return whether pixel tiles at the ends of a job that computes ``tiles`` may be cut, if input and output stay
        on chip: in depthwise layers, which load nothing twice for it but the rows at the cuts, and in short jobs, of
        which the ends are much, unless a channel tile finds inputs where the one before left them."""
        work = self.work
        if not (work.x.view.on_chip and work.y.view.on_chip):
            return False
        return work.layer.depthwise or (self._mac(tiles) <= _SHORT and not self._inputs_stay(tiles))

    def _inputs_stay(self, tiles: Sequence[ChannelTile]) -> bool:
        """Return whether inputs of pixel tiles may stay in a ring from one channel tile to the next. Parts of the first
        and the last tile would go between them, and buffers would not come free in the order of the ring."""
        work = self.work
        inputs = len(work.pixel_tiles) * min(len(work.chunks(tile.channels)) for tile in tiles)
        return len(tiles) > 1 and not work.tiling.pixels_outer and inputs <= max(work.tiling.act_slots, MOST_LV0_SLOTS)

    def possible_ends(self, tiles: Sequence[ChannelTile]) -> tuple[Ends, ...]:
        """Return the ends to choose from for a job that computes ``tiles``, if they may be cut."""
        if self.work.layer.depthwise:
            return ENDS
        return ALONE if len(tiles) * len(self.work.pixel_tiles) == 1 else HALVES

    def _mac(self, tiles: Sequence[ChannelTile]) -> int:
        """Return the cycles of the array in a job that computes ``tiles``."""
        work = self.work
        blocks = {count: self._blocks(count) for count in {tile.channels for tile in tiles}}
        return sum(
            work.parts(tile, pixels).pixels * blocks[tile.channels] for tile in tiles for pixels in work.pixel_tiles
        )

    def _blocks(self, channels: int) -> int:
        first = self.work.pixel_tiles[0]
        return sum(self.work.geometry(first, chunk).block_count for chunk in self.work.chunks(channels))

    def job(
        self, number: int, engine: int, tiles: list[ChannelTile], own_loads: bool = False, ends: Ends = WHOLE
    ) -> JobProgram:
        """Return the job of layer ``number`` on ``engine`` that computes ``tiles``; ``own_loads``: see
        :class:`JobProgram`; ``ends``: parts of its first and its last tile, see
        :mod:`compiler.plan.tiling.conv_tiling`."""
        work = self.work
        self._job = JobProgram(work.params, number, engine, own_loads)
        self._tiles = tiles
        if self.kept:
            self.kept.enter(self._job)
        self._buffers = ConvBuffers(work, tiles, self.kept)
        self._constants = ConvConstants(
            work.params, work.layer, work.tiling, self._job, tiles, weight_ring=self._buffers.weights,
            params_ring=self._buffers.params, stream=self._buffers.streamed,
        )  # fmt: skip
        if work.layer.table is not None:
            self._constants.load_once(work.layer.table.tobytes(), self._buffers.table)
        if work.addend:
            zero_points = work.addend.own_zero_point, work.addend.other.zero_point
            block = sum_block(work.layer, *zero_points, work.params)
            self._constants.load_once(block, self._buffers.sum_params, ConvData(work.layer.output, sum=True))
        if work.tiling.pixels_outer:
            steps = [(tile, pixels) for pixels in work.pixel_tiles for tile in tiles]
        else:
            steps = [(tile, pixels) for tile in tiles for pixels in work.pixel_tiles]
        for tile, pixels in split_ends(steps, ends):
            self._tile(tile, pixels)
        self._buffers.close(self._job)
        return self._job

    # -- one tile --------------------------------------------------------------------------------------------
    def _tile(self, tile: ChannelTile, pixels: PixelTile) -> None:
        acc, parts = self._buffers.acc.fill((tile, pixels)), self.work.parts(tile, pixels)
        macs: list[Task] = []
        for chunk in self.work.chunks(tile.channels):
            act = self._activations(tile, pixels, chunk, self.work.geometry(pixels, chunk))
            weights, g = self._constants.weights(tile, chunk), self.work.part_geometry(parts, chunk)
            for task in self._macs(g, parts, act.address, weights.address, acc.address, bool(macs)):
                macs.append(task)
                self._buffers.act0.read_by(act, task)
                self._constants.weights_read_by(weights, task)
        self._buffers.acc.filled_by(acc, macs)
        self._drain(tile, pixels, acc)

    def _activations(self, tile: ChannelTile, pixels: PixelTile, chunk: KernelChunk, g: TileGeometry) -> BufferFill:
        """Return the LV0 buffer with the input of ``chunk``, loaded on the way if need be."""
        key, buffers = (pixels, chunk, tile.first), self._buffers
        parts = self.work.parts(tile, pixels).count

        def load1(lv1: BufferFill) -> list[Task]:
            box = self.work.input_box(pixels, chunk, tile.first)
            place = (lv1.address, g.in_cols * g.pixel_bytes, g.pixel_bytes, self.work.x.zero_byte)
            if self.kept:
                return self.kept.load(box, *place)
            staged = buffers.staged(pixels, tile) or box
            return self._job.load(self.work.x.view, box, *place, buffers.stage, staged, staged)

        def load0(held: BufferFill) -> list[Task]:
            lv1 = buffers.act1.holding(key, load1)
            copies = lv0_loads(self.work, tile, pixels, chunk, lv1.address, held.address * self.work.params.rows)
            loads = self._job.emit_all(Op.LD0, list(copies))
            buffers.act1.read_by(lv1, *loads)
            return loads

        return buffers.act0.holding((key, parts), load0)

    def _macs(self, g: TileGeometry, parts: TileParts, act: int, wgt: int, acc: int, accumulate: bool) -> list[Task]:
        layer, dtype = self.work.layer, self.work.layer.weights.dtype
        most = self.work.longest // parts.pixels if self.work.longest else g.block_count
        tasks, rows = [], self.work.params.rows
        alike = {
            "mode": MacMode.DEPTHWISE if layer.depthwise else MacMode.DENSE, "accumulate": 1,
            "x_signed": int(self.work.x.signed), "w_signed": int(dtype.kind == "i"), "x_zp": self.work.x.zero_byte,
            "w_zp": layer.weight_zero_point & 0xFF, "act": 0, "wgt": 0, "acc": acc,
            "p1": parts.rows, "p0": parts.cols, "p1_s": g.pixel_steps[0], "p0_s": g.pixel_steps[1],
            "acc_s": parts.cols,
        }  # fmt: skip
        for part in mac_slices(g.blocks, g.block_words, most):
            fields = {**alike, "act": act + part.act, "wgt": wgt + part.first * rows}
            if not (accumulate or part.first):
                fields["accumulate"] = 0
            for name, count, step in zip("210", part.blocks, g.block_words, strict=True):
                fields |= {f"n{name}": count, f"k{name}_s": step if count > 1 else 0}
            tasks.append(self._job.emit(Op.MAC, fields))
        return tasks

    # -- requantise and store --------------------------------------------------------------------------------
    def _drain(self, tile: ChannelTile, pixels: PixelTile, acc: BufferFill) -> None:
        p = self.work.params
        block, parameters = self._constants.params(tile, pixels.area)
        groups = -(-tile.outs // p.vec_lanes)
        out = self._buffers.out.fill((tile, pixels))
        pitch, parts = groups * p.vec_lanes, self.work.parts(tile, pixels)
        fields = {
            "op": VecOp.LIN, "src_acc": 1, "per_channel": 1, "a": acc.address, "a_s1": 1, "n1": pixels.pixels,
            "n0": groups, "d": out.address, "d_s1": pitch, "d_s0": p.vec_lanes, "p": parameters,
        }  # fmt: skip
        if parts.count > 1:
            fields |= {
                "n2": parts.rows, "n1": parts.cols, "n0": parts.count, "a_s2": parts.cols,
                "d_s2": pixels.cols * pitch, "d_s0": (parts.y_step * pixels.cols + parts.x_step) * pitch,
            }  # fmt: skip
        if self.work.layer.requantise.table is not None:
            fields |= {"table": 1, "t": self._buffers.table}
        vec = self._job.emit(Op.VEC, fields)
        self._constants.params_read_by(block, vec)
        self._buffers.acc.read_by(acc, vec)
        box = PixelBox(pixels.n, pixels.y, pixels.rows, pixels.x, pixels.cols, tile.out, tile.outs)
        writers = [vec]
        if self.work.addend:
            writers.append(self._add(self.work.addend, box, out.address, groups, block, parameters))
            vec.signals.add(Sem.OWN_READY)
        self._buffers.out.filled_by(out, writers)
        row = pixels.cols * pitch
        if self._buffers.spill and self._buffers.gather:
            store = self._store_gathered(self._buffers.spill, tile, box, out.address, row, pitch)
        else:
            store = self._job.store(self.work.y.view, box, out.address, row, pitch, self._buffers.spill, (tile, pixels))
        self._buffers.out.read_by(out, store)

    def _store_gathered(
        self, spill: Ring, tile: ChannelTile, box: PixelBox, source: int, row: int, pitch: int
    ) -> Task:  # fmt: skip
        """Store a tile beside those of other channels, so that they go to DRAM in long runs, after the last."""
        first, last = self._tiles[0], self._tiles[-1]
        width = last.out + last.outs - first.out
        if tile is first:
            self._gathered = []
            self._slot = spill.fill(box)
        loops = [CopyLoop(box.rows, row, box.cols * width), CopyLoop(box.cols, pitch, width)]
        fields = copy_fields(source, self._slot.address + tile.out - first.out, loops, tile.outs)
        self._gathered.append(self._job.emit(Op.ST1, fields | {"dst_seg": Segment.LV2}))
        if tile is last:
            spill.filled_by(self._slot, self._gathered)
            whole = replace(box, c=first.out, channels=width)
            spill.read_by(self._slot, self._job.spill(self.work.y.view, whole, self._slot.address))
        return self._gathered[-1]

    def _add(
        self, addend: Addend, box: PixelBox, own: int, groups: int, block: BufferFill, parameters: int
    ) -> Task:  # fmt: skip
        """Add the other operand to the tile at LV1 address ``own``, in place; ``block``, ``parameters``: where those of
        the tile are."""
        lanes = self.work.params.vec_lanes
        pitch = groups * lanes
        fill = None if addend.constant else self._other(addend, box, pitch)
        fields = {
            "op": VecOp.LIN, "b_en": 1, "a_signed": int(addend.own_signed), "b_signed": int(addend.other.signed),
            "a": own, "b": fill.address if fill else parameters + params_bytes(self.work.params), "d": own,
            "n1": box.rows * box.cols, "n0": groups, "p": self._buffers.sum_params,
        }  # fmt: skip
        for name in "abd":
            fields |= {f"{name}_s1": 0 if name == "b" and addend.broadcast else pitch, f"{name}_s0": lanes}
        if addend.table:
            fields |= {"table": 1, "t": self._buffers.table}
        task = self._job.emit(Op.VEC, fields)
        task.waits.add(Sem.OWN_READY)
        if fill:
            self._buffers.other.read_by(fill, task)
        else:
            self._constants.params_read_by(block, task)
        return task

    def _other(self, addend: Addend, box: PixelBox, pitch: int) -> BufferFill:
        """Return the LV1 buffer with the other operand of a sum, pixels ``pitch`` bytes apart."""
        ring, other, stage = self._buffers.other, addend.other, self._buffers.other_stage
        place = replace(box, n=0, y=0, rows=1, x=0, cols=1) if addend.broadcast else box
        row, zero = place.cols * pitch, other.zero_byte
        return ring.holding(
            place, lambda fill: self._job.load(other.view, place, fill.address, row, pitch, zero, stage, place)
        )
