"""Bounds the ways off the engines and back: dumps and restores of what is live at a cancellation point, or between two
jobs, with the host's part in them."""

from collections.abc import Sequence
from functools import lru_cache

from caesura.certificate.image_costs import ImageCosts, Neighbours
from caesura.transfer_programs import (
    Sizes,
    clean_bytes,
    dirty_bytes,
    dump_program,
    private_sizes,
    reload_program,
    restore_program,
)
from hw.contract.bus import HostCosts
from hw.contract.isa import Insn
from hw.contract.spaces import Space
from hw.image import Image, LiveRange
from sim.cost import worst_intervals


class SwitchCosts:
    """Finds what it takes to suspend a request of ``image`` and to let it go on. ``own``: its other costs.

    What lies in LV2 moves only as far as requests that interrupt it may overwrite it.
    """

    def __init__(
        self, image: Image, engines: int, neighbours: Neighbours, own: ImageCosts, costs: HostCosts | None = None
    ) -> None:
        self._image, self._params, self._engines = image, image.params, engines
        self._window, self._wait = neighbours.window, neighbours.host_wait
        self._others, self._costs, self._own = neighbours.others, costs or HostCosts(), own
        self._time = lru_cache(maxsize=None)(self._timed)

    def dump(self, live: Sequence[LiveRange]) -> int:
        """Return the cycles from HALTED until others may have the engines."""
        private, shared = private_sizes(live), min(self._window, dirty_bytes(live))
        host, programs, cycles = self._own.host, list[Sequence[Insn]](), 0
        for sizes in (private, ((Space.LV2, shared),) if shared else ()):
            program, time = self._time(sizes, True)
            if program:
                programs, cycles = [*programs, program], cycles + time
        moving = host.preparing(programs) + host.queued(programs) + cycles
        return host.notice + host.release + self._costs.decision + moving + self._wait

    def restore(self, live: Sequence[LiveRange], reloads: Sequence[Insn] = ()) -> int:
        """Return the cycles from the decision to let a request go on until it does: what was dumped comes back, what
        has a copy in DRAM is loaded, loads of its own run again (``reloads``), and its jobs are queued."""
        shared = min(self._window, dirty_bytes(live) + clean_bytes(live))
        host, programs, cycles = self._own.host, list[Sequence[Insn]](), 0
        for sizes in (private_sizes(live), ((Space.LV2, shared),) if shared else ()):
            program, time = self._time(sizes, False)
            if program:
                programs, cycles = [*programs, program], cycles + time
        if reloads:
            programs, cycles = [*programs, reload_program(self._params, reloads)], cycles + self.reload(reloads)
        moving = host.preparing(programs) + host.queued(programs) + cycles
        return self._costs.decision + host.serve + moving + self._requeue() + self._wait

    def reload(self, reloads: Sequence[Insn]) -> int:
        """Return what loads take that run again, which is 0 for none."""
        if not reloads:
            return 0
        return worst_intervals(reload_program(self._params, reloads), self._params, self._others).end

    @property
    def refill(self) -> int:
        """Return what prologues that start over take: those of the jobs that an engine holds, one behind the other in
        its ring, in which the first follows the last, and each of them once, since requests of one loaded model take
        turns. Jobs of a placed model may be on any engine."""
        prologues, jobs, slots = self._own.prologues, self._image.meta.jobs, self._params.job_slots
        if self._image.meta.parts:
            return sum(sorted(prologues, reverse=True)[: self._engines * slots])
        rings = dict[int, list[int]]()
        for time, job in zip(prologues, jobs, strict=True):
            rings.setdefault(job.engine, []).append(time)
        return sum(_longest_run(ring, slots) for ring in rings.values())

    def _requeue(self) -> int:
        """Return the cycles to queue what was taken off: the jobs that an engine holds, and the first of them to go
        on."""
        host, jobs = self._own.host, self._engines * self._params.job_slots
        return jobs * (host.write + self._costs.register_access) + host.start

    def _timed(self, sizes: Sizes, saving: bool) -> tuple[list[Insn], int]:
        if not sizes:
            return [], 0
        program = (dump_program if saving else restore_program)(self._params, sizes)
        return program, worst_intervals(program, self._params, self._others).end


def _longest_run(ring: Sequence[int], count: int) -> int:
    """Return the largest sum of at most ``count`` neighbours, of which the first and the last are some, too."""
    count, twice = min(count, len(ring)), [*ring, *ring]
    return max(sum(twice[at : at + count]) for at in range(len(ring)))
