"""Bounds the time from a pause to the first instruction of an urgent model, part by part (of **Cancellation points**).

Every part is a bound of its own, and their sum counts nothing as overlapped: the host's work, which goes on while a
dump runs, is added in full.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass

from rich.table import Table

from caesura.views import table_of
from hw.contract.bus import LINE_BYTES, HostCosts
from hw.contract.isa import INSN_BYTES, Insn
from hw.contract.job import COMPLETION, JOB
from hw.contract.params import SocParams
from hw.contract.spaces import Space
from hw.image import Image, LiveRange
from sim.cost import JOB_START, Others, Rivals, WorstDram, worst_intervals
from sw.driver import (
    EMPTY_ACCESSES,
    LV2,
    LV2_COPY,
    MAX_INSTRUCTIONS,
    PRIVATE_COPY,
    RECORD_ACCESSES,
    RESET_POLL_CYCLES,
    RING_LOG2,
    SERVE_ACCESSES,
    STAGE_BYTES,
    SUBMIT_ACCESSES,
    MemoryId,
    Program,
    Spill,
    StagingBuffer,
    engines_of,
    row_bytes,
    save,
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
    jobs = len(engines) + sum(-(-len(program) // MAX_INSTRUCTIONS) for program, _ in programs) if programs else 0
    code = sum(len(program) for program, _ in programs) * INSN_BYTES
    lines = -(-COMPLETION.size // LINE_BYTES)
    serve = costs.interrupt + (SERVE_ACCESSES + 1) * costs.register_access + _UNREAD * lines * costs.memory_line
    write = -(-JOB.size // LINE_BYTES) * costs.memory_line
    per_job = 2 * memory.latency + memory.job + JOB_START.worst + memory.completion
    return LatencyBound(
        halt=halt_bound(image) + costs.register_access * len(engines),
        notice=(len(engines) + 1) * serve + len(engines) * RECORD_ACCESSES * costs.register_access,
        release=len(engines) * (EMPTY_ACCESSES * costs.register_access + memory.latency + RESET_POLL_CYCLES),
        prepare=costs.decision + jobs * (write + costs.register_access) + -(-code // LINE_BYTES) * costs.memory_line,
        dump=jobs * per_job + sum(cycles for _, cycles in programs),
        start=write + SUBMIT_ACCESSES * costs.register_access + per_job,
    )


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
        programs = [_dump(params, sizes) for sizes in {_private(live) for live in lives}]
        timed = [(program, worst_intervals(program, params, others).end) for program in programs if program]
        result += [max(timed, key=lambda pair: pair[1])] if timed else []
    shared = min(window, sum(max((_dirty(live) for live in lives), default=0) for lives in places.values()))
    if shared:
        program = _dump(params, [(Space.LV2, shared)])
        result.append((program, worst_intervals(program, params, others).end))
    return result


def _dirty(live: Iterable[LiveRange]) -> int:
    return sum(r.size for r in live if r.dirty and r.space == Space.LV2)


def _private(live: Iterable[LiveRange]) -> tuple[tuple[Space, int], ...]:
    """Return memory and bytes of the ranges of LV1 and of accumulators."""
    return tuple(sorted((r.space, r.size) for r in live if r.dirty and r.space in (Space.LV1, Space.LV0_ACC)))


def _dump(params: SocParams, sizes: Iterable[tuple[Space, int]]) -> list[Insn]:
    """Return the driver's program for pieces of these sizes, wherever they lie."""
    row = row_bytes(params)
    lv1, lv2 = StagingBuffer((0, STAGE_BYTES), row), StagingBuffer((0, STAGE_BYTES), row)
    program = Program(params)
    for space, size in sizes:
        memory: MemoryId = (space, 0)
        most = LV2_COPY if memory == LV2 else PRIVATE_COPY
        for at in range(0, size, most):
            save(program, Spill(memory, at, min(most, size - at), at), lv1, lv2)
    raw = program.encode()
    return [Insn.decode(raw[i : i + INSN_BYTES]) for i in range(0, len(raw) - INSN_BYTES, INSN_BYTES)]
