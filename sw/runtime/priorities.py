"""Keeps who has which engines of one run time, who waits suspended for them, and who stands in whose way."""

from collections.abc import Collection
from dataclasses import dataclass

from sw.driver import Device, LoadedModel, Suspension
from sw.runtime.request import Request, State
from sw.runtime.rules import Rules
from sw.runtime.started_requests import StartedRequests


@dataclass(eq=False)
class SuspendedRequests:
    """Are requests of one ``priority`` that were taken off their ``engines`` together, and continue together."""

    priority: int
    requests: list[Request]  #: those that have not ended
    engines: frozenset[int]
    suspension: Suspension


class Priorities:
    """Tells which requests may have the engines that they use, and a place in LV2. Of two on a common engine the more
    urgent one runs, and equal ones by turns; those on engines of their own, for which LV2 has room, never wait for each
    other.

    ``started``: the requests that have started. ``suspended``: those of them that are suspended, by groups, the most
    urgent and then the latest last.
    """

    def __init__(self, device: Device, started: StartedRequests, rules: Rules) -> None:
        self._device, self._started, self._rules = device, started, rules
        self.suspended: list[SuspendedRequests] = []

    # -- requests --------------------------------------------------------------------------------------------
    @property
    def requests(self) -> list[Request]:
        """Return all requests that have started and not ended, in the order in which they started."""
        return list(self._started.requests)

    @property
    def running(self) -> list[Request]:
        """Return the requests that have their engines."""
        return [request for request in self._started.requests if request.state is State.RUNNING]

    def user_of(self, model: object) -> Request | None:
        """Return the request that has started with ``model``, or None if there is none."""
        return next((request for request in self._started.requests if request.model is model), None)

    def models(self) -> set[int]:
        """Return the numbers of the models that started requests use."""
        return {request.model.number for request in self._started.requests}

    def group_of(self, request: Request) -> SuspendedRequests | None:
        """Return the group in which ``request`` is suspended, or None if it is not."""
        return next((group for group in self.suspended if request in group.requests), None)

    def engines(self, request: Request) -> frozenset[int]:
        """Return the engines that ``request`` uses, or will."""
        if self._rules.placed:
            return frozenset(range(self._device.params.engines))
        return frozenset(request.model.engines if request.engines is None else request.engines)

    # -- who may run -----------------------------------------------------------------------------------------
    def in_way(self, request: Request) -> list[Request]:
        """Return the less urgent requests that run and would have to be taken off the chip for ``request``: those on
        its engines, and as many others as LV2 has no room beside. There are none if it would have to wait anyway."""
        if not self._rules.preemptive:
            return []
        engines = self.engines(request)
        lower = [other for other in self.running if other.priority < request.priority]
        lower.sort(key=lambda other: (not self.engines(other) & engines, other.priority))
        victims: list[Request] = []
        for other in lower:
            if not self.engines(other) & engines and self._has_place(request, victims):
                break
            victims.append(other)
        return victims if victims and self._free_but_for(request, victims) else []

    def may_start(self, request: Request, now: int) -> bool:
        """Return whether ``request`` may start, as far as others go: before its arrival only where nothing runs."""
        return (request.arrival <= now or not self.running) and self._free_but_for(request, [])

    def _free_but_for(self, request: Request, victims: Collection[Request]) -> bool:
        """Return whether ``request`` could start if ``victims`` did not run. Beside one of its own priority on a common
        engine it may not where others are suspended."""
        if not self._has_place(request, victims):
            return False
        if not self._rules.preemptive:
            return True
        engines = self.engines(request)
        others = [other for other in self.running if self.engines(other) & engines and other not in victims]
        waiting = [group.priority for group in self.suspended if group.engines & engines]
        if any(priority >= request.priority for priority in waiting):
            return False
        crowded = bool(victims or waiting)
        return not others or (not crowded and all(other.priority == request.priority for other in others))

    def _has_place(self, request: Request, victims: Collection[Request]) -> bool:
        return self._device.has_place(request.model, self.beside(request, victims))

    def beside(self, request: Request, victims: Collection[Request] = ()) -> list[LoadedModel]:
        """Return the models whose bytes of LV2 ``request`` has to leave where they are: of those that run but the
        ``victims``, and of those that are suspended and go on before ``request`` could be suspended for them."""
        ahead = [group for group in self.suspended if group.priority >= request.priority]
        return [
            *(other.model for other in self.running if other not in victims),
            *(model for group in ahead for model in group.suspension.models),
        ]

    def _in_conflict(self, request: Request, group: SuspendedRequests) -> bool:
        models = group.suspension.models
        return bool(group.engines & self.engines(request)) or any(model.overlaps(request.model) for model in models)

    # -- changes ---------------------------------------------------------------------------------------------
    def suspend(self, requests: list[Request], suspension: Suspension) -> SuspendedRequests:
        """Let ``requests``, which were taken off their engines, wait for these; return them as a group."""
        engines = frozenset[int]().union(*map(self.engines, requests))
        group = SuspendedRequests(requests[0].priority, requests, engines, suspension)
        self.suspended.append(group)
        self.suspended.sort(key=lambda group: group.priority)
        return group

    def resumable(self, arrived: Collection[Request]) -> SuspendedRequests | None:
        """Return the next group to continue, the most urgent one that is free to: nobody runs who is in conflict, no
        more urgent request of those that have ``arrived`` is about to, and no group waits that goes first."""
        first: list[SuspendedRequests] = []
        for group in reversed(self.suspended):
            urgent = [request for request in arrived if request.priority > group.priority]
            ahead = any(group.engines & other.engines for other in first)
            if not ahead and not any(self._in_conflict(request, group) for request in [*self.running, *urgent]):
                return group
            first.append(group)
        return None

    def resumed(self, group: SuspendedRequests) -> None:
        """Let ``group`` have its engines again."""
        self.suspended.remove(group)

    def left_empty(self) -> list[Suspension]:
        """Forget groups of which no request is left; return what is still suspended of them, for whoever abandons
        that: they ended before their engines had halted."""
        empty = [group for group in self.suspended if not group.requests]
        self.suspended = [group for group in self.suspended if group.requests]
        return [group.suspension for group in empty]

    def ended(self, request: Request) -> None:
        """Remove ``request``, which has started, and of which nothing is queued."""
        self._started.remove(request)
        for group in self.suspended:
            group.requests = [other for other in group.requests if other is not request]

    def clear(self) -> None:
        """Forget all requests, as nothing is on the device any more."""
        self._started.clear()
        self.suspended.clear()
