"""Keeps the suspended tasks of one device and the DRAM that holds their copies, and tells how much of it a preemption
may need before it is known where the task will halt."""

from collections.abc import Collection, Iterator, Sequence

from hw.contract.bus import Bus
from hw.contract.params import SocParams
from hw.contract.spaces import Space
from hw.image import Image, LiveRange
from sw.driver.memory.allocator import Allocator
from sw.driver.memory.ranges import LV2, Footprint, MemoryId, Range, footprint, intersect, size
from sw.driver.models.loaded_model import LoadedModel
from sw.driver.preempt.staging import STAGE_BYTES
from sw.driver.preempt.suspension import DirtyRange, Suspension

COPY_ALIGN = 64  #: of copies in DRAM


class SuspendedTasks:
    """Holds the tasks that are suspended now, oldest first. Copies of what they had on chip lie in ``dram``, which is
    cleared through ``bus``, in no simulated time, when it is given back."""

    def __init__(self, dram: Allocator, bus: Bus) -> None:
        self._dram, self._bus = dram, bus
        self._tasks: list[Suspension] = []

    def __iter__(self) -> Iterator[Suspension]:
        return iter(list(self._tasks))

    def __len__(self) -> int:
        return len(self._tasks)

    def add(self, suspended: Suspension) -> None:
        """Add a task that was taken off its engines."""
        self._tasks.append(suspended)

    def discard(self, suspended: Suspension) -> None:
        """Free the copies of a task that continues, or was given up."""
        if suspended in self._tasks:
            self._tasks.remove(suspended)
        for address in suspended.areas:
            self._bus.write_mem(address, bytes(self._dram.of_one_user(address)), charge=False)
            self._dram.free(address)
        suspended.areas = []

    def hold(self, model: LoadedModel) -> bool:
        """Return whether ``model`` is suspended."""
        return any(model in task.models for task in self._tasks)

    def dirty(self, memory: MemoryId) -> list[Range]:
        """Return the dirty bytes of ``memory`` that are in their place, of all tasks."""
        return [r for task in self._tasks for r in task.on_chip(memory)]

    def clean(self) -> list[Range]:
        """Return the clean bytes of LV2 that are in their place, of all tasks."""
        return [r for task in self._tasks for r in task.kept_clean()]

    def prefetched(self) -> list[Range]:
        """Return the weight windows in LV2 that are intact, of all tasks."""
        return [window for task in self._tasks for window in task.windows.values()]

    def tenants(self, ranges: Collection[DirtyRange]) -> set[str | None]:
        """Return the tenants whose data ``ranges`` may hold."""
        owners = [task for task in self._tasks if any(r in ranges for r in task.dirty)]
        return {model.tenant for task in owners for model in task.models}

    def overwrite(self, footprint: Footprint) -> None:
        """Note that ``footprint`` is about to be overwritten, as ``Suspension.overwrite`` does, for all tasks."""
        for task in self._tasks:
            task.overwrite(footprint)

    def reserve_copies(self, ranges: Collection[DirtyRange]) -> dict[DirtyRange, int]:
        """Return DRAM addresses for copies of ``ranges``, by range; raises :class:`OutOfMemory` if there is no room.

        The copies are not valid before their dump has completed.
        """
        addresses: dict[DirtyRange, int] = {}
        for task in self._tasks:
            mine = [r for r in task.dirty if r in ranges]
            if not mine:
                continue
            at = self._dram.allocate(sum(map(_room, mine)), COPY_ALIGN, "the dump of a preempted task")
            task.areas.append(at)
            for r in mine:
                addresses[r] = at
                at += _room(r)
        return addresses

    def check_room(self, size: int) -> None:
        """Raise :class:`OutOfMemory` unless ``size`` bytes of copies would fit now."""
        self._dram.free(self._dram.allocate(size, COPY_ALIGN, "the dump of a preempted task"))


def _room(r: DirtyRange) -> int:
    return -(-r.size // COPY_ALIGN) * COPY_ALIGN


_SLACK = 16 * 1024  #: alignment of the copies
_PRIVATE = (Space.LV1, Space.LV0_ACC)


def dump_reserve(params: SocParams, models: Sequence[LoadedModel], tasks: SuspendedTasks, incoming: LoadedModel) -> int:
    """Return how many bytes of DRAM suspending ``models`` and dumping for ``incoming`` takes at most, over all their
    points.

    Wherever ``incoming`` is placed it displaces no more of LV2 than it has, and what suspended ``tasks`` keep on chip
    counts in full.
    """
    wanted = footprint(params, [], incoming.engines)
    window = sum(end - start for start, end in incoming.windows())
    lv2 = sum(_most_dirty(model.image, e, (Space.LV2,)) for model in models for e, _ in model.roles)
    private = sum(
        _most_dirty(m.image, e, _PRIVATE) for m in models for e, engine in m.roles if (Space.LV1, engine) in wanted
    )
    for s in tasks:
        lv2 += size(s.on_chip(LV2))
        for memory, ranges in wanted.items():
            private += size(intersect(s.on_chip(memory), ranges))
    total = min(lv2, window) + private
    return total + (_SLACK + STAGE_BYTES * params.engines if total else 0)


def room_for_dumps(params: SocParams, images: Sequence[Image]) -> int:
    """Return how many bytes of DRAM, in one block, hold the copies of a suspended task of each of ``images`` and what
    :func:`dump_reserve` sets aside for the next, in whatever order they come and go.

    The lowest block that suits may leave gaps between copies: in all, up to the live bytes for each doubling from the
    smallest copy to the largest (J. M. Robson, *Worst case fragmentation of first fit and best fit storage allocation
    strategies*, The Computer Journal 20, 1977).
    """
    every = [_most_dumped(image) for image in images]
    if not any(every):
        return 0
    live = sum(one + _SLACK for one in every if one)
    doublings = 1 + (live // COPY_ALIGN).bit_length()
    return live * doublings + live + STAGE_BYTES * params.engines


def _most_dumped(image: Image) -> int:
    spaces = (Space.LV2, *_PRIVATE)
    return sum(_most_dirty(image, e, spaces) for e in {job.engine for job in image.meta.jobs})


def _most_dirty(image: Image, engine: int, spaces: Sequence[Space]) -> int:
    """Return the most dirty bytes in ``spaces`` at any point of a job of ``engine``, or before one."""
    meta = image.meta
    places = [p.live for p in meta.cancel_points if meta.jobs[p.job].engine == engine]
    places += [job.live for job in meta.jobs if job.engine == engine]
    return max((_dirty(live, spaces) for live in places), default=0)


def _dirty(live: Sequence[LiveRange], spaces: Sequence[Space]) -> int:
    return sum(r.size for r in live if r.dirty and r.space in spaces)
