"""Defines a program of kernels: loaded models that run one behind the other as one, each on what the ones before left
in DRAM. It is linked by what descriptors of jobs say: nothing is compiled or copied."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import accumulate

from hw.contract.bus import Bus
from hw.contract.isa import SEGMENTS, Segment
from hw.image import PortInfo, TensorInfo, WindowWeights
from sw.driver.errors import DriverError
from sw.driver.limits import copy_limit
from sw.driver.memory.allocator import Allocator
from sw.driver.memory.placement import SEGMENT_ALIGN, ImagePlacement
from sw.driver.memory.ranges import Range, normalise, overlap
from sw.driver.models.linked_tables import NOTHING, PlacedKernel, join_tables
from sw.driver.models.loaded_model import EventUse, LoadedModel
from sw.driver.models.program_plan import LinkedPort, ProgramPlan, link_problem
from sw.driver.queues.descriptor import Descriptor
from sw.driver.queues.events import EventLease

_OWN = (Segment.SCRATCH, Segment.SHARED)  #: what a kernel leaves there, it leaves for itself


class LinkedModel(LoadedModel):
    """Is a program of ``kernels``, loaded models of one device, which must stay there. Code and weights are theirs, and
    so are the windows in LV2; what is written in DRAM is the program's own, so that each of them may run beside it."""

    def __init__(
        self, bus: Bus, kernels: Sequence[LoadedModel], plan: ProgramPlan, block: int, number: int,
        lease: Callable[[int, str], EventLease],
    ) -> None:  # fmt: skip
        self.kernels = tuple(kernels)
        self._nothing, self._shared, *self._own = (block + at for at in _offsets(kernels, plan))
        self._used = [self._segments(place, plan) for place in range(len(kernels))]
        self._windows = normalise(window for kernel in kernels for window in kernel.windows())
        placed = [
            PlacedKernel(name, kernel.image, used, kernel.windows())
            for name, kernel, used in zip(plan.names, kernels, self._used, strict=True)
        ]
        self._tables = join_tables(
            plan.name, placed, bus.params, [self._port(one) for one in plan.inputs],
            [self._port(one) for one in plan.outputs],
        )  # fmt: skip
        image = self._tables.image
        segments = [(0, 0)] * SEGMENTS
        segments[Segment.SHARED], segments[Segment.WINDOWS] = (0, bus.params.dram_bytes), (0, bus.params.lv2_bytes)
        placement = ImagePlacement(segments, [block], None)
        limits = [
            copy_limit(0) if place is None else kernels[place].cycle_limits[own]
            for place, own in zip(self._tables.kernel, self._tables.own, strict=True)
        ]
        widest = max(kernels, key=lambda kernel: len(kernel.engines))
        super().__init__(
            bus, image, placement, lease(image.meta.events, plan.name), number, widest.engines, kernels[0].tenant,
            body_cycles=limits,
        )  # fmt: skip
        self._kept = self._kept_by_kernels()

    def _segments(self, place: int, plan: ProgramPlan) -> list[tuple[int, int]]:
        """Return the segments of the kernel at ``place``, as its jobs reach them."""
        found = list(self.kernels[place].segments)
        bases = {
            Segment.INPUTS: self._shared + plan.inputs_at[place],
            Segment.OUTPUTS: self._shared + plan.outputs_at[place],
            **dict(zip(_OWN, self._own, strict=False)),
        }
        for segment, base in bases.items():
            found[segment] = (base, found[segment][1])
        return found

    def _port(self, linked: LinkedPort) -> tuple[PortInfo, TensorInfo]:
        kernel = self.kernels[linked.place]
        port = kernel.port(linked.port)
        info = kernel.image.tensor(port.tensor)
        address = self._used[linked.place][info.segment][0] + info.offset
        tensor = replace(info, name=linked.name, segment=int(Segment.SHARED), offset=address)
        return replace(port, name=linked.name, tensor=linked.name), tensor

    def _kept_by_kernels(self) -> dict[int, WindowWeights]:
        """Return the weights that stay in LV2, of kernels whose windows no other kernel of the program uses."""
        alone = [
            not any(other is not one and overlap(one.windows(), other.windows()) for other in self.kernels)
            for one in self.kernels
        ]
        kept = {}
        for job, (place, own) in enumerate(zip(self._tables.kernel, self._tables.own, strict=True)):
            weights = None if place is None or not alone[place] else self.kernels[place].kept_weights(own)
            if weights is not None:
                kept[job] = WindowWeights(*weights[0], weights[1])
        return kept

    # -- what differs from a model with segments of its own ---------------------------------------------------------
    @property
    def movable(self) -> bool:
        """Return False: its windows are those of its kernels."""
        return False

    def windows(self) -> list[Range]:
        """Return the LV2 windows of all kernels as (first, end), where they were when it was linked."""
        return self._windows

    def place_of(self, job: int) -> int | None:
        """Return the place in the program of the kernel that ``job`` is of; None for one that does nothing."""
        return self._tables.kernel[job]

    def point_number(self, job: int, number: int) -> int:
        """Return the place in the table of the point that ``job`` calls ``number``."""
        place = self._tables.kernel[job]
        return number if place is None else self._tables.points[place] + number

    def code_of(self, job: int) -> bytes:
        """Return the code of the kernel that ``job`` is of."""
        place = self._tables.kernel[job]
        return NOTHING if place is None else self.kernels[place].code

    def work(self, index: int, engine: int, events: EventUse, cycle_limit: int) -> Descriptor:
        """Return what a job is to do: what its kernel would have it do, with the segments and events of the program."""
        place, own = self._tables.kernel[index], self._tables.own[index]
        work = super().work(index, engine, events, cycle_limit)
        if place is None:
            return replace(work, segments=((self._nothing, len(NOTHING)), *[(0, 0)] * (SEGMENTS - 1)))
        limit = self.kernels[place].code_limit(own)
        code, *others = self._used[place]
        return replace(work, segments=((code[0], limit), *others))


def link(
    kernels: Sequence[LoadedModel], plan: ProgramPlan, bus: Bus, dram: Allocator,
    clear: Callable[[Sequence[int], str | None], None], lease: Callable[[int, str], EventLease], number: int,
) -> LinkedModel:  # fmt: skip
    """Return the program of ``kernels``, with memory of ``dram`` that was cleared, and events. Raises as
    ``Device.link``, and nothing is taken then."""
    refuse_unlinkable(kernels)
    block = dram.allocate(_offsets(kernels, plan)[-1], SEGMENT_ALIGN, f"program {plan.name!r}")
    try:
        clear([block], kernels[0].tenant)
        bus.write_mem(block, NOTHING, charge=False)
        return LinkedModel(bus, kernels, plan, block, number, lease)
    except Exception:
        dram.free(block)
        raise


def _offsets(kernels: Sequence[LoadedModel], plan: ProgramPlan) -> list[int]:
    """Return where in the memory of a program lie the code of its own, what kernels hand over, and what each leaves for
    itself; and the end."""
    sizes = (len(NOTHING), plan.size, *(max(kernel.segments[each][1] for kernel in kernels) for each in _OWN))
    return [0, *accumulate(-(-size // SEGMENT_ALIGN) * SEGMENT_ALIGN for size in sizes)]


def refuse_unlinkable(kernels: Sequence[LoadedModel]) -> None:
    """Raise :class:`DriverError` for a kernel that cannot be part of a program with the others, and name it."""
    for kernel in kernels:
        if problem := link_problem(kernel.image):
            raise DriverError(f"kernel {kernel.name!r} {problem}, so it cannot be linked with others: run it alone")
        if kernel.tenant != kernels[0].tenant or any(
            a != b for a, b in zip(kernel.engines, kernels[0].engines, strict=False)
        ):
            raise DriverError(
                f"kernels {kernels[0].name!r} and {kernel.name!r} are of different tenants or engines: load them alike"
            )
