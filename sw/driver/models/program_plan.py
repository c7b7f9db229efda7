"""Plans where kernels that run one behind the other find in DRAM what those before them wrote, so that nothing is
moved: segments of inputs are laid over segments of outputs.

Within a segment, places are those of the kernel's image. So where a kernel reads two tensors, both follow from the
place of one. A kernel of which this cannot be had, without that a tensor is overwritten that somebody still reads, is
not part of the program."""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations

from hw.contract.isa import Segment
from hw.image import Image, PortInfo, TensorInfo
from sw.driver.memory.placement import SEGMENT_ALIGN

Side = tuple[int, int]  #: a kernel's place in the program, and its segment of inputs or of outputs
_ALWAYS = 1 << 30


@dataclass(frozen=True)
class LinkedPort:
    """Is an input or output of a program called ``name``: ``port`` of the kernel at ``place`` in it."""

    name: str
    place: int
    port: str


@dataclass(frozen=True)
class ProgramPlan:
    """Says where kernels of a program find tensors, in bytes of a region of ``size`` in DRAM: the segments of
    ``inputs_at`` and ``outputs_at`` begin there, by the place of the kernel in the program. ``names``: what kernels are
    called there. Where segments of several overlap, one finds what another wrote."""

    name: str
    names: tuple[str, ...]
    inputs_at: tuple[int, ...]
    outputs_at: tuple[int, ...]
    size: int
    inputs: tuple[LinkedPort, ...]
    outputs: tuple[LinkedPort, ...]


@dataclass(frozen=True)
class KernelUse:
    """Is a kernel, called ``name``, that a program is to run. ``inputs`` and ``outputs``: by its own names of ports,
    what the tensors are called that it reads and makes."""

    name: str
    image: Image
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]


@dataclass(frozen=True)
class _Held:
    """Is a tensor in DRAM: ``offset`` bytes into a segment, from when the kernel at place ``first`` runs (-1: from the
    beginning) until the one at ``last`` has."""

    side: Side
    offset: int
    size: int
    first: int
    last: int
    port: PortInfo
    tensor: TensorInfo


class ProgramPlanner:
    """Plans a program, kernel by kernel. ``readers``: how many read each tensor, in this program or elsewhere."""

    def __init__(self, readers: Mapping[str, int]) -> None:
        self._left = Counter(readers)
        self._uses: list[KernelUse] = []
        self._places: dict[Side, tuple[Side, int]] = {}  #: the side that it is laid to, and how far behind
        self._held: dict[str, _Held] = {}
        self._given: list[LinkedPort] = []

    def __len__(self) -> int:
        return len(self._uses)

    def add(self, use: KernelUse) -> str | None:
        """Append a kernel. If it cannot be, nothing is changed, and why is returned."""
        if problem := link_problem(use.image):
            return f"its kernel {problem}"
        before = dict(self._places), dict(self._held), list(self._given), Counter(self._left)
        place = len(self._uses)
        self._uses.append(use)
        problem = self._read(place, use) or self._made(place, use) or self._overwritten()
        if problem:
            self._places, self._held, self._given, self._left = before
            self._uses.pop()
        return problem

    def plan(self, name: str) -> ProgramPlan:
        """Return the plan of all kernels that were added. Its outputs are what is read elsewhere."""
        starts, end = dict[Side, int](), 0
        for root in dict.fromkeys(root for root, _ in self._places.values()):
            sides = [(at, self._size(side)) for side, (found, at) in self._places.items() if found == root]
            low = min(at for at, _ in sides)
            starts[root] = end - low
            end += -(-max(at + size - low for at, size in sides) // SEGMENT_ALIGN) * SEGMENT_ALIGN
        at = {side: starts[root] + offset for side, (root, offset) in self._places.items()}
        outputs = [
            LinkedPort(value, place, own)
            for place, use in enumerate(self._uses)
            for own, value in use.outputs.items()
            if self._left[value]
        ]
        count = range(len(self._uses))
        return ProgramPlan(
            name, tuple(use.name for use in self._uses), tuple(at[each, Segment.INPUTS] for each in count),
            tuple(at[each, Segment.OUTPUTS] for each in count), end, tuple(self._given), tuple(outputs),
        )  # fmt: skip

    def _read(self, place: int, use: KernelUse) -> str | None:
        side = (place, int(Segment.INPUTS))
        self._places[side] = (side, 0)
        numbers = {info.name for info in use.image.meta.parameters}
        for own, value in use.inputs.items():
            self._left[value] -= 1
            held, number = self._held.get(value), own in numbers
            port, tensor, size = _slot(use.image, own)
            if held is None:
                self._held[value] = _Held(side, tensor.offset, size, -1, _ALWAYS, port, tensor)
                self._given.append(LinkedPort(value, place, own))
            elif not number:
                if problem := layout_problem(held.port, held.tensor, port, tensor, made=held.first >= 0):
                    return f"{value!r} {problem}"
                if not self._lay(side, tensor.offset - held.offset, held.side):
                    return f"{value!r} does not lie beside other inputs as its kernel reads them"
        for value in use.inputs.values():
            if not self._left[value]:
                self._held[value] = replace(self._held[value], last=place)
        return None

    def _made(self, place: int, use: KernelUse) -> str | None:
        side = (place, int(Segment.OUTPUTS))
        self._places[side] = (side, 0)
        for own, value in use.outputs.items():
            port, tensor, size = _slot(use.image, own)
            self._held[value] = _Held(
                side, tensor.offset, size, place, _ALWAYS if self._left[value] else place, port, tensor
            )
        return None

    def _lay(self, side: Side, offset: int, other: Side) -> bool:
        """Let byte ``offset`` of ``side`` be the first of ``other``. Return whether that can be."""
        root, at = self._places[side]
        found, start = self._places[other]
        if root == found:
            return at + offset == start
        moved = start - at - offset
        for each, (base, behind) in list(self._places.items()):
            if base == root:
                self._places[each] = (found, behind + moved)
        return True

    def _overwritten(self) -> str | None:
        for (name, one), (other, two) in combinations(self._held.items(), 2):
            (root, at), (found, start) = self._places[one.side], self._places[two.side]
            first, second = at + one.offset, start + two.offset
            together = root == found and first < second + two.size and second < first + one.size
            if together and one.first <= two.last and two.first <= one.last:
                return f"{name!r} and {other!r} would lie in the same place"
        return None

    def _size(self, side: Side) -> int:
        return self._uses[side[0]].image.meta.segment_sizes[side[1]]


def link_problem(image: Image) -> str | None:
    """Return why an image cannot be part of a program, or None if it can."""
    meta = image.meta
    told = {
        "has steps on the CPU": any(step.kind != "jobs" for step in meta.steps),
        "has no jobs": not meta.jobs,
        "has layers that are placed at run time": meta.parts > 0,
        "has code that names addresses": bool(meta.relocations),
        "keeps a state": any(tensor.segment == Segment.SCRATCH for tensor in meta.tensors),
    }
    return next((problem for problem, found in told.items() if found), None)


def layout_problem(
    before: PortInfo, source: TensorInfo, port: PortInfo, tensor: TensorInfo, *, made: bool = True
) -> str | None:
    """Return why a kernel with input ``port`` cannot read what lies in memory as ``before``, an output (``made``) or
    an input of another kernel, describes it; None if it can. A shape may be longer along its outermost axis: what lies
    behind the end counts for nothing then."""
    if ((before.quantise, port.quantise) != (False, False) and made) or before.quantise != port.quantise:
        return "is quantised by the host"
    if (before.dtype, source.dtype) != (port.dtype, tensor.dtype):
        return f"is {source.dtype} where its kernel reads {tensor.dtype}"
    if (source.scale, source.zero_point) != (tensor.scale, tensor.zero_point):
        return (
            f"has scale {source.scale:g} and zero point {source.zero_point}, its kernel reads {tensor.scale:g} and "
            f"{tensor.zero_point}"
        )
    mine, theirs = _order(port, tensor, made=False), _order(before, source, made=made)
    plain = len(mine) == len(theirs) == 1 and _inner(before.shape) == _inner(port.shape)
    if mine != theirs and not plain:
        return f"lies in memory in the order of {_told(before)}, its kernel reads that of {_told(port)}"
    return None


def _inner(shape: list[int]) -> list[int]:
    """Return all sizes behind the outermost axis."""
    sizes = [size for size in shape if size > 1]
    return sizes[1:]


def _order(port: PortInfo, tensor: TensorInfo, *, made: bool) -> list[tuple[int, int]]:
    """Return by axis of a tensor in memory, outermost first, its size and how far apart its elements are for the user.
    Axes that follow each other in both orders are one."""
    perm = port.perm or list(range(len(tensor.shape if made else port.shape)))
    shape = [tensor.shape[axis] for axis in perm] if made else port.shape
    apart = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    stored = [perm.index(axis) for axis in range(len(perm))] if made else perm
    found: list[tuple[int, int]] = []
    for size, step in ((shape[axis], apart[axis]) for axis in stored):
        if size == 1:
            continue
        if found and found[-1][1] == size * step:
            found[-1] = (found[-1][0] * size, step)
        else:
            found.append((size, step))
    return found


def _told(port: PortInfo) -> str:
    return f"{port.shape} by axes {port.perm}"


def _slot(image: Image, own: str) -> tuple[PortInfo, TensorInfo, int]:
    """Return the port of an image called ``own``, its tensor, and the bytes up to the next in the segment."""
    port = next(each for each in (*image.meta.inputs, *image.meta.outputs) if each.name == own)
    tensor = image.tensor(port.tensor)
    ends = [
        each.offset for each in image.meta.tensors if each.segment == tensor.segment and each.offset > tensor.offset
    ]
    return port, tensor, min(ends, default=image.meta.segment_sizes[tensor.segment]) - tensor.offset
