"""Bounds the time from a pause to the first instruction of an urgent model, part by part (of **Cancellation points**).

Every part is a bound of its own, and their sum counts nothing as overlapped: the host's work, which goes on while a
dump runs, is added in full.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from rich.table import Table

from caesura.transfer_programs import dirty_bytes, dump_program, private_sizes
from caesura.views import table_of
from hw.contract.bus import LINE_BYTES, HostCosts
from hw.contract.isa import INSN_BYTES, Insn
from hw.contract.job import COMPLETION, JOB
from hw.contract.spaces import Space
from hw.image import Image
from sim.cost import JOB_START, Others, Rivals, WorstDram, worst_intervals
from sw.driver import (
    EMPTY_ACCESSES,
    MAX_INSTRUCTIONS,
    RECORD_ACCESSES,
    RESET_POLL_CYCLES,
    RING_LOG2,
    SERVE_ACCESSES,
    SUBMIT_ACCESSES,
    engines_of,
)

_UNREAD = (1 << RING_LOG2) // 2  #: completions nobody has read yet: an interrupt comes every half ring
_MEANING = {
    "halt": "pause to HALTED",
    "notice": "the driver learns where the engines stand",
    "release": "the engines are emptied",
    "prepare": "a decision; programs and descriptors of the dump",
    "dump": "all that is dirty at the worst point",
    "start": "the urgent model's first job",
    "total": "",
}


def latency_fields(image: Image) -> dict[str, int]:
    """Return the parts and their ``total``, with host costs at their defaults, for JSON."""
    bound = latency_bound(image)
    return {**asdict(bound), "total": bound.total}


def latency_table(image: Image) -> Table:
    """Return the parts and their total as a table."""
    rows = [(name, cycles, _MEANING[name]) for name, cycles in latency_fields(image).items()]
    return table_of(
        "worst case from a pause to the first instruction of an urgent model", ("", ">cycles", ""), rows
    ).rich()


@dataclass(frozen=True)
class LatencyBound:
    """Holds cycles at the worst. ``halt``: from the write of CONTROL.pause to HALTED; ``notice``: until the driver
    knows where the engines stand; ``release``: until it has emptied them; ``prepare``: to write programs and
    descriptors; ``dump``: to move what the urgent model overwrites; ``start``: from then to its first instruction."""

    halt: int
    notice: int
    release: int
    prepare: int
    dump: int
    start: int

    @property
    def total(self) -> int:
        """Return the cycles from the pause to the first instruction."""
        return sum(asdict(self).values())


def halt_bound(image: Image) -> int:
    """Return the cycles from a pause to HALTED wherever it meets ``image``."""
    points = (point.worst_interval for point in image.meta.cancel_points)
    return max([*points, *(job.worst_cycles for job in image.meta.jobs)], default=0)


def latency_bound(image: Image, costs: HostCosts | None = None, urgent: Image | None = None) -> LatencyBound:
    """Return the worst case when ``image`` runs and ``urgent`` comes in; without one, a model that overwrites
    everything.

    Jobs queued beside those of ``image``, and on engines it does not use, are taken to be of images compiled for the
    same parameters and options.
    """
    costs, params = costs or HostCosts(), image.params
    engines = list(range(image.meta.parts)) or engines_of(image)
    others = Others(params.engines - len(engines))  # those that nobody pauses
    memory = WorstDram(params, Rivals(others))
    window = urgent.meta.lv2_bytes if urgent else params.lv2_bytes
    programs = _dumps(image, engines, window, others)
    host = HostPart(costs, memory, len(engines))
    return LatencyBound(
        halt=halt_bound(image) + costs.register_access * len(engines),
        notice=host.notice,
        release=host.release,
        prepare=costs.decision + host.preparing([program for program, _ in programs]),
        dump=host.queued([program for program, _ in programs]) + sum(cycles for _, cycles in programs),
        start=host.start,
    )


@dataclass(frozen=True)
class HostPart:
    """Says what the host's part of a switch takes at the worst, and what jobs take beside their programs. ``memory`` is
    the DRAM, ``engines`` how many are concerned, ``unread`` how many completions of each may wait to be read."""

    costs: HostCosts
    memory: WorstDram
    engines: int
    unread: int = _UNREAD

    @property
    def serve(self) -> int:
        """Return the cycles to serve an interrupt."""
        lines = -(-COMPLETION.size // LINE_BYTES)
        accesses = (SERVE_ACCESSES + 1) * self.costs.register_access
        return self.costs.interrupt + accesses + self.unread * lines * self.costs.memory_line

    @property
    def notice(self) -> int:
        """Return the cycles until the driver knows where the engines stand."""
        return (self.engines + 1) * self.serve + self.engines * RECORD_ACCESSES * self.costs.register_access

    @property
    def release(self) -> int:
        """Return the cycles until the engines are emptied."""
        return self.engines * (EMPTY_ACCESSES * self.costs.register_access + self.memory.latency + RESET_POLL_CYCLES)

    @property
    def write(self) -> int:
        """Return the cycles to write a descriptor."""
        return -(-JOB.size // LINE_BYTES) * self.costs.memory_line

    @property
    def beginning(self) -> int:
        """Return the cycles from a doorbell until the first instruction of a job is asked for. The bound on a program
        has the rest: that instruction, and the completion."""
        return self.memory.latency + JOB_START.worst

    @property
    def start(self) -> int:
        """Return the cycles from when engines are free to the first instruction of a job."""
        posting = self.write + SUBMIT_ACCESSES * self.costs.register_access
        return posting + self.beginning + self.memory.latency + self.memory.job

    def preparing(self, programs: Sequence[Sequence[Insn]]) -> int:
        """Return the cycles to write the programs of a transfer, and descriptors."""
        code = sum(len(program) for program in programs) * INSN_BYTES
        jobs = self._jobs(programs)
        return jobs * (self.write + self.costs.register_access) + -(-code // LINE_BYTES) * self.costs.memory_line

    def queued(self, programs: Sequence[Sequence[Insn]]) -> int:
        """Return the cycles that the jobs of a transfer take beside their ``programs``."""
        empty = self.memory.latency + self.memory.job + self.memory.completion
        return self._jobs(programs) * self.beginning + (self._gates if programs else 0) * empty

    def _jobs(self, programs: Sequence[Sequence[Insn]]) -> int:
        if not programs:
            return 0
        return self._gates + sum(-(-len(program) // MAX_INSTRUCTIONS) for program in programs)

    @property
    def _gates(self) -> int:
        """Return the empty jobs that wait for all of a transfer: none where one engine moves everything."""
        return self.engines if self.memory.params.engines > 1 else 0


def _dumps(image: Image, engines: Iterable[int], window: int, others: Others) -> list[tuple[list[Insn], int]]:
    """Return programs that dump what is dirty at the worst places, with bounds on their cycles: LV1 and accumulators of
    each engine, and all of LV2 that ``window`` bytes may hit.

    Engines work side by side. A cycle one of them loses is one in which another is served, so together they take no
    longer than one after the other.
    """
    meta, params = image.meta, image.params
    known = [(job.engine, job.live) for job in meta.jobs]
    known += [(meta.jobs[point.job].engine, point.live) for point in meta.cancel_points]
    # Any engine may run any job of a placed image.
    places = {e: [live for engine, live in known if meta.parts or engine == e] for e in engines}
    result = []
    for lives in places.values():
        programs = [dump_program(params, sizes) for sizes in {private_sizes(live) for live in lives}]
        timed = [(program, worst_intervals(program, params, others).end) for program in programs if program]
        result += [max(timed, key=lambda pair: pair[1])] if timed else []
    shared = min(window, sum(max((dirty_bytes(live) for live in lives), default=0) for lives in places.values()))
    if shared:
        program = dump_program(params, [(Space.LV2, shared)])
        result.append((program, worst_intervals(program, params, others).end))
    return result
