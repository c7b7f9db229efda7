"""Copies of results for an observer, from LV2 to DRAM."""

from compiler.backend.memory.tensor_view import TensorView
from compiler.backend.program.copies import MAX_RUN, merge, strided_copy, tiles
from compiler.backend.program.job import JobProgram
from hw.contract.isa import Op
from hw.contract.params import SocParams


def export_job(params: SocParams, number: int, source: TensorView, offset: int, segment: int) -> JobProgram:
    """Copy a tensor from LV2 to DRAM as it is."""
    job = JobProgram(params, number)
    n, h, w, c = source.shape
    sn, sh, sw = source.strides
    for src, dst, tile in tiles(merge([(n, sn, h * w * c), (h, sh, w * c), (w, sw, c), (c, 1, 1)]), MAX_RUN):
        fields = strided_copy(source.offset + src, offset + dst, tile)
        job.emit(Op.ST2, fields | {"src_seg": source.segment, "dst_seg": segment})
    return job
