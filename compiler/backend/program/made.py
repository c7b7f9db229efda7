"""Which bytes of LV2 the operators of a region have made so far: when, by the estimate, and on which engine."""

from collections.abc import Mapping, Sequence

import numpy as np

from compiler.backend.memory.tensor_view import PixelBox, TensorView
from compiler.backend.program.extents import written_box
from compiler.backend.program.task import Task
from hw.contract.isa import Op, Segment
from hw.contract.params import SocParams


class Made:
    """Bytes of segment 6, of ``params.lv2_bytes``."""

    def __init__(self, params: SocParams) -> None:
        self._times = np.zeros(params.lv2_bytes, np.int32)
        self._engines = np.full(params.lv2_bytes, -1, np.int8)

    def add(self, engine: int, tasks: Sequence[Task], ends: Mapping[Task, int]) -> None:
        """Note the stores among ``tasks`` of an engine, which end at ``ends``."""
        for task in tasks:
            if task.op is Op.ST1 and task.numbers["dst_seg"] == Segment.LV2:
                box = written_box(task)
                box.view(self._times)[...] = ends[task]
                box.view(self._engines)[...] = engine

    def ready(self, view: TensorView, box: PixelBox) -> int:
        """When the last byte of ``box`` of a tensor is made; 0 if that was before the region."""
        where = view.bytes_of(box)
        return 0 if where is None else int(where.view(self._times).max())

    def engine(self, view: TensorView, box: PixelBox) -> int | None:
        """Return the engine that makes all of ``box``; None if several do, -1 if it was made before the region."""
        where = view.bytes_of(box)
        if where is None:
            return -1
        engines = where.view(self._engines)
        first = int(engines.flat[0])
        return first if (engines == first).all() else None
