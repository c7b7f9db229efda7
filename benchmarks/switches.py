"""One long inference that urgent ones interrupt at random times, and what every switch cost."""

import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import caesura
from benchmarks.lab import Lab, alone
from benchmarks.workloads import inputs, workload
from compiler import Options, golden
from hw.image import Image
from sw.runtime import Mechanism, Request, RunSpan, Runtime, Session

SEED = 2023


@dataclass(frozen=True)
class Urgent:
    """An urgent model: a workload, the bytes of LV2 it was compiled for (0: all), and how often it arrives."""

    workload: str
    lv2_limit: int
    arrivals: int


@dataclass(frozen=True)
class Switch:
    """One preemption; times are global cycle counts. ``moved_cycles``: in which dump and restore jobs ran, of
    ``dumped`` and ``restored`` bytes."""

    urgent: str
    sent: int  #: CONTROL.pause was written
    halted: int  #: the last engine was HALTED
    first: int  #: first instruction of the urgent model
    ended: int  #: its last job had ended
    resumed: int  #: the long model's stopped jobs were queued again and everything was in its place
    dumped: int
    restored: int
    moved_cycles: int
    host: int  #: cycles between HALTED and then in which neither the urgent model ran nor data moved

    @property
    def halting(self) -> int:
        """Pause to HALTED."""
        return self.halted - self.sent

    @property
    def starting(self) -> int:
        """Pause to the first instruction of the urgent model."""
        return self.first - self.sent

    @property
    def overhead(self) -> int:
        """From HALTED until everything was back, but for the urgent model: dump, restore, and the host's part."""
        return self.resumed - self.halted - (self.ended - self.first)


@dataclass(frozen=True)
class Interrupted:
    """The long inference. ``alone``: its cycles undisturbed; ``cycles``: with all interruptions, for which it was
    ``away`` (HALTED until everything was back), each after ``halting`` cycles from the pause. ``switches``: those with
    one urgent model each."""

    image: Image
    alone: int
    cycles: int
    switches: list[Switch]
    away: list[int]
    halting: list[int]
    correct: bool

    def of(self, urgent: str) -> list[Switch]:
        """Return the switches for one urgent model."""
        return [switch for switch in self.switches if switch.urgent == urgent]


def interrupted(lab: Lab, name: str, options: Options, urgents: Sequence[Urgent]) -> Interrupted:
    """Run workload ``name`` once alone and once with :func:`stratified` random arrivals (seed ``SEED``).
    Every output of every inference is compared with onnxruntime's."""
    lab.progress.task(f"{name}: compiling")
    driver = lab.device.driver
    long = driver.load(caesura.compile(workload(name), lab.params, options=alone(options)))
    loaded = {
        urgent: driver.load(
            caesura.compile(workload(urgent.workload), lab.params, options=Options(lv2_limit=urgent.lv2_limit))
        )
        for urgent in urgents
    }
    lab.progress.task(f"{name} alone")
    outputs, stats = Session(driver, long).run(inputs(name))
    correct = _equal(name, outputs)
    gaps = 0
    for urgent, model in loaded.items():
        _, own = Session(driver, model).run(inputs(urgent.workload))
        gaps += urgent.arrivals * 2 * own.latency

    lab.progress.task(f"{name} with {sum(urgent.arrivals for urgent in urgents)} urgent arrivals")
    runtime = Runtime(driver, "fcfs", preemptive=True, rule=lambda _: Mechanism.DUMP, history=None)
    rng, begin = random.Random(SEED), driver.bus.cycle
    request = runtime.submit(long, inputs(name))
    arrivals = [
        runtime.submit(model, inputs(urgent.workload), priority=1, arrival=begin + at)
        for urgent, model in loaded.items()
        for at in stratified(rng, stats.cycles + gaps, urgent.arrivals)
    ]
    runtime.run_until_done()
    for other in (request, *arrivals):
        if other.error is not None:
            raise other.error
        name_of = name if other is request else next(u.workload for u, m in loaded.items() if m is other.model)
        correct &= other.outputs is not None and _equal(name_of, other.outputs)
    breaks = interruptions(runtime.spans(), request)
    switches = _switches(breaks, arrivals, {id(model): urgent.workload for urgent, model in loaded.items()})
    for model in (long, *loaded.values()):
        driver.unload(model)
    first = min(job.prologue_start or job.start for job in request.results)
    cycles = max(job.end for job in request.results) - first
    away = [one.resumed - one.halted for one in breaks]
    halting = [one.halted - one.sent for one in breaks]
    return Interrupted(long.image, stats.cycles, cycles, switches, away, halting, correct)


def stratified(rng: random.Random, span: int, count: int) -> list[int]:
    """``count`` times from 0 up to ``span``, uniformly at random, one in each of as many equal slices: none of the span
    is left out, and few come so close together that one switch serves both."""
    edges = [span * i // count for i in range(count + 1)]
    return [rng.randrange(low, high) for low, high in itertools.pairwise(edges)]


def _equal(name: str, outputs: dict) -> bool:
    expected = _golden.setdefault(name, golden.golden_outputs(workload(name), inputs(name)))
    return all(np.array_equal(value, outputs[port]) for port, value in expected.items())


_golden: dict[str, dict] = {}


@dataclass(frozen=True)
class Break:
    """From one pause of the long model until it runs again: one urgent model, or several in a row."""

    sent: int
    halted: int
    resumed: int
    dumps: list[RunSpan]
    restores: list[RunSpan]


def interruptions(spans: Sequence[RunSpan], request: Request) -> list[Break]:
    """Return what was moved from one halt to the next belongs to one break: a pause that is sent while the restore of
    the break before still runs waits for that."""
    pauses = [span for span in spans if span.kind == "pause" and span.request == request.number]
    resumes = [span for span in spans if span.kind == "resume" and span.request == request.number]
    drains = [span for span in spans if span.kind == "drain"]
    halts = [max((d.end for d in drains if d.begin == pause.begin), default=pause.begin) for pause in pauses]
    result = []
    for pause, resume, halted, after in zip(pauses, resumes, halts, [*halts[1:], spans[-1].end + 1], strict=False):
        mine = [span for span in spans if halted <= span.begin < after]  # the last pause may have come too late
        restores = [span for span in mine if span.kind == "restore"]
        result.append(
            Break(
                pause.begin,
                halted,
                max([resume.end, *(span.end for span in restores)]),
                [span for span in mine if span.kind == "dump"],
                restores,
            )
        )
    return result


def _switches(breaks: Sequence[Break], arrivals: Sequence[Request], names: dict[int, str]) -> list[Switch]:
    """Breaks for a single urgent model."""
    result = []
    for one in breaks:
        inside = [other for other in arrivals if one.sent < _first(other) < one.resumed]
        if len(inside) == 1:
            urgent = inside[0]
            result.append(
                Switch(
                    names[id(urgent.model)],
                    one.sent,
                    one.halted,
                    _first(urgent),
                    max(job.end for job in urgent.results),
                    one.resumed,
                    sum(span.bytes for span in one.dumps),
                    sum(span.bytes for span in one.restores),
                    _covered(one.dumps) + _covered(one.restores),
                    _idle(one, _first(urgent), max(job.end for job in urgent.results)),
                )
            )
    return result


def _first(request: Request) -> int:
    return min(job.prologue_start or job.start for job in request.results)


def _idle(one: Break, first: int, ended: int) -> int:
    """Return the cycles of a break in which the host alone had something to do: no data moved, and the urgent model,
    which has the engines from ``first`` to ``ended``, did not run."""
    busy = [(first, ended), *((span.begin, span.end) for span in (*one.dumps, *one.restores))]
    idle, at = 0, one.halted
    for begin, end in sorted(busy):
        idle += max(0, min(begin, one.resumed) - at)
        at = max(at, end)
    return idle + max(0, one.resumed - at)


def _covered(spans: Sequence[RunSpan]) -> int:
    """Return the cycles from the first beginning to the last end."""
    return max((s.end for s in spans), default=0) - min((s.begin for s in spans), default=0)
