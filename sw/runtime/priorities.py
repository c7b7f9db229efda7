"""Keeps who has the engines of one run time, and who waits suspended for them."""

from collections.abc import Callable, Iterator

from sw.driver import LoadedModel, Suspension
from sw.runtime.priority_level import PriorityLevel
from sw.runtime.request import Request
from sw.runtime.rules import Rules


class Priorities:
    """Holds the started requests of one run time, in levels of one priority each. The highest level has the engines,
    unless it is suspended: then it gets them next, and what is more urgent may start above it.

    ``new_level`` makes an empty level of a priority.
    """

    def __init__(self, new_level: Callable[[int], PriorityLevel], rules: Rules) -> None:
        self._new_level, self._rules = new_level, rules
        self._levels: list[PriorityLevel] = []  #: the last is the highest, those before it are suspended

    def __bool__(self) -> bool:
        """Return whether there are levels that have not been left."""
        return bool(self._levels)

    def __iter__(self) -> Iterator[PriorityLevel]:
        """Yield the levels as they are now, the highest last."""
        return iter(list(self._levels))

    @property
    def top(self) -> PriorityLevel | None:
        """Return the highest level, or None if there is none."""
        return self._levels[-1] if self._levels else None

    @property
    def running(self) -> PriorityLevel | None:
        """Return the level that has the engines, or None if there is none."""
        return self._levels[-1] if self._levels and self._levels[-1].suspension is None else None

    @property
    def suspended(self) -> list[PriorityLevel]:
        """Return the levels whose requests are suspended, the highest last."""
        return [level for level in self._levels if level.suspension is not None and level.requests]

    # -- requests --------------------------------------------------------------------------------------------
    @property
    def requests(self) -> list[Request]:
        """Return all requests that have started and not ended, the highest level's last."""
        return [request for level in self._levels for request in level.requests]

    def level_of(self, request: Request) -> PriorityLevel | None:
        """Return the level of ``request``, or None if it has not started."""
        return next((level for level in self._levels if request in level.requests), None)

    def user_of(self, model: object) -> Request | None:
        """Return the request that has started with ``model``, or None if there is none."""
        return next((request for request in self.requests if request.model is model), None)

    def owner_of(self, job_id: int) -> Request | None:
        """Return the request that a job belongs to, or None if it is none of these."""
        runs = (run for level in self._levels for run in level.groups.values())
        return next((run.request for run in runs if run.has(job_id)), None)

    def oldest(self) -> Request | None:
        """Return the request whose group has been on the engines longest, or None if there is none."""
        groups = self._levels[-1].groups.values() if self._levels else ()
        return next((run.request for run in groups), None)

    def robbed(self) -> Request | None:
        """Return a request that has lost jobs which were queued, or None if there is none."""
        return next((r for level in self._levels for r in level.requests if level.robbed(r)), None)

    # -- what may start --------------------------------------------------------------------------------------
    def outranked_by(self, request: Request) -> bool:
        """Return whether ``request`` is more urgent than all that have started, if any have."""
        return self.top is not None and request.priority > self.top.priority

    def may_start(self, request: Request, now: int) -> bool:
        """Return whether ``request`` may start, as far as others go."""
        level = self.running
        if level is None:
            return self.top is None or self.outranked_by(request)
        if request.arrival > now or (self._rules.preemptive and request.priority != level.priority):
            return False
        crowded = len(self._levels) > 1 and level.requests
        return not crowded and not self.displaces(request.model)

    def displaces(self, model: LoadedModel) -> bool:
        """Return whether ``model`` uses bytes of LV2 that requests of the highest level use."""
        return self.top is not None and any(model.overlaps(other.model) for other in self.top.requests)

    def models(self) -> set[int]:
        """Return the numbers of the models that started requests use."""
        return {request.model.number for level in self._levels for request in level.requests}

    # -- changes ---------------------------------------------------------------------------------------------
    def level_for(self, request: Request) -> PriorityLevel:
        """Return the level in which ``request`` is about to start: the one that has the engines, or a new one."""
        level = self.running
        if level is None:
            level = self._new_level(request.priority)
            self._levels.append(level)
        return level

    def ended(self, request: Request) -> None:
        """Remove ``request``, which has started, and of which nothing is queued."""
        for level in self._levels:
            if request in level.requests:
                level.requests.remove(request)

    def leave_empty(self) -> Iterator[Suspension]:
        """Leave the highest levels as long as they have no requests; yield what is still suspended of them, for whoever
        abandons that."""
        while self._levels and not self._levels[-1].requests:
            suspension = self._levels.pop().suspension
            if suspension is not None:  # they ended before the engines had halted
                yield suspension

    def clear(self) -> None:
        """Forget all levels, as nothing is on the device any more."""
        self._levels.clear()
