"""Where the weights of all jobs lie: in the weight segment, and in LV2."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from compiler.emission.link.job_windows import job_windows
from compiler.emission.objects.step_object import JobObject
from compiler.emission.program.address import JobAddresses
from compiler.plan.memory.budget import Lv2Budget
from compiler.plan.memory.tensor_placement import DRAM_ALIGN, TensorPlacement
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


def job_places(
    jobs: Sequence[JobObject], weights: WeightSegment, placement: TensorPlacement, budget: Lv2Budget, params: SocParams
) -> list[JobPlace]:
    """Return the places of all jobs, whose weights are appended to ``weights``."""
    places = []
    for job, found in zip(jobs, job_windows(jobs, placement, budget, params), strict=True):
        window_data = job.ahead[1] if job.ahead else weights.append(job.window_data, job.engine)
        stream_data = weights.append(job.stream_data, job.engine)
        places.append(JobPlace(JobAddresses(found.start, window_data, stream_data), found.after, found.again))
    return places


def weights_only(jobs: Sequence[JobObject], places: Sequence[JobPlace], end: int) -> tuple[int, int]:
    """Return the first byte and size of what prologues alone write, of windows that lie side by side up to ``end``."""
    own = (place.addresses.window for job, place in zip(jobs, places, strict=True) if not job.own_loads)
    low = min(own, default=end)
    return (low, end - low) if low < end else (0, 0)
