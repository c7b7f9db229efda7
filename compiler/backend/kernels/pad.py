"""Constant padding: the load to LV1 fills, the store copies."""

from compiler.backend.kernels.registry import Kernel, KernelContext, kernel
from compiler.backend.layers.layer import Layer, PadLayer
from compiler.backend.memory.tensor_view import PixelBox, boxes
from compiler.backend.program.job import JobProgram
from compiler.backend.program.ring import Ring, StagingRing
from compiler.backend.program.semaphores import Sem
from compiler.backend.tiling.move_tile import move_tile_bytes
from compiler.plan.tiles import MoveTiles


@kernel
class PadKernel(Kernel[MoveTiles]):
    """Padding of rows and columns, on the first engine."""

    def match(self, layer: Layer, context: KernelContext) -> bool:
        """Any padding."""
        return isinstance(layer, PadLayer)

    def choose(self, layer: PadLayer, context: KernelContext) -> MoveTiles:
        """Return tiles that fit two buffers in LV1."""
        return MoveTiles(move_tile_bytes(context.params, context.lv1, context.budget.staging(0)))

    def emit(self, layer: PadLayer, tiles: MoveTiles, context: KernelContext) -> list[JobProgram]:
        """Return one job, whose tiles have whole rows of the output as far as they hold them."""
        size, staging = tiles.size, context.budget.staging(0)
        _, height, width, depth = context.operand(layer.output).view.shape
        channels = min(depth, size)
        cols = max(1, min(width, size // channels))
        rows = max(1, min(height, size // (channels * cols))) if cols == width else 1
        x, y = context.operand(layer.inputs[0]), context.operand(layer.output)
        job = JobProgram(context.params, context.number)
        ring = Ring(Sem.MOVE_FULL, Sem.MOVE_FREE, context.lv1.base, size, 2)
        stage = StagingRing(Sem.STAGE_FULL, Sem.STAGE_FREE, staging.base, size, 2)
        spill = Ring(Sem.SPILL_FULL, Sem.SPILL_FREE, staging.base + 2 * size, size, 2)
        top, left = layer.pads
        for box in boxes(y.view.shape, rows, cols, channels):
            source = PixelBox(box.n, box.y - top, box.rows, box.x - left, box.cols, box.c, box.channels)
            fill, line = ring.fill(box), box.cols * box.channels
            loads = job.load(x.view, source, fill.address, line, box.channels, layer.value & 0xFF, stage, box)
            ring.filled_by(fill, loads)
            ring.read_by(fill, job.store(y.view, box, fill.address, line, box.channels, spill, box))
        return [job]
