"""Code for convolutions: tiles flow LV2 → LV1 → LV0 → MAC → VEC → LV1 → LV2 through rings of buffers."""

from dataclasses import dataclass, replace

import numpy as np

from compiler.backend.kernels.constant_blocks import vec_params
from compiler.backend.kernels.conv_constants import ConvConstants
from compiler.backend.kernels.kept_input import KeptInputLoader
from compiler.backend.layers.layer import ChannelTile, ConvLayer
from compiler.backend.memory.operand import StagingArea, TensorOperand
from compiler.backend.memory.tensor_view import PixelBox
from compiler.backend.program.copies import CopyLoop, contiguous, copy_fields
from compiler.backend.program.job import JobProgram, StagingRing
from compiler.backend.program.semaphores import Sem
from compiler.backend.program.task import BufferFill, Ring, Task
from compiler.backend.tiling.conv_geometry import (
    KernelChunk,
    PixelTile,
    TileGeometry,
    geometry,
    input_window,
    tile_window,
)
from compiler.backend.tiling.conv_plan import PARAMS_SLOTS, ConvPlan, lv0_slots, pixel_tiles
from compiler.backend.tiling.end_tiles import Ends, tapered
from compiler.backend.tiling.engine_share import EngineShare
from compiler.backend.tiling.mac_slices import parts
from compiler.ir import CompileError
from hw.contract.isa import TABLE_BYTES, Lv0Space, Lv0View, MacMode, Op, Segment, VecOp
from hw.contract.params import SocParams


@dataclass(frozen=True)
class Addend:
    """The second operand of the addition of a convolution, and what the bytes of the first, its own result, mean."""

    other: TensorOperand
    own_signed: bool
    own_zero_point: int


class ConvGenerator:
    """Generates jobs of a convolution: some channel tiles over the pixel tiles of one engine's ``share``.

    With ``stream``, weights come from DRAM chunk by chunk instead of lying in the weight window.
    """

    def __init__(
        self, params: SocParams, layer: ConvLayer, plan: ConvPlan, x: TensorOperand, y: TensorOperand,
        staging: StagingArea,
        stream: bool, share: EngineShare, addend: Addend | None = None, longest: int = 0,
    ) -> None:  # fmt: skip
        """``longest``: cycles that a MAC instruction should not exceed (0: any)."""
        self.params, self.layer, self.plan, self.addend, self.longest = params, layer, plan, addend, longest
        self.x, self.y, self.staging, self.stream = x, y, staging, stream
        self.images = x.view.shape[0]
        self.pixel_tiles = share.of(pixel_tiles(layer, plan.rows, plan.cols, self.images))
        self._resident: KeptInputLoader | None = None

    @property
    def tapers(self) -> bool:
        """Whether tiles at the ends of a job may be cut: in depthwise layers, which load nothing twice for it but the
        rows at the cuts, if input and output stay on chip."""
        return self.layer.depthwise and self.x.view.on_chip and self.y.view.on_chip

    def job(
        self, number: int, engine: int, tiles: list[ChannelTile], own_loads: bool = False, ends: Ends = (1, 1),
    ) -> JobProgram:  # fmt: skip
        """The job of layer ``number`` on ``engine`` that computes ``tiles``; ``own_loads``: see :class:`JobProgram`;
        ``ends``: parts of its first and its last tile, see :mod:`compiler.backend.tiling.end_tiles`."""
        self._job = JobProgram(self.params, number, engine, own_loads=own_loads)
        self._tiles = tiles
        self._rings()
        if self.plan.pixels_outer:
            steps = [(tile, pixels) for pixels in self.pixel_tiles for tile in tiles]
        else:
            steps = [(tile, pixels) for tile in tiles for pixels in self.pixel_tiles]
        for tile, pixels in tapered(steps, ends):
            self._tile(tile, pixels)
        return self._job

    # -- memory ----------------------------------------------------------------------------------------------
    def _rings(self) -> None:
        p, plan = self.params, self.plan
        self._table = 0  # LV1 address
        at = -(-TABLE_BYTES // p.lv1_word) * p.lv1_word if self.layer.requantise.table is not None else 0
        sizes = (plan.params_size * PARAMS_SLOTS, plan.out_size * 2, plan.act_size * plan.act_slots)
        starts = [at, at + sizes[0], at + sizes[0] + sizes[1], at + sum(sizes)]
        self._out = Ring(Sem.OUT_FULL, Sem.OUT_FREE, starts[1], plan.out_size, 2)
        self._act1 = Ring(Sem.ACT1_FULL, Sem.ACT1_FREE, starts[2], plan.act_size, plan.act_slots)
        if self.addend:
            other_at = starts[3] + plan.weights_lv1
            self._other = Ring(Sem.B_FULL, Sem.B_FREE, other_at, plan.out_size, 2)
        # LV0 and accumulator addresses are words and rows; accumulators are two halves.
        words = self._act_words()
        self._act0 = Ring(Sem.ACT0_FULL, Sem.ACT0_FREE, 0, words, lv0_slots(words, p.lv0_act_bytes // p.rows))
        self._acc = Ring(Sem.ACC_FULL, Sem.ACC_FREE, 0, p.lv0_acc_rows // 2, 2)
        self._lv2_rings()
        self._constants = ConvConstants(
            p, self.layer, plan, self._job, self._tiles, weight_ring=starts[3], params_ring=starts[0],
            stream=self._weight2,
        )  # fmt: skip
        if self.layer.requantise.table is not None:
            self._constants.load_once(self.layer.requantise.table.tobytes(), self._table)
        if self.addend:
            self._sum_params = self._other.base + 2 * plan.out_size
            self._constants.load_once(self._sum_block(self.addend), self._sum_params)

    def _act_words(self) -> int:
        """LV0 words of a buffer for the activations of one chunk, such that each starts at a whole word of LV1."""
        p, plan = self.params, self.plan
        sizes = [
            geometry(self.layer, c, plan.rows, plan.cols, plan.fold, p).lv0_bytes for c in self._chunks(self._span)
        ]
        return -(-max(sizes) // p.lv1_word) * p.lv1_word // p.rows

    def _lv2_rings(self) -> None:
        """Buffers in the staging area: streamed weights and outputs take what they need, inputs the rest."""
        p, plan, at, end = self.params, self.plan, self.staging.base, self.staging.base + self.staging.size
        keeps = not self.x.view.on_chip and self._keeps_input(end)
        if self._resident:
            end = self._resident.kept.base
        self._weight2: Ring | None = None
        if self.stream:
            self._weight2 = Ring(Sem.WEIGHT2_FULL, Sem.WEIGHT2_FREE, at, plan.weight_size, 2)
            at += 2 * plan.weight_size
        self._spill: Ring | None = None
        if not self.y.view.on_chip:
            width = sum(tile.outs for tile in self._tiles)
            size, gathered = (-(-plan.rows * plan.cols * c // p.lv1_word) * p.lv1_word for c in (p.out_channels, width))
            self._gather = plan.pixels_outer and 2 * gathered <= (end - at) // 2
            size = gathered if self._gather else size
            self._spill = Ring(Sem.SPILL_FULL, Sem.SPILL_FREE, at, size, 2)
            self._gathered: list[Task] = []
            at += 2 * size
        self._other_stage: StagingRing | None = None
        if self.addend and not self.addend.other.view.on_chip:
            size = -(-plan.rows * plan.cols * p.out_channels // p.lv1_word) * p.lv1_word
            self._other_stage = StagingRing(Sem.STAGE_B_FULL, Sem.STAGE_B_FREE, at, size, 2)
            at += 2 * size
        self._stage: StagingRing | None = None
        self._stage_whole = False
        if not self.x.view.on_chip and not keeps:
            whole = self._stage_size([tile_window(self.layer, t, 0, self._span) for t in self.pixel_tiles])
            part = self._stage_size(
                [self._window(tile, chunk, 0) for tile in self.pixel_tiles for chunk in self._chunks(self._span)]
            )
            self._stage_whole = 2 * whole <= end - at
            size = whole if self._stage_whole else part
            self._stage = StagingRing(Sem.STAGE_FULL, Sem.STAGE_FREE, at, size, 2)
            at += 2 * size
        if at > end:
            raise CompileError(
                f"operator {self.layer.name!r}: its tiles need {at - self.staging.base} bytes of LV2 to pass from and "
                f"to DRAM, {self.staging.size} are set aside: choose a preset with a larger lv2_bytes"
            )

    def _keeps_input(self, end: int) -> bool:
        """Let the input stay in LV2, at the end of the staging area, if it fits there beside what else passes through;
        jobs after the first find it."""
        if self._resident is None and self.x.view.is_dense and self.pixel_tiles:
            boxes = [tile_window(self.layer, tile, 0, self._span) for tile in self.pixel_tiles]
            first, last = KeptInputLoader.span(self.x.view, boxes)
            base = (end - (last - first)) // self.params.lv1_word * self.params.lv1_word
            alone = self.y.view.on_chip and not self.stream and (not self.addend or self.addend.other.view.on_chip)
            if base >= self.staging.base + (0 if alone else self.staging.size // 3):
                chunks = self._chunks(self._span)
                read = (self._window(tile, chunk, 0) for tile in self.pixel_tiles for chunk in chunks)
                self._resident = KeptInputLoader(self.x.view, base, first, last, read)
        if self._resident:
            self._resident.enter(self._job)
        return self._resident is not None

    @property
    def _span(self) -> int:
        return max(tile.channels for tile in self.layer.tiles)

    def _chunks(self, channels: int) -> list[KernelChunk]:
        return self.plan.chunks(self.layer, channels)

    def _window(self, pixels: PixelTile, chunk: KernelChunk, first: int) -> PixelBox:
        g = geometry(self.layer, chunk, pixels.rows, pixels.cols, self.plan.fold, self.params)
        return input_window(self.layer, chunk, g, pixels, first)

    def _stage_size(self, boxes: list[PixelBox]) -> int:
        inside = [self.x.view.clip(box) for box in boxes]
        size = max((box.rows * box.cols * box.channels for box in inside if box), default=0)
        return -(-size // self.params.lv1_word) * self.params.lv1_word

    # -- one tile --------------------------------------------------------------------------------------------
    def _tile(self, tile: ChannelTile, pixels: PixelTile) -> None:
        acc = self._acc.fill((tile, pixels))
        macs: list[Task] = []
        for chunk in self._chunks(tile.channels):
            g = geometry(self.layer, chunk, pixels.rows, pixels.cols, self.plan.fold, self.params)
            act = self._activations(tile, pixels, chunk, g)
            weights = self._constants.weights(tile, chunk)
            for task in self._macs(g, pixels, act.address, weights.address, acc.address, bool(macs)):
                macs.append(task)
                self._act0.read_by(act, task)
                self._constants.weights_read_by(weights, task)
        self._acc.filled_by(acc, macs)
        self._drain(tile, pixels, acc)

    def _activations(self, tile: ChannelTile, pixels: PixelTile, chunk: KernelChunk, g: TileGeometry) -> BufferFill:
        """The LV0 buffer with the input of ``chunk``, loaded on the way if need be."""
        key = (pixels, chunk, tile.first)
        held = self._act0.find(key)
        if held:
            return held
        lv1 = self._act1.find(key)
        if lv1 is None:
            lv1 = self._act1.fill(key)
            box = input_window(self.layer, chunk, g, pixels, tile.first)
            whole = tile_window(self.layer, pixels, tile.first, tile.channels) if self._stage_whole else None
            place = (lv1.address, g.in_cols * g.pixel_bytes, g.pixel_bytes, self.x.zero_byte)
            if self._resident:
                loads = self._resident.load(box, *place)
            else:
                held_as = (pixels, tile.first, tile.channels) if self._stage_whole else key
                loads = self._job.load(self.x.view, box, *place, self._stage, held_as, whole)
            self._act1.filled_by(lv1, loads)
        held = self._act0.fill(key)
        loads = self._load_act0(pixels, chunk, g, lv1.address, held.address * self.params.rows)
        for load in loads:
            self._act1.read_by(lv1, load)
        self._act0.filled_by(held, loads)
        return held

    def _load_act0(
        self, pixels: PixelTile, chunk: KernelChunk, g: TileGeometry, source: int, target: int
    ) -> list[Task]:
        p = self.params
        if self.layer.depthwise:
            copies = contiguous(source, target * p.pes, g.lv1_bytes)
            return self._job.emit_all(Op.LD0, copies, space=Lv0Space.ACT, view=Lv0View.INTERLEAVED)
        if self.plan.fold:
            # Neighbouring columns of a row are adjacent bytes in LV1: one run per output pixel takes them all.
            run, step = chunk.cols * chunk.channels, self.layer.strides[1] * chunk.channels
            loops = [
                CopyLoop(g.in_rows, g.in_cols * chunk.channels, g.row_words * p.rows),
                CopyLoop(pixels.cols, step, g.pixel_words * p.rows),
            ]
            copies = [copy_fields(source, target, loops, g.pixel_words * p.rows, (0, run), self.x.zero_byte)]
        else:
            copies = contiguous(source, target, g.lv1_bytes)
        return self._job.emit_all(Op.LD0, copies, space=Lv0Space.ACT, pe_mask=(1 << p.pes) - 1)

    def _macs(self, g: TileGeometry, pixels: PixelTile, act: int, wgt: int, acc: int, accumulate: bool) -> list[Task]:
        layer, dtype = self.layer, self.layer.weights.dtype
        most = self.longest // pixels.pixels if self.longest else g.block_count
        tasks = []
        for part in parts(g.blocks, g.block_words, most):
            fields = {
                "mode": MacMode.DEPTHWISE if layer.depthwise else MacMode.DENSE,
                "accumulate": int(accumulate or part.first > 0),
                "x_signed": int(self.x.signed), "w_signed": int(dtype.kind == "i"), "x_zp": self.x.zero_byte,
                "w_zp": layer.weight_zero_point & 0xFF,
                "act": act + part.act, "wgt": wgt + part.first * self.params.rows, "acc": acc,
                "p1": pixels.rows, "p0": pixels.cols, "p1_s": g.pixel_steps[0], "p0_s": g.pixel_steps[1],
                "acc_s": pixels.cols,
            }  # fmt: skip
            for name, count, step in zip("210", part.blocks, g.block_words, strict=True):
                fields |= {f"n{name}": count, f"k{name}_s": step if count > 1 else 0}
            tasks.append(self._job.emit(Op.MAC, fields))
        return tasks

    # -- requantise and store --------------------------------------------------------------------------------
    def _drain(self, tile: ChannelTile, pixels: PixelTile, acc: BufferFill) -> None:
        p, table = self.params, self.layer.requantise.table
        block, parameters = self._constants.params(tile, pixels.region)
        groups = -(-tile.outs // p.vec_lanes)
        out = self._out.fill((tile, pixels))
        pitch = groups * p.vec_lanes
        fields = {
            "op": VecOp.LIN, "src_acc": 1, "per_channel": 1, "a": acc.address, "a_s1": 1, "n1": pixels.pixels,
            "n0": groups, "d": out.address, "d_s1": pitch, "d_s0": p.vec_lanes, "p": parameters,
        }  # fmt: skip
        if table is not None:
            fields |= {"table": 1, "t": self._table}
        vec = self._job.emit(Op.VEC, fields)
        self._constants.params_read_by(block, vec)
        self._acc.read_by(acc, vec)
        box = PixelBox(pixels.n, pixels.y, pixels.rows, pixels.x, pixels.cols, tile.out, tile.outs)
        writers = [vec]
        if self.addend:
            writers.append(self._add(self.addend, box, out.address, groups))
            vec.signals.add(Sem.OWN_READY)
        self._out.filled_by(out, writers)
        row = pixels.cols * pitch
        if self._spill and self._gather:
            store = self._store_gathered(self._spill, tile, box, out.address, row, pitch)
        else:
            store = self._job.store(self.y.view, box, out.address, row, pitch, self._spill, (tile, pixels))
        self._out.read_by(out, store)

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
            spill.read_by(self._slot, self._job.spill(self.y.view, whole, self._slot.address))
        return self._gathered[-1]

    def _add(self, addend: Addend, box: PixelBox, own: int, groups: int) -> Task:
        """Add the other operand to the tile at LV1 address ``own``, in place."""
        lanes, other = self.params.vec_lanes, addend.other
        pitch = groups * lanes
        fill = self._other.fill(box)
        loads = self._job.load(
            other.view, box, fill.address, box.cols * pitch, pitch, other.zero_byte, self._other_stage, box
        )  # fmt: skip
        self._other.filled_by(fill, loads)
        fields = {
            "op": VecOp.LIN, "b_en": 1, "a_signed": int(addend.own_signed), "b_signed": int(other.signed),
            "a": own, "b": fill.address, "d": own, "n1": box.rows * box.cols, "n0": groups, "p": self._sum_params,
        }  # fmt: skip
        for name in "abd":
            fields |= {f"{name}_s1": pitch, f"{name}_s0": lanes}
        task = self._job.emit(Op.VEC, fields)
        task.waits.add(Sem.OWN_READY)
        self._other.read_by(fill, task)
        return task

    def _sum_block(self, addend: Addend) -> bytes:
        """VEC parameters of the addition."""
        addition, lanes = self.layer.addition, self.params.vec_lanes
        assert addition is not None
        q = addition.op.requantise
        scale = np.full(lanes, np.asarray(q.scale, np.float32).reshape(-1)[0], np.float32)
        return vec_params(
            self.params, np.full(lanes, addition.op.bias, np.int32), scale, zp_a=addend.own_zero_point,
            zp_b=addend.other.zero_point, ma=addition.m_own, mb=addition.m_other, zp_y=q.zero_point, lo=q.lo, hi=q.hi,
        )  # fmt: skip
