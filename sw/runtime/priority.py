"""A preemptive run time: of all requests, the one with the highest priority runs (**Cancellation points**).

Requests are taken one at a time; a more urgent arrival suspends the running one, kills it, or waits, whichever
``sw.runtime.choice`` finds cheapest. Suspended requests nest to any depth and continue where they stood.
"""

from collections.abc import Callable

from hw.contract.image import JobInfo, LayerInfo
from sw.driver import Device, DeviceFault, DriverError, LoadedModel
from sw.driver.errors import SupervisorFault
from sw.driver.memory.footprint import engines_of
from sw.driver.preempt.dump import Dump
from sw.driver.preempt.operation import Operation
from sw.runtime.choice import Choice, Situation, choose
from sw.runtime.priority_request import PriorityRequest
from sw.runtime.request import Inputs
from sw.runtime.session import Session
from sw.runtime.situation import situation
from sw.runtime.spans import Kind, Span
from sw.runtime.switching import Switching

_RETRIES = 3  #: attempts at a dump or restore that fails
_GAIN = 0.5  #: how far a switch moves what the next one is expected to take


class PriorityRuntime:
    """Runs requests by priority on one device. ``rule``: what to do on a more urgent arrival, from an estimate of the
    situation; by default the cheapest. ``on_end``: called with each request when it has ended; it may submit others.
    """

    def __init__(
        self,
        device: Device,
        rule: Callable[[Situation], Choice] = choose,
        on_end: Callable[[PriorityRequest], None] | None = None,
    ) -> None:
        self.device = device
        self._on_end = on_end
        self.requests: list[PriorityRequest] = []
        self._running: PriorityRequest | None = None
        self._sessions: dict[int, Session] = {}
        self._spans: list[Span] = []
        self._operations: list[tuple[PriorityRequest, Operation]] = []
        self._failures = 0
        self._run_begin = 0
        self._switching = Switching(rule, _GAIN)

    def submit(
        self, model: LoadedModel, inputs: Inputs, priority: int = 0, at: int = 0, *, announced: bool = False
    ) -> PriorityRequest:
        """A request that arrives at cycle ``at`` (0: now). Two requests of one loaded model run one after the other.

        ``announced``: that it will arrive then is known from now on, so that less urgent ones may be suspended ahead.
        """
        session = self._sessions.setdefault(id(model), Session(self.device, model))
        arrival = max(at, self.device.bus.cycle)
        request = PriorityRequest(len(self.requests), session, inputs, priority, arrival, announced=announced)
        self.requests.append(request)
        return request

    def run_until_done(self) -> None:
        """Run until every request has ended. Errors of a request are left in it; ``DeviceTimeout`` if nothing moves."""
        while any(not request.done for request in self.requests):
            self._dispatch()
            self._wait()
        self.device.settle()  # the last completions of restores belong to the spans

    def spans(self) -> list[Span]:
        """What happened so far, by beginning."""
        moved = [
            Span(
                "dump" if isinstance(o, Dump) else "restore", r.number, r.model.name, x.engine, x.start, x.end, x.bytes
            )
            for r, o in self._operations
            for x in o.results
        ]
        return sorted([*self._spans, *moved], key=lambda span: (span.begin, span.end))

    # -- scheduling ------------------------------------------------------------------------------------------
    def _best(self) -> PriorityRequest | None:
        """The most urgent request that has arrived and can run; earlier ones first among equals."""
        now, held = self.device.bus.cycle, {}
        for request in self.requests:
            if request.started is not None and not request.done:
                held[id(request.model)] = request
        here = [r for r in self.requests if not r.done and self._switching.here(r, now)]
        ready = [r for r in here if held.get(id(r.model), r) is r]
        return min(ready, key=lambda r: (-r.priority, r.arrival, r.number), default=None)

    def _foreseen(self) -> tuple[PriorityRequest, int] | None:
        """The next announced arrival that is more urgent than what runs, and the cycle at which to switch for it."""
        current = self._running
        if current is None:
            return None
        held = {id(r.model) for r in self.requests if r.started is not None and not r.done}
        waiting = [r for r in self.requests if not r.done and id(r.model) not in held]
        return self._switching.foreseen(
            waiting, self.device.bus.cycle, current.priority, lambda request: self._situation(current, request)
        )

    def _dispatch(self) -> None:
        best, current = self._best(), self._running
        if best is current and (known := self._foreseen()) is not None and known[1] <= self.device.bus.cycle:
            best = known[0]
        if best is None or best is current:
            return
        if current is not None:
            if best.priority <= current.priority or self._switching.declined(best):
                return
            begin = self.device.bus.cycle
            self.device.bus.advance(self.device.bus.costs.decision)
            choice = self._switching.decide(best, self._situation(current, best))
            if choice is Choice.WAIT:
                return
            self._switching.begin(best, begin)
            self._guarded(self._suspend if choice is Choice.DUMP else self._kill, current, best)
            if self._running is not None:
                return
        self._guarded(self._resume if best.suspension else self._start, best)

    def _wait(self) -> None:
        current, now = self._running, self.device.bus.cycle
        arrivals = [r.arrival - now for r in self.requests if not r.done and r.arrival > now]
        if (known := self._foreseen()) is not None:
            arrivals.append(max(0, known[1] - now))
        if current is None:
            if self._best() is None and arrivals:
                self.device.bus.advance(min(arrivals))
            return
        limit = current.session.limit
        if not self._guarded(self._poll, current, min([limit, *arrivals])) and not arrivals:
            self._fail(current, self.device.timed_out(limit))

    def _poll(self, current: PriorityRequest, limit: int) -> bool:
        heard = current.drained(self.device) or self.device.poll(limit)
        if heard and current.pump(self.device):
            self._finish(current)
        return heard

    def _guarded(self, action: Callable, *arguments: object) -> bool:
        """Do it; a fault of the running request fails that request alone, one of a dump or restore is tried again."""
        try:
            return bool(action(*arguments))
        except SupervisorFault:
            self._failures += 1
            if self._failures >= _RETRIES:
                raise
            self._recover()
        except DeviceFault as fault:
            if self._running is None:
                raise
            self._fail(self._running, fault)
        return True

    def _recover(self) -> None:
        self.device.recover()
        current, self._running = self._running, None
        if current is not None and current.suspension not in self.device.suspensions:
            self.device.abort(current.model)
            current.rewind()

    def _situation(self, current: PriorityRequest, best: PriorityRequest) -> Situation:
        meta = current.model.image.meta
        layers = {meta.jobs[i].layer for i in current.jobs_left()}
        layers |= {meta.jobs[e.job].layer for e in self.device.outstanding.values() if e.model is current.model}
        remaining = sum(max(_load(meta.layers[i]), _compute(meta.layers[i])) for i in layers)
        return situation(
            self.device,
            [current.model],
            remaining=remaining,
            elapsed=self.device.bus.cycle - (current.started or 0),
            displaced=best.suspension is None,
            notice=max(0, best.arrival - self.device.bus.cycle),
        )

    # -- transitions -----------------------------------------------------------------------------------------
    def _start(self, request: PriorityRequest) -> None:
        self._running, self._run_begin = request, max(request.arrival, self.device.bus.cycle)
        request.started = self._run_begin
        operation = self.device.admit(request.model)
        if operation is not None:
            self._operations.append((request, operation))
        self._switching.admitted(request, operation, self.device.bus.cycle)
        # Switched to ahead of its arrival: the engines stand, so there is nothing else to do.
        self.device.bus.advance(max(0, request.arrival - self.device.bus.cycle))
        request.session.store(request.inputs)
        self.device.begin(request.model, request.session.limit)
        if request.pump(self.device):
            self._finish(request)

    def _suspend(self, current: PriorityRequest, best: PriorityRequest) -> None:
        engines = engines_of(current.model.image)
        # On every engine: what is queued there now may have ended when it halts.
        jobs: list[JobInfo] = current.model.image.meta.jobs
        first: dict[int, int] = {}
        for i in current.jobs_left():
            first.setdefault(jobs[i].engine, i)
        upcoming = [(current.model, i) for i in first.values()]
        suspension = self.device.suspend(engines, best.model, upcoming)
        sent = suspension.sent  # not before what was still on its way back had arrived
        for halt in suspension.halts.values():
            if halt.cycle:
                self._span("drain", current, sent, halt.cycle, halt.engine)
        self._span("pause", current, sent, self.device.bus.cycle)
        self._span(
            "run", current, self._run_begin, max((h.cycle for h in suspension.halts.values()), default=0) or sent
        )
        if current.complete(self.device):  # it ended before the pause took effect
            self.device.abandon(suspension)
            current.pump(self.device)
            self._finish(current)
            return
        self._running, current.suspension = None, suspension
        current.preempted += 1

    def _kill(self, current: PriorityRequest, best: PriorityRequest) -> None:
        self._span("run", current, self._run_begin, self.device.bus.cycle)
        self.device.abort(current.model)
        current.rewind()
        current.preempted += 1
        self._running = None

    def _resume(self, request: PriorityRequest) -> None:
        assert request.suspension is not None
        begin = self.device.bus.cycle
        self._running = request
        suspension = request.suspension
        operation = self.device.resume(suspension)
        if operation is not None:
            self._operations.append((request, operation))
        request.suspension = None if operation is None else suspension
        self._span("resume", request, begin, suspension.announced)
        self._run_begin = suspension.announced
        if request.pump(self.device):
            self._finish(request)

    def _finish(self, request: PriorityRequest) -> None:
        request.outputs = request.session.fetch()
        self._end(request, max((r.end for r in request.results), default=self.device.bus.cycle))

    def _fail(self, request: PriorityRequest, error: DriverError) -> None:
        request.error = error
        self.device.abort(request.model)
        self._end(request, self.device.bus.cycle)

    def _end(self, request: PriorityRequest, last: int) -> None:
        self._span("run", request, self._run_begin, last)
        request.ended, request.suspension, self._running = self.device.bus.cycle, None, None
        self._switching.reconsider()
        self._failures = 0
        if self._on_end is not None:
            self._on_end(request)

    def _span(self, kind: Kind, request: PriorityRequest, begin: int, end: int, engine: int = -1) -> None:
        self._spans.append(Span(kind, request.number, request.model.name, engine, begin, end))


def _load(layer: LayerInfo) -> int:
    return layer.estimated_load if layer.measured_load is None else layer.measured_load


def _compute(layer: LayerInfo) -> int:
    return layer.estimated_compute if layer.measured_compute is None else layer.measured_compute
