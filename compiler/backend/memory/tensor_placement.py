"""TensorPlacement: which memory, and which address in it, each tensor lives at.

Graph inputs live in segment 2, outputs in 3, tensors shared with the host (and observed ones) in 5, constants in 1.
Everything else lives in LV2 (segment 6) while it fits, in DRAM (segment 4) otherwise; short-lived and small tensors
first. Reshaped tensors share a home; inputs of a channel concatenation are written straight into its output; the
result of an element-wise operator, or of a convolution with an addition, takes the place of an operand that dies
there. Pixels that only depthwise convolutions read start at words of LV2, see
:mod:`compiler.backend.memory.pixel_pitch`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from compiler import ir
from compiler.backend.layers.layer import ConvLayer, EltwiseLayer, Layer, MaxLayer, PadLayer
from compiler.backend.memory.first_fit import FirstFit
from compiler.backend.memory.pixel_pitch import padded_pitches
from compiler.backend.memory.tensor_view import TensorView
from hw.contract.isa import Segment
from hw.contract.params import SocParams

_STRIDED = (ConvLayer, EltwiseLayer, MaxLayer, PadLayer)  #: layers that read and write tensors with gaps
_DRAM_ALIGN = 64


@dataclass
class TensorBuffer:
    """A buffer: one or more tensors of equal size that share it, its life in layer numbers, and how often a layer
    reads or writes all of it. ``size`` counts the padding once it lies in LV2."""

    size: int
    start: int
    end: int
    uses: int = 0
    segment: int | None = None  #: None: to be chosen between LV2 and DRAM
    offset: int = 0
    pitch: int = 0  #: bytes from a pixel to the next in LV2; 0: none between them
    padding: int = 0  #: bytes between pixels in LV2


@dataclass
class TensorPlacement:
    """Homes by tensor name. ``inside``: tensor → (concatenation output, byte offset) it is written into."""

    tensors: dict[str, ir.Tensor]
    by_tensor: dict[str, TensorBuffer] = field(default_factory=dict)
    inside: dict[str, tuple[str, int]] = field(default_factory=dict)
    root: dict[str, str] = field(default_factory=dict)  #: reshaped tensor → the tensor whose bytes it shares
    sizes: dict[int, int] = field(default_factory=dict)  #: bytes used of each segment
    moved: int = 0  #: bytes layers read and write in DRAM because LV2 is too small for their homes
    constants: bytes = b""
    exports: dict[str, int] = field(default_factory=dict)  #: tensor → offset in segment 5 of an observer's copy

    def view(self, name: str) -> TensorView:
        """How to reach the elements of a tensor."""
        tensor = self.tensors[name]
        if name in self.inside:
            outer, offset = self.inside[name]
            whole = self.view(outer)
            return TensorView(whole.segment, whole.offset + offset, tensor.nhwc, whole.strides)
        home = self.by_tensor[name]
        assert home.segment is not None
        dense = TensorView.dense(home.segment, home.offset, tensor.nhwc)
        return dense.spread(home.pitch) if home.pitch and home.segment == Segment.LV2 else dense


def place(
    graph: ir.Graph, layers: list[Layer], params: SocParams, reserve: int, budget: int, observe: bool
) -> TensorPlacement:
    """Choose homes. LV2 homes lie in ``reserve`` ... ``budget`` of segment 6. With ``observe`` no two tensors share
    DRAM, and :attr:`TensorPlacement.exports` gives each tensor in LV2 a place there too."""
    homes = TensorPlacement(graph.tensors)
    _share(graph, layers, homes)
    _concatenate_in_place(graph, layers, homes)
    _compute_in_place(graph, layers, homes)
    _pad_pixels(graph, layers, homes, params)
    _allocate(homes, params, reserve, budget, observe)
    return homes


def _share(graph: ir.Graph, layers: list[Layer], homes: TensorPlacement) -> None:
    """One home per group of tensors joined by reshapes, with life and forced segment."""
    root = homes.root
    root.update({name: name for name in graph.tensors})
    for op in graph.ops:
        if isinstance(op, ir.Reshape):
            root[op.output] = root[op.inputs[0]]
    made: dict[str, TensorBuffer] = {}
    for name, tensor in graph.tensors.items():
        home = made.setdefault(root[name], TensorBuffer(tensor.size, len(layers), -1))
        homes.by_tensor[name] = home
        if tensor.data is not None:
            home.segment = Segment.WEIGHTS
    for number, layer in enumerate(layers):
        host = isinstance(layer.op, ir.Host)
        written = layer.op.outputs if isinstance(layer.op, ir.Host) else [layer.output]
        for name in [*layer.inputs, *written]:
            home = homes.by_tensor[name]
            home.start, home.end = min(home.start, number), max(home.end, number)
            home.uses += 1
            if host and home.segment is None:
                home.segment = Segment.SHARED
    for port in graph.outputs:
        homes.by_tensor[port.tensor].segment = Segment.OUTPUTS
    for port in graph.inputs:
        homes.by_tensor[port.tensor].segment = Segment.INPUTS


def _concatenate_in_place(graph: ir.Graph, layers: list[Layer], homes: TensorPlacement) -> None:
    makers = {layer.output: layer for layer in layers}
    reshaped = {op.inputs[0] for op in graph.ops if isinstance(op, ir.Reshape)}
    for layer in layers:
        if layer.kind != "concat" or not isinstance(layer.op, ir.Concat):
            continue
        out = graph.tensors[layer.output]
        if layer.op.axis % len(out.shape) != len(out.shape) - 1:
            continue
        target, offset = homes.by_tensor[layer.output], 0
        for name in layer.inputs:
            users = [user for user in layers if name in user.inputs and user is not layer]
            movable = homes.by_tensor[name].segment is None and layer.inputs.count(name) == 1
            if (
                movable
                and isinstance(makers.get(name), _STRIDED)
                and all(isinstance(user, _STRIDED) for user in users)
                and name not in reshaped
            ):
                homes.inside[name] = (layer.output, offset)
                target.start = min(target.start, homes.by_tensor[name].start)
                target.end = max(target.end, homes.by_tensor[name].end)
                homes.by_tensor[name].size = 0
            offset += graph.tensors[name].shape[-1]


def _compute_in_place(graph: ir.Graph, layers: list[Layer], homes: TensorPlacement) -> None:
    for number, layer in enumerate(layers):
        if layer.output in homes.inside:
            continue
        target = homes.by_tensor[layer.output]
        for source in _replaceable(layer, homes):
            home = homes.by_tensor[source]
            alone = source not in homes.inside and home.segment is None and target.segment is None
            if alone and home is not target and home.end == number and target.start == number:
                home.end = target.end
                home.uses += target.uses
                for name, other in homes.by_tensor.items():
                    if other is target:
                        homes.by_tensor[name] = home
                break


def _pad_pixels(graph: ir.Graph, layers: list[Layer], homes: TensorPlacement, params: SocParams) -> None:
    """Pitches for tensors with a home of their own in LV2."""
    shared = [name for name, other in homes.root.items() if name != other]
    busy = {*homes.inside, *(outer for outer, _ in homes.inside.values()), *shared, *(homes.root[n] for n in shared)}
    for name, pitch in padded_pitches(graph, layers, params).items():
        home = homes.by_tensor[name]
        users = [other for other in homes.by_tensor.values() if other is home]
        if name not in busy and home.segment is None and len(users) == 1:
            n, h, w, c = graph.tensors[name].nhwc
            home.pitch, home.padding = pitch, n * h * w * (pitch - c)


def _replaceable(layer: Layer, homes: TensorPlacement) -> list[str]:
    """Operands of which every byte is read once, just before the result at its place is written."""
    if isinstance(layer, EltwiseLayer):
        return layer.inputs[: 1 if layer.broadcast else 2]
    if isinstance(layer, ConvLayer) and layer.addition:
        x = layer.inputs[0]
        while x in homes.inside:
            x = homes.inside[x][0]
        other = layer.addition.other
        return [] if homes.by_tensor[x] is homes.by_tensor[other] else [other]
    return []


#: Orders in which homes are offered LV2: what lives long and large either last or first.
_ORDERS: tuple[Callable[[TensorBuffer], tuple[int, int]], ...] = (
    lambda home: (home.size * (home.end - home.start + 1), home.start),
    lambda home: (-home.size, home.start),
    lambda home: (-home.size * (home.end - home.start + 1), home.start),
)


@dataclass
class _Packing:
    """LV2 offsets by identity of the home; bytes that pass from or to DRAM because a home did not fit; end of LV2."""

    offsets: dict[int, int]
    moved: int
    extent: int


def _pack(waiting: list[TensorBuffer], params: SocParams, reserve: int, budget: int) -> _Packing:
    lv2, offsets, moved = FirstFit(budget, params.lv1_word, reserve), {}, 0
    for home in waiting:
        offset = lv2.place(home.size + home.padding, home.start, home.end)
        if offset is None:
            moved += home.size * home.uses
        else:
            offsets[id(home)] = offset
    return _Packing(offsets, moved, lv2.extent)


def _best_packing(waiting: list[TensorBuffer], params: SocParams, reserve: int, budget: int) -> _Packing:
    """The packing with the least traffic to DRAM; padding goes if it costs any."""

    def best() -> _Packing:
        packed = [_pack(sorted(waiting, key=order), params, reserve, budget) for order in _ORDERS]
        return min(packed, key=lambda packing: (packing.moved, packing.extent))

    padded = best()
    if not any(home.padding for home in waiting):
        return padded
    spread = {id(home): (home.pitch, home.padding) for home in waiting}
    for home in waiting:
        home.pitch = home.padding = 0
    dense = best()
    if dense.moved < padded.moved:
        return dense
    for home in waiting:
        home.pitch, home.padding = spread[id(home)]
    return padded


def _allocate(homes: TensorPlacement, params: SocParams, reserve: int, budget: int, observe: bool) -> None:
    unique = {id(home): home for home in homes.by_tensor.values() if home.size and home.end >= 0}
    for home in homes.by_tensor.values():  # inputs and outputs that no layer touches
        if home.segment in (Segment.INPUTS, Segment.OUTPUTS):
            unique[id(home)] = home
    waiting = [home for home in unique.values() if home.segment is None]
    best = _best_packing(waiting, params, reserve, budget)
    scratch = FirstFit(None, _DRAM_ALIGN)
    for home in waiting:
        offset = best.offsets.get(id(home))
        if offset is not None:
            home.segment, home.offset = Segment.LV2, offset
            home.size += home.padding
        elif observe:
            home.segment = Segment.SHARED
        else:
            home.segment, home.offset = Segment.SCRATCH, scratch.place(home.size, home.start, home.end) or 0
    sizes: dict[int, int] = {Segment.INPUTS: 0, Segment.OUTPUTS: 0, Segment.SHARED: 0}
    for home in unique.values():
        if home.segment in sizes:
            home.offset = sizes[home.segment]
            sizes[home.segment] += _aligned(home.size)
    if observe:
        _export(homes, sizes)
    homes.sizes = sizes | {Segment.SCRATCH: scratch.extent, Segment.LV2: best.extent}
    homes.moved = best.moved
    homes.constants = _constants(homes)


def _export(homes: TensorPlacement, sizes: dict[int, int]) -> None:
    """Places in DRAM for what lies in LV2. The copy made after a layer serves reshaped names of the result too, but
    an operator that works in place makes another value, with a place of its own."""
    places: dict[str, int] = {}
    for name, tensor in homes.tensors.items():
        root = homes.root[name]
        if (name in homes.inside or homes.by_tensor[name].segment == Segment.LV2) and tensor.data is None:
            if root not in places:
                places[root] = sizes[Segment.SHARED]
                sizes[Segment.SHARED] += _aligned(tensor.size)
            homes.exports[name] = places[root]


def _aligned(size: int) -> int:
    return -(-size // _DRAM_ALIGN) * _DRAM_ALIGN


def _constants(homes: TensorPlacement) -> bytes:
    """Constant tensors, for the start of the weight segment."""
    blob = b""
    for name, tensor in homes.tensors.items():
        home = homes.by_tensor[name]
        if tensor.data is not None and home.end >= 0:
            home.offset = len(blob)
            raw = np.ascontiguousarray(tensor.data).tobytes()
            blob += raw + bytes(-len(raw) % _DRAM_ALIGN)
    return blob
