"""Constant padding: the load to LV1 fills, the store copies."""

from dataclasses import dataclass

from compiler.backend.kernels.registry import Kernel, KernelContext, Plan, kernel
from compiler.backend.layers.layer import Layer, PadLayer
from compiler.backend.memory.tensor_view import PixelBox, boxes
from compiler.backend.program.job import JobProgram
from compiler.backend.program.ring import Ring
from compiler.backend.program.semaphores import Sem
from compiler.backend.program.staging_ring import StagingRing
from compiler.backend.tiling.move_tile import move_tile_bytes


@dataclass(frozen=True)
class PadPlan(Plan):
    """Tiles of ``rows`` x ``cols`` output pixels of ``channels`` channels, in buffers of ``size`` bytes."""

    layer: PadLayer
    rows: int
    cols: int
    channels: int
    size: int


@kernel
class PadKernel(Kernel[PadPlan]):
    """Padding of rows and columns, on the first engine."""

    def match(self, layer: Layer, context: KernelContext) -> bool:
        """Any padding."""
        return isinstance(layer, PadLayer)

    def plan(self, layer: PadLayer, context: KernelContext) -> PadPlan:
        """Whole rows as far as a tile holds them."""
        size = move_tile_bytes(context.params, context.lv1, context.budget.staging(0))
        _, height, width, depth = context.operand(layer.output).view.shape
        channels = min(depth, size)
        cols = max(1, min(width, size // channels))
        rows = max(1, min(height, size // (channels * cols))) if cols == width else 1
        return PadPlan("", layer, rows, cols, channels, size)

    def emit(self, plan: PadPlan, context: KernelContext) -> list[JobProgram]:
        """Return one job."""
        layer, size, staging = plan.layer, plan.size, context.budget.staging(0)
        x, y = context.operand(layer.inputs[0]), context.operand(layer.output)
        job = JobProgram(context.params, context.number)
        ring = Ring(Sem.MOVE_FULL, Sem.MOVE_FREE, context.lv1.base, size, 2)
        stage = StagingRing(Sem.STAGE_FULL, Sem.STAGE_FREE, staging.base, size, 2)
        spill = Ring(Sem.SPILL_FULL, Sem.SPILL_FREE, staging.base + 2 * size, size, 2)
        top, left = layer.pads
        for box in boxes(y.view.shape, plan.rows, plan.cols, plan.channels):
            source = PixelBox(box.n, box.y - top, box.rows, box.x - left, box.cols, box.c, box.channels)
            fill, line = ring.fill(box), box.cols * box.channels
            loads = job.load(x.view, source, fill.address, line, box.channels, layer.value & 0xFF, stage, box)
            ring.filled_by(fill, loads)
            ring.read_by(fill, job.store(y.view, box, fill.address, line, box.channels, spill, box))
        return [job]
