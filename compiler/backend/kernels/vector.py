"""Code for layers of the vector unit alone: element-wise operators, tables and maxima over windows."""

import itertools
from collections.abc import Iterator

import numpy as np

from compiler.backend.kernels.constant_blocks import vec_params
from compiler.backend.layers.layer import EltwiseLayer, MaxLayer
from compiler.backend.memory.operand import StagingArea, TensorOperand
from compiler.backend.memory.tensor_view import PixelBox, TensorView
from compiler.backend.program.copies import CopyLoop, copy_fields
from compiler.backend.program.job import JobProgram, StagingRing
from compiler.backend.program.semaphores import Sem
from compiler.backend.program.task import BufferFill, Ring, Task
from compiler.backend.tiling.engine_share import EngineShare
from compiler.ir import CompileError, Requantise
from hw.contract.isa import TABLE_BYTES, Op, VecOp
from hw.contract.params import SocParams

_MAX_TILE = 8192  #: bytes of one operand per tile: enough to hide start-up, small enough to overlap early
_MAX_COUNT = (1 << 12) - 1


class VectorJob:
    """What all generators of vector layers share: parameters in LV1, output ring, staging."""

    def __init__(
        self, params: SocParams, number: int, staging: StagingArea, share: EngineShare, q: Requantise, **header: int
    ) -> None:
        self.params, self.staging = params, staging
        self.job = JobProgram(params, number, share.index)
        self._at = self._stage_at = 0
        self._stage_at = staging.base
        self._table = q.table
        lanes, bias = params.vec_lanes, header.pop("bias", 0)
        scale = np.full(lanes, np.asarray(q.scale, np.float32).reshape(-1)[0], np.float32)
        block = vec_params(params, np.full(lanes, bias, np.int32), scale, zp_y=q.zero_point, lo=q.lo, hi=q.hi, **header)
        self.table_at = self._reserve(TABLE_BYTES) if q.table is not None else 0
        self._block = Ring(Sem.PARAMS_FULL, Sem.PARAMS_FREE, self._reserve(len(block)), len(block), 1)
        self.block = self._block.fill("params")
        loads: list[Task] = []
        if q.table is not None:
            loads += self.job.load_constant(q.table.tobytes(), self.table_at)
        loads += self.job.load_window(self.job.keep(block), self.block.address, len(block))
        self._block.filled_by(self.block, loads)

    def _reserve(self, size: int) -> int:
        word = self.params.lv1_word
        at, self._at = self._at, self._at + -(-size // word) * word
        return at

    @property
    def free(self) -> int:
        """Bytes of LV1 not yet reserved."""
        return self.params.lv1_bytes - self._at

    def ring(self, full: Sem, free: Sem, size: int, slots: int = 2) -> Ring:
        """A ring of LV1 buffers of ``size`` bytes."""
        size = -(-size // self.params.lv1_word) * self.params.lv1_word
        return Ring(full, free, self._reserve(size * slots), size, slots)

    def stage_ring(self, size: int) -> tuple[int, int]:
        """(base, size of one) of two LV2 staging buffers."""
        size = -(-size // self.params.lv1_word) * self.params.lv1_word
        base, self._stage_at = self._stage_at, self._stage_at + 2 * size
        if self._stage_at > self.staging.base + self.staging.size:
            raise CompileError(
                f"staging needs {self._stage_at - self.staging.base} bytes of LV2, {self.staging.size} are set aside: "
                "choose a preset with a larger lv2_bytes"
            )
        return base, size

    def stage(self, operand: TensorOperand, size: int, full: Sem, free: Sem) -> StagingRing | None:
        """A stage for an operand in DRAM; None if it lies in LV2."""
        return None if operand.view.on_chip else StagingRing(full, free, *self.stage_ring(size), 2)

    def spill(self, operand: TensorOperand, size: int) -> Ring | None:
        """A ring for results that live in DRAM; None if they live in LV2."""
        return None if operand.view.on_chip else Ring(Sem.SPILL_FULL, Sem.SPILL_FREE, *self.stage_ring(size), 2)

    def finished(self) -> JobProgram | None:
        """The job; None if it computes nothing."""
        return self.job if self.block.readers else None

    def vec(self, fields: dict[str, int]) -> Task:
        """Emit a VEC that uses the parameter block."""
        fields = fields | {"p": self.block.address}
        if self._table is not None:
            fields |= {"table": 1, "t": self.table_at}
        task = self.job.emit(Op.VEC, fields)
        self._block.read_by(self.block, task)
        return task


def boxes(shape: tuple[int, int, int, int], rows: int, cols: int, channels: int) -> Iterator[PixelBox]:
    """Windows that cover a tensor in order."""
    n, height, width, depth = shape
    for i in range(n):
        for c in range(0, depth, channels):
            for y in range(0, height, rows):
                for x in range(0, width, cols):
                    yield PixelBox(i, y, min(rows, height - y), x, min(cols, width - x), c, min(channels, depth - c))


def eltwise_job(
    params: SocParams, number: int, layer: EltwiseLayer, a: TensorOperand, b: TensorOperand | None, y: TensorOperand,
    staging: StagingArea,
    share: EngineShare,
) -> JobProgram | None:  # fmt: skip
    """The job of an element-wise layer on one engine; None if its share is empty."""
    lanes = params.vec_lanes
    header = {"ma": layer.ma, "mb": layer.mb, "bias": layer.bias}
    if not layer.raw:
        header |= {"zp_a": a.zero_point, "zp_b": b.zero_point if b else 0}
    build = VectorJob(params, number, staging, share, layer.requantise, **header)
    views = [o.view for o in (a, b, y) if o is not None]
    if layer.broadcast != "pixels" and all(v.is_dense for v in views):
        a, y = _as_bytes(a), _as_bytes(y)  # which byte belongs to which pixel makes no difference
        b = _as_bytes(b) if b and not layer.broadcast else b
    both = b is not None and not layer.broadcast
    shape = y.view.shape
    most = min(_MAX_TILE, build.free // 8, staging.size // 6) // lanes * lanes
    channels = min(shape[3], most, _MAX_COUNT * lanes)
    pitch = -(-channels // lanes) * lanes
    cols = max(1, min(shape[2], most // pitch, _MAX_COUNT))
    rows = max(1, min(shape[1], most // (pitch * cols), _MAX_COUNT // cols)) if cols == shape[2] else 1
    size = rows * cols * pitch
    ring_a = build.ring(Sem.A_FULL, Sem.A_FREE, size)
    ring_b = build.ring(Sem.B_FULL, Sem.B_FREE, size if both else pitch)
    out = build.ring(Sem.OUT_FULL, Sem.OUT_FREE, size)
    stage_a = build.stage(a, size, Sem.STAGE_FULL, Sem.STAGE_FREE)
    stage_b = build.stage(b, size if both else pitch, Sem.STAGE_B_FULL, Sem.STAGE_B_FREE) if b else None
    spill = build.spill(y, size)
    for box in share.of(boxes(shape, rows, cols, channels)):
        line = -(-box.channels // lanes) * lanes
        fill_a = ring_a.fill(box)
        loads = build.job.load(a.view, box, fill_a.address, box.cols * line, line, a.zero_byte, stage_a, box)
        ring_a.filled_by(fill_a, loads)
        fill_y = out.fill(box)
        fields = {
            "op": layer.op_code, "a_signed": int(a.signed and not layer.raw), "n1": box.rows * box.cols,
            "n0": line // lanes, "a": fill_a.address, "a_s1": line, "a_s0": lanes, "d": fill_y.address, "d_s1": line,
            "d_s0": lanes,
        }  # fmt: skip
        fill_b = None
        if b is not None:
            fill_b = _operand_b(build, layer, ring_b, b, box, line, stage_b)
            strides = {"": (line, lanes), "pixels": (0, lanes), "all": (0, 0)}[layer.broadcast]
            fields |= {
                "b_en": 1,
                "b_signed": int(b.signed),
                "b": fill_b.address,
                "b_s1": strides[0],
                "b_s0": strides[1],
            }
        vec = build.vec(fields)
        ring_a.read_by(fill_a, vec)
        if fill_b is not None:
            ring_b.read_by(fill_b, vec)
        out.filled_by(fill_y, [vec])
        store = build.job.store(y.view, box, fill_y.address, box.cols * line, line, spill, box)
        out.read_by(fill_y, store)
    return build.finished()


def _as_bytes(operand: TensorOperand) -> TensorOperand:
    """A dense tensor as one pixel with all the bytes as channels."""
    n, h, w, c = operand.view.shape
    view = TensorView.dense(operand.view.segment, operand.view.offset, (1, 1, 1, n * h * w * c))
    return TensorOperand(view, operand.signed, operand.zero_point)


def _operand_b(
    build: VectorJob,
    layer: EltwiseLayer,
    ring: Ring,
    b: TensorOperand,
    box: PixelBox,
    line: int,
    stage: StagingRing | None,
) -> BufferFill:
    """The LV1 buffer with B's part of a tile."""
    if not layer.broadcast:
        fill = ring.fill(box)
        loads = build.job.load(b.view, box, fill.address, box.cols * line, line, b.zero_byte, stage, box)
        ring.filled_by(fill, loads)
        return fill
    everywhere = layer.broadcast == "all"
    n = 0 if everywhere else min(box.n, b.view.shape[0] - 1)
    key = (n, 0 if everywhere else box.c)
    held = ring.find(key)
    if held:
        return held
    fill = ring.fill(key)
    if not everywhere:
        part = PixelBox(n, 0, 1, 0, 1, box.c, box.channels)
        loads = build.job.load(b.view, part, fill.address, line, line, b.zero_byte, stage, key)
    else:
        one = PixelBox(0, 0, 1, 0, 1, 0, 1)
        loads = build.job.load(b.view, one, fill.address, 1, 1, b.zero_byte, stage, key)
        # Every lane gets the same byte: the load repeats it with source stride 0.
        fields = loads[0].fields
        source, segment = fields["src"], fields["src_seg"]
        loops = [CopyLoop(build.params.vec_lanes, 0, 1)]
        loads[0].fields = copy_fields(source, fill.address, loops, 1) | {"src_seg": segment}
    ring.filled_by(fill, loads)
    return fill


def max_job(
    params: SocParams, number: int, layer: MaxLayer, x: TensorOperand, y: TensorOperand, staging: StagingArea,
    share: EngineShare,
    longest: int = 0,
) -> JobProgram | None:  # fmt: skip
    """The job of a maximum over windows on one engine; None if its share is empty. ``longest``: cycles that an
    instruction of VEC should not exceed (0: any)."""
    build = VectorJob(params, number, staging, share, layer.requantise, zp_a=x.zero_point)
    lanes, (kh, kw), (sh, sw), (top, left) = params.vec_lanes, layer.kernel, layer.strides, layer.pads
    budget = min(build.free - 2 * params.lv1_word, staging.size // 2) // 2
    rows, cols, channels = _max_tile(layer, y.view.shape, budget, lanes)
    pitch = -(-channels // lanes) * lanes
    in_size = ((rows - 1) * sh + kh) * ((cols - 1) * sw + kw) * pitch
    ring = build.ring(Sem.A_FULL, Sem.A_FREE, in_size)
    out = build.ring(Sem.OUT_FULL, Sem.OUT_FREE, rows * cols * pitch)
    stage = build.stage(x, in_size, Sem.STAGE_FULL, Sem.STAGE_FREE)
    spill = build.spill(y, rows * cols * pitch)
    lowest = 0x80 if x.signed else 0
    for box in share.of(boxes(y.view.shape, rows, cols, channels)):
        line = -(-box.channels // lanes) * lanes
        source = PixelBox(
            box.n, box.y * sh - top, (box.rows - 1) * sh + kh, box.x * sw - left, (box.cols - 1) * sw + kw,
            box.c, box.channels,
        )  # fmt: skip
        fill, row = ring.fill(box), source.cols * line
        ring.filled_by(fill, build.job.load(x.view, source, fill.address, row, line, lowest, stage, box))
        result = out.fill(box)
        vecs = []
        for first, count in _row_parts(box.rows, box.cols * line // lanes * kh * kw, longest):
            vecs.append(
                build.vec(
                    {
                        "op": VecOp.MAX, "a_signed": int(x.signed), "n2": count, "n1": box.cols, "n0": line // lanes,
                        "k1": kh, "k0": kw, "a": fill.address + first * sh * row, "a_s2": sh * row, "a_s1": sw * line,
                        "a_s0": lanes, "a_k1": row, "a_k0": line, "d": result.address + first * box.cols * line,
                        "d_s2": box.cols * line, "d_s1": line, "d_s0": lanes,
                    }
                )
            )  # fmt: skip
            ring.read_by(fill, vecs[-1])
        out.filled_by(result, vecs)
        out.read_by(result, build.job.store(y.view, box, result.address, box.cols * line, line, spill, box))
    return build.finished()


def _row_parts(rows: int, cycles: int, longest: int) -> list[tuple[int, int]]:
    """First row and count of nearly equal parts of ``rows`` rows of ``cycles`` cycles each."""
    pieces = min(rows, -(-rows * cycles // longest)) if longest else 1
    bounds = [rows * i // pieces for i in range(pieces + 1)]
    return [(low, high - low) for low, high in itertools.pairwise(bounds)]


def _max_tile(layer: MaxLayer, shape: tuple[int, int, int, int], budget: int, lanes: int) -> tuple[int, int, int]:
    """Rows, columns and channels of the tile that loads least, with input and output within ``budget`` bytes."""
    (kh, kw), (sh, sw) = layer.kernel, layer.strides
    _, height, width, depth = shape
    best: tuple[float, int, int, int] | None = None
    channels = -(-depth // lanes) * lanes
    while True:
        for parts in range(1, width + 1):
            cols = -(-width // parts)
            in_cols = (cols - 1) * sw + kw
            rows = height
            while rows and channels * (((rows - 1) * sh + kh) * in_cols + rows * cols) > budget:
                rows -= 1
            rows = min(rows, _MAX_COUNT)
            if rows:
                tiles = -(-height // rows) * -(-width // cols) * -(-depth // channels)
                load = tiles * (((rows - 1) * sh + kh) * in_cols * channels + 64 * lanes)
                if best is None or load < best[0]:
                    best = (load, rows, cols, channels)
        if channels == lanes:
            break
        channels = max(lanes, channels // 2 // lanes * lanes)
    if best is None:
        raise CompileError(
            f"operator {layer.name!r}: a {kh}x{kw} window of {lanes} channels exceeds the {budget} bytes an LV1 tile "
            "may have: choose a preset with a larger lv1_bytes"
        )
    return best[1], best[2], min(best[3], depth)
