"""Tensor placement: which memory, and which address in it, each tensor lies at.

Graph inputs lie in segment 2, outputs in 3, tensors shared with the host (and observed ones) in 5, constants in 1.
Everything else lies in LV2 (segment 6) while it fits, in DRAM (segment 4) otherwise.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from compiler import ir
from compiler.plan.layers.origin import Origin
from compiler.plan.memory.tensor_view import TensorView
from compiler.plan.regions.layer_order import LayerOrder
from hw.contract.isa import Segment
from hw.image import ParameterInfo

DRAM_ALIGN = 64  #: bytes: where tensors and weights in DRAM begin


@dataclass(frozen=True, eq=False)
class TensorBuffer:
    """``size`` bytes at ``offset`` of ``segment``, which hold one tensor, or several one after the other, that the
    layers with numbers ``users`` write and read. ``pitch``: bytes from a pixel to the next (0: pixels have no gaps).
    ``copy``: the segment and offset of the state in DRAM that has the same bytes, but while a row is being added."""

    size: int
    users: frozenset[int]
    segment: int | None  #: None for tensors that no layer touches, or that lie inside another's buffer
    offset: int
    pitch: int = 0
    copy: tuple[int, int] | None = None


@dataclass(frozen=True)
class TensorPlacement:
    """Buffers by tensor name. ``inside``: tensor → the tensor that it is a part of and its first element there: the
    result of a concatenation in place, or what a slice in place was taken from."""

    tensors: Mapping[str, ir.Tensor]
    by_tensor: Mapping[str, TensorBuffer]
    inside: Mapping[str, tuple[str, Origin]]
    sizes: Mapping[int, int]  #: bytes used of each segment
    moved: int  #: bytes that layers read and write in DRAM because LV2 is too small
    constants: bytes  #: constant tensors, the start of the weight segment
    exports: Mapping[str, int]  #: tensor → offset in segment 5 of an observer's copy
    order: LayerOrder
    parameters: tuple[ParameterInfo, ...] = ()  #: of the jobs, by their places
    #: As ``moved``, but with a part of a tensor that is read or written as it is, not as the whole.
    passed: int = 0

    def home(self, name: str) -> TensorBuffer:
        """Return the buffer that has the bytes of a tensor."""
        while name in self.inside:
            name = self.inside[name][0]
        return self.by_tensor[name]

    def view(self, name: str) -> TensorView:
        """Return how to reach the elements of a tensor."""
        tensor = self.tensors[name]
        if name in self.inside:
            outer, origin = self.inside[name]
            whole = self.view(outer)
            return TensorView(whole.segment, whole.address(0, *origin), tensor.nhwc, whole.strides)
        buffer = self.by_tensor[name]
        assert buffer.segment is not None
        dense = TensorView.dense(buffer.segment, buffer.offset, tensor.nhwc)
        return dense.spread(buffer.pitch) if buffer.pitch and buffer.segment == Segment.LV2 else dense
