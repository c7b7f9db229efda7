"""Searches for the phases of all streams in which a request of one of them takes longest on the abstract machine.

A phase is worst where everybody who is more urgent is released just after something that nobody stops has begun: a
piece of a less urgent request, its restore, its start. Which of these there are depends on all phases before. So the
search is *simulated annealing* (Kirkpatrick, Gelatt and Vecchi, Science 220, 1983) whose moves put a release where
something began or ended in the run before, at first those of all more urgent streams at once.
"""

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from sw.admission.abstract_machine import AbstractMachine, Arrival, ServedRequest
from sw.admission.response_time import responses
from sw.admission.streams import RequestStream

_COOLING = 0.02  #: share of the response by which a run may be worse and be kept, in the beginning
_BEGINNINGS = 5  #: of a search
_REQUESTS = 2000  #: of one stream in one run at the most

_Instants = Mapping[str, Sequence[int]]  #: cycles by what began or ended in them


@dataclass(frozen=True)
class ReleaseTimes:
    """Says when requests of a stream come: as dense as they can from ``first`` on, but with ``gap`` cycles more before
    number ``gap_at``; number ``late`` is released as late as its jitter allows, all others when due."""

    first: int = 0
    gap_at: int = 0
    gap: int = 0
    late: int = 0

    def arrivals(self, stream: RequestStream, until: int) -> list[Arrival]:
        """Return what arrives by cycle ``until``."""
        result, last = list[Arrival](), 0
        for number in range(_REQUESTS):
            due = self.first + stream.due(number) + (self.gap if number >= self.gap_at else 0)
            if due > until:
                break
            last = max(last, due + (stream.jitter if number == self.late else 0))
            result.append(Arrival(due, last))
        return result

    def without_gap(self, stream: RequestStream, number: int) -> int:
        """Return when request ``number`` would be released at the latest if there were no gap."""
        return self.first + stream.due(number) + stream.jitter

    def with_release(self, stream: RequestStream, number: int, cycle: int) -> "ReleaseTimes":
        """Return the same with request ``number`` released at ``cycle``, and the ones before it where they can be."""
        due = cycle - stream.jitter
        first = due - stream.due(number) - (self.gap if number >= self.gap_at else 0)
        if first >= 0:
            return replace(self, first=first, late=number)
        return replace(self, first=max(0, due), late=0, gap=0)


@dataclass(frozen=True)
class WorstStorm:
    """Holds the releases that made a request take longest, its ``response``, and how many requests were served in all
    runs of the search."""

    releases: Mapping[str, ReleaseTimes]
    response: int
    requests: int


def run_storm(
    streams: Sequence[RequestStream], releases: Mapping[str, ReleaseTimes], until: int, section: int = 0
) -> AbstractMachine:
    """Return a machine that has served what arrives by cycle ``until``."""
    arrivals = {stream.name: releases[stream.name].arrivals(stream, until) for stream in streams}
    machine = AbstractMachine(streams, arrivals, section)
    machine.run()
    return machine


class StormRun(Protocol):
    """Is what has served a storm: what became of each request, and when something began or ended, by its kind."""

    @property
    def served(self) -> Sequence[ServedRequest]: ...
    @property
    def instants(self) -> Mapping[str, Sequence[int]]: ...


def worst_phases(
    streams: Sequence[RequestStream], target: RequestStream, *, rounds: int, seed: int = 0, section: int = 0,
    serve: Callable[[Sequence[RequestStream], Mapping[str, ReleaseTimes], int, int], StormRun] = run_storm,
) -> WorstStorm:  # fmt: skip
    """Return the worst storm for ``target`` that ``rounds`` runs find. Streams without a period send nothing.

    ``serve`` runs a storm up to a cycle, with the section of the host: on the abstract machine, or on a device.
    """
    some = [stream for stream in streams if stream.period is not None]
    return _Search(some, target, section, seed, serve).run(rounds)


class _Search:
    def __init__(
        self, streams: Sequence[RequestStream], target: RequestStream, section: int, seed: int,
        serve: Callable[..., StormRun],
    ) -> None:  # fmt: skip
        self._streams, self._target, self._section, self._serve = streams, target, section, serve
        self._rng = random.Random(f"{seed} {target.name}")
        found = {response.stream.name: response.response for response in responses(streams, section)}
        bound = found.get(target.name) or 0
        self._until = 2 * max(bound, *(stream.due(2) + stream.jitter for stream in self._near()))
        self._requests = 0

    def run(self, rounds: int) -> WorstStorm:
        """Return the worst storm of ``rounds`` runs, from several beginnings."""
        found = [self._anneal(-(-rounds // _BEGINNINGS)) for _ in range(_BEGINNINGS)]
        response, releases = max(found, key=lambda one: one[0])
        return WorstStorm(releases, response, self._requests)

    def _anneal(self, rounds: int) -> tuple[int, Mapping[str, ReleaseTimes]]:
        now = {
            one.name: ReleaseTimes(self._rng.randrange(min(one.due(one.burst), self._until // 2)))
            for one in self._streams
        }
        worst, instants = self._try(now)
        best = (worst, now)
        for number in range(rounds):
            after = self._moved(now, instants)
            response, seen = self._try(after)
            warmth = _COOLING * max(1, best[0]) * (1 - number / rounds)
            if response >= worst or self._rng.random() < math.exp((response - worst) / max(warmth, 1e-9)):
                now, worst, instants = after, response, seen
                best = max(best, (response, after), key=lambda one: one[0])
        return best

    def _near(self) -> list[RequestStream]:
        return [stream for stream in self._streams if stream.priority >= self._target.priority]

    def _try(self, releases: Mapping[str, ReleaseTimes]) -> tuple[int, _Instants]:
        machine = self._serve(self._streams, releases, self._until, self._section)
        self._requests += len(machine.served)
        return max((served.response for served in self._own(machine.served)), default=0), machine.instants

    def _own(self, served: Sequence[ServedRequest]) -> list[ServedRequest]:
        return [one for one in served if one.stream == self._target.name]

    # -- moves -------------------------------------------------------------------------------------------------
    def _moved(self, releases: Mapping[str, ReleaseTimes], instants: _Instants) -> dict[str, ReleaseTimes]:
        move = self._rng.choice([self._all_at_once, self._one, self._later, self._later, self._shifted])
        kind = self._rng.choice(sorted(instants))  # of restores there are few, of pieces many
        return {**releases, **move(releases, self._rng.choice(instants[kind]))}

    def _all_at_once(self, releases: Mapping[str, ReleaseTimes], cycle: int) -> dict[str, ReleaseTimes]:
        """Release one request of each stream that is as urgent at ``cycle``."""
        number = self._rng.choice([0, 0, 1, 2])
        return {one.name: releases[one.name].with_release(one, number, self._after(cycle)) for one in self._near()}

    def _one(self, releases: Mapping[str, ReleaseTimes], cycle: int) -> dict[str, ReleaseTimes]:
        """Release a request of any stream at ``cycle``."""
        one = self._any()
        number = self._rng.randrange(4)
        return {one.name: releases[one.name].with_release(one, number, self._after(cycle))}

    def _later(self, releases: Mapping[str, ReleaseTimes], cycle: int) -> dict[str, ReleaseTimes]:
        """Put a gap before a request of any stream, so that it is released at ``cycle``."""
        one = self._any()
        number, before = self._rng.randrange(1, 5), releases[one.name]
        gap = self._after(cycle) - before.without_gap(one, number)
        return {one.name: replace(before, gap_at=number, gap=max(0, gap), late=number)}

    def _any(self) -> RequestStream:
        return self._rng.choice([self._target, self._rng.choice(self._streams)])

    def _shifted(self, releases: Mapping[str, ReleaseTimes], cycle: int) -> dict[str, ReleaseTimes]:
        """Move all requests of any stream a little, or to any place within a period."""
        one = self._rng.choice(self._streams)
        by = self._rng.choice([1, -1, self._rng.randrange(one.due(one.burst))])
        before = releases[one.name]
        return {one.name: replace(before, first=max(0, before.first + by))}

    def _after(self, cycle: int) -> int:
        """Return when to release what the host is to see at ``cycle``."""
        return max(0, cycle - self._section)
