"""Where the weights of all jobs lie: in the weight segment, and in LV2."""

import hashlib
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from compiler.emission.objects.step_object import JobObject
from compiler.emission.program.address import JobAddresses
from compiler.plan.memory.budget import Lv2Budget
from compiler.plan.memory.tensor_placement import DRAM_ALIGN, TensorPlacement
from compiler.plan.memory.weight_ring import WeightRing
from compiler.plan.memory.window_space import HeldBytes, WindowSpace
from hw.contract.isa import Segment
from hw.contract.params import SocParams


class WeightSegment:
    """Bytes of the weight segment so far: constant tensors first, then what jobs load, each once."""

    def __init__(self, constants: bytes, params: SocParams, engines: int) -> None:
        self.data = bytearray(constants)
        self._params, self._engines = params, engines
        self._known: dict[bytes, int] = {}

    def append(self, data: bytes | bytearray, engine: int) -> int:
        """Return the address of ``data``; engines that work on different pixels share it.

        What is long begins in a DRAM bank of its engine: engines load their parts of a layer side by side, and where
        they meet in a bank, they close each other's rows with every burst. An engine starts up to a few rows after
        the one before it, as the host queues for one after the other; so its banks lie behind, half as far as they
        could.
        """
        key = hashlib.sha256(data).digest()
        if key not in self._known:
            banks = self._params.dram_banks * self._params.dram_row_bytes
            if len(data) >= banks and self._engines > 1:
                behind = engine * banks // (2 * self._engines) // DRAM_ALIGN * DRAM_ALIGN
                self.data += bytes((-behind - len(self.data)) % banks)
            self._known[key] = len(self.data)
            self.data += data + bytes(-len(data) % DRAM_ALIGN)
        return self._known[key]


@dataclass(frozen=True)
class JobPlace:
    """Where a job's weights lie, and ``window_after``, see :class:`hw.image.image.JobInfo`: in the first inference,
    and where the same jobs run a second time right behind the first."""

    addresses: JobAddresses
    after: int
    again: int


def shared_bytes(placement: TensorPlacement, budget: Lv2Budget) -> int:
    """Return the bytes of LV2 that tensors and staging areas take, from the first on; they are whole words."""
    return int(max(placement.sizes[Segment.LV2], budget.staging_end))  # not a number of numpy, as shapes may be


def job_places(
    jobs: Sequence[JobObject], weights: WeightSegment, placement: TensorPlacement, budget: Lv2Budget, params: SocParams
) -> list[JobPlace]:
    """Return the places of all jobs, whose weights are appended to ``weights``. In a placed model each engine has its
    own ring of windows, as any job may run beside any; otherwise each job has its window to itself if all fit, and
    windows lie wherever LV2 is free if not."""
    if budget.placed:
        found = _in_rings(jobs, budget)
    elif windows_of_their_own(jobs, budget):
        found = _side_by_side(jobs, shared_bytes(placement, budget) + budget.windows * budget.engines)
    else:
        found = _in_space(jobs, placement, budget, params)
    places = []
    for job, (window, after, again) in zip(jobs, found, strict=True):
        window_data = job.ahead[1] if job.ahead else weights.append(job.window_data, job.engine)
        stream_data = weights.append(job.stream_data, job.engine)
        places.append(JobPlace(JobAddresses(window, window_data, stream_data), after, again))
    return places


def windows_of_their_own(jobs: Sequence[JobObject], budget: Lv2Budget) -> bool:
    """Return whether there is room for the weights of all jobs beside each other, so that they are still in LV2 when
    the next inference begins."""
    ahead = any(job.ahead for job in jobs)
    room = budget.windows * budget.engines
    return not (budget.placed or ahead) and sum(len(job.window_data) for job in jobs) <= room


def weights_only(jobs: Sequence[JobObject], places: Sequence[JobPlace], end: int) -> tuple[int, int]:
    """Return the first byte and size of what prologues alone write, of windows that lie side by side up to ``end``."""
    own = (place.addresses.window for job, place in zip(jobs, places, strict=True) if not job.own_loads)
    low = min(own, default=end)
    return (low, end - low) if low < end else (0, 0)


def _side_by_side(jobs: Sequence[JobObject], end: int) -> list[tuple[int, int, int]]:
    """Return the window and ``window_after``, the first and a second time, of jobs that have their window to
    themselves. The largest ends at ``end``: most of those of the same model for another length are as large, and so lie
    where they do. What bodies load comes last."""
    order = sorted(range(len(jobs)), key=lambda i: (jobs[i].own_loads, -len(jobs[i].window_data), i))
    places, counts = dict[int, int](), dict[int, int]()
    for index in order:
        end -= len(jobs[index].window_data)
        places[index] = end
    for job in jobs:
        counts[job.engine] = counts.get(job.engine, 0) + 1
    return [(places[index], 0, counts[job.engine]) for index, job in enumerate(jobs)]


def _in_rings(jobs: Sequence[JobObject], budget: Lv2Budget) -> list[tuple[int, int, int]]:
    """Return the window and ``window_after``, the first and a second time, of jobs that any engine may run."""
    ring = WeightRing(budget.windows)
    claimed = [ring.claim(len(job.window_data)) for job in jobs]
    return [(window, after, ring.again(number)) for number, (window, after) in enumerate(claimed)]


def _in_space(
    jobs: Sequence[JobObject], placement: TensorPlacement, budget: Lv2Budget, params: SocParams
) -> list[tuple[int, int, int]]:
    """Likewise of jobs that know their engine. Engines claim in turns, so that none gets all places of a layer."""
    engines = [(job.engine, job.step) for job in jobs]
    shared, slots = shared_bytes(placement, budget), params.job_slots
    space = WindowSpace(engines, [*_held(jobs, placement, budget)], shared, budget.windows, slots)
    turns: list[tuple[int, int, int, int]] = []  # layer, number of the job on its engine, engine, index
    counts = [0] * budget.engines
    for index, (engine, layer) in enumerate(engines):
        turns.append((layer, counts[engine], engine, index))
        counts[engine] += 1
    claimed = {index: space.claim(e, len(jobs[index].window_data)) for _, _, e, index in sorted(turns)}
    numbers = {index: number for _, number, _, index in turns}
    return [(*claimed[i], space.again(engine, numbers[i])) for i, (engine, _) in enumerate(engines)]


def _held(jobs: Sequence[JobObject], placement: TensorPlacement, budget: Lv2Budget) -> Iterator[HeldBytes]:
    """Yield what layers need of LV2 beside weight windows: buffers of tensors, and staging areas if something
    passes."""
    engines: dict[int, set[int]] = {}  # by layer: those that have jobs of it
    staged: set[tuple[int, int]] = set()  # layer and engine
    for job in jobs:
        engines.setdefault(job.step, set()).add(job.engine)
        if job.staged:
            staged.add((job.step, job.engine))
    worked = sorted(engines)
    for buffer in {id(buffer): buffer for buffer in placement.by_tensor.values()}.values():
        if buffer.segment == Segment.LV2 and buffer.size:
            before = bisect_right(worked, max(buffer.users))  # layers without jobs touch nothing
            if before:
                last, low = worked[before - 1], buffer.offset
                yield HeldBytes(low, low + buffer.size, min(buffer.users), last, engines[last])
    for layer, engine in sorted(staged):
        area = budget.staging(engine)
        yield HeldBytes(area.base, area.base + area.size, layer, layer, {engine})
