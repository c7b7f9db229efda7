"""Which tensors share a buffer.

Reshaped tensors share one; inputs of a concatenation are written straight into its output, slices are read where they
were taken from; the result of an element-wise operator, or of a convolution with an addition, takes the place of an
operand that dies there.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from compiler import ir
from compiler.plan.layers.flow import layer_flow
from compiler.plan.layers.layer import AppendLayer, ConvLayer, Layer
from compiler.plan.layers.origin import Origin, origin
from compiler.plan.layers.reloads import kept_by
from compiler.plan.layers.step import ModelStep, flattened, parameters_of
from compiler.plan.memory.pixel_pitch import padded_pitches
from compiler.plan.regions.layer_order import Chain, LayerOrder
from hw.contract.isa import Segment
from hw.contract.params import SocParams
from hw.image import ParameterInfo


@dataclass(eq=False)
class SharedBuffer:
    """A buffer without an address: its size, the first and the last layer that use it in the order of the table, how
    often a layer reads or writes all of it, and its segment, None if LV2 or DRAM are to be chosen. In LV2 its pixels
    may be ``pitch`` bytes apart (0: dense), which adds ``padding`` bytes."""

    size: int
    start: int
    end: int
    uses: int = 0
    segment: int | None = None
    pitch: int = 0
    padding: int = 0
    copy: "SharedBuffer | None" = None  #: the state in DRAM that it is a copy of
    kept: bool = False  #: whether DRAM keeps it for a later load
    passed: int = 0  #: bytes that layers pass from and to DRAM if it lies there
    users: set[int] = field(default_factory=set)  #: numbers of the layers that write or read it


class BufferSharing:
    """``buffers`` by tensor name; ``inside``: tensor → what it is a part of and its first element there, as in
    :class:`TensorPlacement`; ``roots``: tensor → the tensor whose bytes it shares by reshapes."""

    def __init__(
        self, graph: ir.Graph, steps: Sequence[ModelStep], params: SocParams, order: LayerOrder | None = None, *,
        observe: bool = False,
    ) -> None:  # fmt: skip
        """``observe``: somebody looks at each tensor, so parts of tensors are tensors of their own, and no result takes
        an operand's place."""
        self._graph, self._steps, self.order = graph, steps, order or Chain()
        self._layers = flattened(steps)
        self.roots, self._homes = graph.roots(), graph.homes()
        self.inside: dict[str, tuple[str, Origin]] = {}
        self.buffers = self._by_root()
        self._live()
        if not observe:
            self._slice_in_place()
            self._concatenate_in_place()
            self._compute_in_place()
        self._pad_pixels(params)

    @property
    def parameters(self) -> tuple[ParameterInfo, ...]:
        """Return the parameters of all jobs, by their places."""
        return tuple(parameters_of(self._layers))

    def unique(self) -> Iterable[SharedBuffer]:
        """Return the buffers that need an address, in order of their first tensor."""
        placed = {id(b): b for b in self.buffers.values() if b.size and b.end >= 0}
        for buffer in self.buffers.values():  # inputs and outputs that no layer touches
            if buffer.segment in (Segment.INPUTS, Segment.OUTPUTS):
                placed[id(buffer)] = buffer
        return placed.values()

    def home(self, tensor: str) -> SharedBuffer:
        """Return the buffer that has the bytes of ``tensor``."""
        return self.buffers[self._outermost(tensor)]

    def _by_root(self) -> dict[str, SharedBuffer]:
        """Return one buffer per group of tensors joined by reshapes."""
        made: dict[str, SharedBuffer] = {}
        by_tensor = {}
        for name, tensor in self._graph.tensors.items():
            buffer = made.setdefault(self._homes[name], SharedBuffer(tensor.size, len(self._steps), -1))
            buffer.size = max(buffer.size, tensor.size)  # a state has room for a row more than it is given
            by_tensor[name] = buffer
            if tensor.data is not None:
                buffer.segment = Segment.WEIGHTS
        return by_tensor

    def _numbered(self) -> Iterator[tuple[int, Layer]]:
        """Return the layers with the numbers of their steps."""
        return ((number, member) for number, step in enumerate(self._steps) for member in step.members)

    def _live(self) -> None:
        """Lives of all buffers, and segments of those that are not in LV2 anyway."""
        for number, layer in self._numbered():
            for name in (*layer.inputs, *layer.outputs):
                buffer = self.buffers[name]
                buffer.start, buffer.end = min(buffer.start, number), max(buffer.end, number)
                buffer.users.add(number)
                buffer.uses += 1
                buffer.passed += self._graph.tensors[name].size
                if isinstance(layer.op, ir.Host) and buffer.segment is None:
                    buffer.segment = Segment.SHARED
            if (kept := kept_by(layer)) is not None:
                self.buffers[kept].segment, self.buffers[kept].kept = Segment.SCRATCH, True
        for port in self._graph.outputs:
            self.buffers[port.tensor].segment = Segment.OUTPUTS
        for port in self._graph.inputs:
            self.buffers[port.tensor].segment = Segment.INPUTS
        for op in self._graph.ops:
            if isinstance(op, ir.Append):
                self.buffers[op.kept].segment = Segment.SCRATCH
                self.buffers[op.output].copy = self.buffers[op.kept]

    def _slice_in_place(self) -> None:
        """Whoever reads a slice reads the bytes that it was taken from, if it can do with gaps."""
        flow, reshaped = layer_flow(self._graph, self._layers), self._reshaped()
        outside = {port.tensor for port in (*self._graph.inputs, *self._graph.outputs)}
        for layer in reversed(self._layers):  # the slice of a slice hands its readers on
            if not isinstance(layer.op, ir.Slice) or layer.op.step > 1 or layer.output in reshaped:
                continue
            source = layer.inputs[0]
            place = origin(self._graph, layer.output, layer.op.axis, layer.op.first)
            readers = list(flow.successors(layer))
            if place is None or layer.output in outside:
                continue
            rows = max(self._graph.tensors[source].shape[: layer.op.axis], default=1) == 1  # so it has no gaps
            if not all(self._with_gaps(reader) or (rows and isinstance(reader, AppendLayer)) for reader in readers):
                continue
            self.inside[layer.output] = (source, place)
            self._hold(self.buffers[source], self.buffers[layer.output])
            self.home(source).passed -= self._graph.tensors[source].size + self._graph.tensors[layer.output].size

    def _with_gaps(self, user: Layer) -> bool:
        """Return whether ``user`` can read and write tensors that are parts of others; slices in place do neither."""
        return user.strided or (isinstance(user.op, ir.Slice) and user.output in self.inside)

    def _joins(self, user: Layer) -> bool:
        """Return whether ``user`` can read and write parts of a concatenation. One that is itself in place can: its
        operands are made where both belong."""
        nested = isinstance(user.op, ir.Concat) and all(name in self.inside for name in user.inputs)
        return nested or self._with_gaps(user)

    def _hold(self, outer: SharedBuffer, inner: SharedBuffer) -> None:
        """The bytes of ``inner`` are some of ``outer``'s."""
        outer.start, outer.end = min(outer.start, inner.start), max(outer.end, inner.end)
        outer.users |= inner.users
        outer.passed, inner.passed = outer.passed + inner.passed, 0
        inner.size = 0

    def _reshaped(self) -> set[str]:
        return {name for op in self._graph.ops if isinstance(op, ir.Reshape) for name in (op.inputs[0], op.output)}

    def _concatenate_in_place(self) -> None:
        flow = layer_flow(self._graph, self._layers)
        makers = {layer.output: layer for layer in self._layers}
        reshaped = self._reshaped()
        for layer in self._layers:
            if not isinstance(layer.op, ir.Concat):
                continue
            axis = layer.op.axis % len(self._graph.tensors[layer.output].shape)
            target, first = self.buffers[layer.output], 0
            for name in layer.inputs:
                buffer, maker = self.buffers[name], makers.get(name)
                place = origin(self._graph, layer.output, axis, first)
                once = buffer.segment is None and layer.inputs.count(name) == 1 and name not in reshaped
                users = [maker, *flow.successors(maker)] if maker is not None else []
                if place and once and users and all(self._joins(user) for user in users if user is not layer):
                    self.inside[name] = (layer.output, place)
                    self._hold(target, buffer)
                    target.passed -= 2 * self._graph.tensors[name].size  # nothing is copied
                first += self._graph.tensors[name].shape[axis]

    def _compute_in_place(self) -> None:
        for number, layer in self._numbered():
            for target, buffer in self.replaceable(layer):
                ends = self.order.last(buffer, number) and self.order.first(target, number)
                if ends and not self._used_behind(number, layer, buffer):
                    buffer.end = target.end
                    buffer.uses += target.uses
                    buffer.passed += target.passed
                    buffer.users |= target.users
                    self.buffers = {n: buffer if other is target else other for n, other in self.buffers.items()}
                    break

    def replaceable(self, layer: Layer) -> Iterator[tuple[SharedBuffer, SharedBuffer]]:
        """Yield the buffer of the result of ``layer`` with each of an operand whose place it takes if that dies there:
        in LV2, and nobody's part."""
        target = self.buffers[layer.output]
        if layer.output in self.inside or target.segment is not None:
            return
        for operand in self._operands_replaced(layer):
            buffer = self.buffers[operand]
            if operand not in self.inside and buffer.segment is None and buffer is not target:
                yield target, buffer

    def _used_behind(self, number: int, layer: Layer, buffer: SharedBuffer) -> bool:
        """Return whether a member of the same region behind ``layer`` uses ``buffer``."""
        members = self._steps[number].members
        behind = members[members.index(layer) + 1 :]
        names = {self._outermost(name) for other in behind for name in (*other.inputs, *other.outputs)}
        return any(self.buffers[name] is buffer for name in names)

    def _operands_replaced(self, layer: Layer) -> list[str]:
        """Return the operands whose place the result may take; a convolution may not overwrite its own input."""
        if not isinstance(layer, ConvLayer) or not layer.addition:
            return layer.replaceable
        read = [self.home(name) for name in layer.inputs[: layer.pieces]]
        return [other for other in layer.replaceable if not any(self.buffers[other] is one for one in read)]

    def _outermost(self, name: str) -> str:
        """Return the tensor that ``name`` is a part of, or itself."""
        while name in self.inside:
            name = self.inside[name][0]
        return name

    def _pad_pixels(self, params: SocParams) -> None:
        """Pitches for tensors with a buffer of their own."""
        reshaped = [name for name, other in self.roots.items() if name != other]
        busy = {*self.inside, *(outer for outer, _ in self.inside.values())}
        busy |= {*reshaped, *(self.roots[name] for name in reshaped)}
        for name, pitch in padded_pitches(self._graph, self._layers, params).items():
            buffer = self.buffers[name]
            users = [other for other in self.buffers.values() if other is buffer]
            if name not in busy and buffer.segment is None and len(users) == 1:
                n, h, w, c = self._graph.tensors[name].nhwc
                buffer.pitch, buffer.padding = pitch, n * h * w * (pitch - c)
