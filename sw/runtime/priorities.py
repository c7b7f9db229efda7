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
    """Tells which requests may have the engines that they use. Two requests are in conflict if they use a common engine
    or common bytes of LV2: then the more urgent one runs, and of equal ones on common engines both by turns. Requests
    that are not in conflict never wait for each other.

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
        """Return the less urgent requests that run and would have to leave their engines for ``request``. There are
        none if it would have to wait for others anyway."""
        if not self._rules.preemptive:
            return []
        found = [other for other in self._conflicts(request) if other.priority < request.priority]
        return found if self._free_but_for(request, found) else []

    def may_start(self, request: Request, now: int) -> bool:
        """Return whether ``request`` may start, as far as others go: before its arrival only where nothing runs."""
        return (request.arrival <= now or not self.running) and self._free_but_for(request, [])

    def _free_but_for(self, request: Request, victims: Collection[Request]) -> bool:
        """Return whether ``request`` could start if ``victims`` did not run. Beside one of its own priority on a common
        engine it may not where others are suspended."""
        others = [other for other in self._conflicts(request) if other not in victims]
        if any(other.model.overlaps(request.model) for other in others):
            return False
        if not self._rules.preemptive:
            return True
        engines = self.engines(request)
        if any(group.priority >= request.priority and self._in_conflict(request, group) for group in self.suspended):
            return False
        crowded = bool(victims) or any(group.engines & engines for group in self.suspended)
        return not others or (not crowded and all(other.priority == request.priority for other in others))

    def _in_conflict(self, request: Request, group: SuspendedRequests) -> bool:
        models = group.suspension.models
        return bool(group.engines & self.engines(request)) or any(model.overlaps(request.model) for model in models)

    def _conflicts(self, request: Request) -> list[Request]:
        """Return the requests that run and are in conflict with ``request``."""
        engines, model = self.engines(request), request.model
        return [other for other in self.running if self.engines(other) & engines or other.model.overlaps(model)]

    def ahead_of(self, request: Request) -> list[LoadedModel]:
        """Return the suspended models that go on before ``request`` could be suspended for them: it is to leave what
        they have in LV2 where it is."""
        ahead = [group for group in self.suspended if group.priority >= request.priority]
        return [model for group in ahead for model in group.suspension.models]

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
