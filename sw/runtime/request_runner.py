"""Runs requests of models on one device: takes turns, starts what has arrived, and ends what has run."""

from collections import deque
from collections.abc import Callable, Iterator
from itertools import count
from typing import Self

from sw.driver import Device, DeviceFault, DeviceTimeout, DriverError
from sw.driver.queues.interrupt_wait import LOOK_AFTER
from sw.runtime import reference
from sw.runtime.admitted_streams import AdmittedStreams
from sw.runtime.device_queues import Engines, shortest
from sw.runtime.engine_changes import EngineChanges
from sw.runtime.forecast import Estimates
from sw.runtime.measurements import Measurements
from sw.runtime.model_data import ModelData
from sw.runtime.past_durations import MeasuredLayer, past_of
from sw.runtime.preemption_mechanism import Mechanism, Situation, choose
from sw.runtime.priorities import Priorities
from sw.runtime.recovery import Recovery
from sw.runtime.request import GroupRun, Inputs, Request, State, blaming
from sw.runtime.request_steps import RequestSteps
from sw.runtime.rules import Rules
from sw.runtime.spans import RunSpan, SpanLog
from sw.runtime.started_requests import StartedRequests
from sw.runtime.switching import Switching
from sw.runtime.waiting_requests import RequestSource, RuntimeState, WaitingRequests

_TICK = 1000  #: cycles between two looks at the loaders while there is something to decide on
HISTORY = 1000  #: requests, and other things of the past, that a run time remembers unless told otherwise


class RequestRunner:
    """Runs requests on one device under ``rules``: all those of a ``Runtime``, or the one inference of a ``Session``.

    ``gain``, ``mechanism`` (its ``rule``), ``on_end``, ``history``: as of ``Runtime``. ``name``: what messages call
    whoever uses the device by it. ``admitted``: the streams of its certificate, if it has one.
    """

    def __init__(
        self, device: Device, rules: Rules, *, name: str, gain: float = 0.5,
        mechanism: Callable[[Situation], Mechanism] = choose, on_end: Callable[[Request], None] | None = None,
        history: int | None = HISTORY, admitted: AdmittedStreams | None = None,
    ) -> None:  # fmt: skip
        self.admitted = admitted
        self.device, self._rules, self._name, self._on_end = device, rules, name, on_end
        self.measured = Measurements(deque(maxlen=history))
        self._requests: deque[Request] = deque(maxlen=history)
        self._groups: deque[GroupRun] = deque(maxlen=history)
        self._submitted = count()
        self._started = StartedRequests(device, rules, Estimates({}, gain), self.measured, count(1))
        self._priorities = priorities = Priorities(device, self._started, rules)
        self._unfinished = 0  #: requests
        self._in_turn = self._closed = False
        self._log = SpanLog(history)
        self._switching = Switching(mechanism, gain)
        self._waiting = WaitingRequests(device, rules, priorities, self._switching)
        state = RuntimeState(device, rules, self._started, priorities, self._switching, self._waiting, self._log)
        self._recovery = Recovery(state, self._end)
        self._steps = RequestSteps(state, self._groups, self._recovery, self._end)
        self._changes = EngineChanges(state, self._recovery, self._steps)

    @property
    def requests(self) -> list[Request]:
        """Return what was submitted, ended or not, in that order: as many as ``history`` says. Others are the
        caller's."""
        return list(self._requests)

    @property
    def groups(self) -> list[GroupRun]:
        """Return the groups that ended, in that order: as many as ``history`` says."""
        return list(self._groups)

    @property
    def switches(self) -> int:
        """Return how often running requests were suspended or killed for more urgent ones."""
        return self._changes.count

    def close(self) -> None:
        """Cancel all requests that have not ended, at once, and take no others. The device can be used by others from
        then on; it may have been closed before. Raises :class:`DriverError` within a turn."""
        self._refuse_in_turn()
        self._closed = True
        left = [*self._waiting, *self._priorities.requests]
        if left and not self.device.ownership.closed:
            with self.device.ownership.one_thread():
                self.device.drop_all()
        self._priorities.clear()
        for request in left:
            request.cancelling = True
            self._end(request)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- requests --------------------------------------------------------------------------------------------
    def accept(
        self, data: ModelData, inputs: Inputs, *, priority: int = 0, deadline: float | None = None,
        soft_deadline: bool = False, arrival: int = 0, announced: bool = False, engines: Engines = None,
        tag: object = None, stream: str | None = None,
    ) -> Request:  # fmt: skip
        """Return a request for an inference of the model of ``data``, as ``Runtime.submit`` describes it."""
        model = data.model
        self.device.refuse_unloaded(model)
        named = shortest(self.queue_times(), model.image) if engines == "least_busy" else engines
        chosen = self._rules.engines_for(self.device, model, named)
        known = None if self.admitted is None else self.admitted.checked(stream, model)
        came = max(arrival, self._waiting.present())
        self.device.claim(self, self._name)
        at = came
        if self.admitted is not None and known is not None:
            at, priority = self.admitted.let_in(known, model, came)
        request = Request(
            next(self._submitted), data, inputs, priority, deadline, at, self.step, self._withdraw, tag, announced,
            chosen, soft_deadline, stream, at - came,
        )  # fmt: skip
        model.users.append(request.name)
        self._unfinished += 1
        self._requests.append(request)
        self._waiting.add(request)
        return request

    def queue_times(self) -> list[float]:
        """Return of each engine the cycles that the requests which use it, or will, are expected to take there."""
        found = [0.0] * self.device.params.engines
        left = [(request, self._started.remaining([request])) for request in self._started.requests]
        alone: dict[int, float] = {}  #: by loaded model, of which many requests may wait
        for request in self._waiting:
            if request.model.number not in alone:
                alone[request.model.number] = request.expected_cycles
            left.append((request, alone[request.model.number]))
        for request, cycles in left:
            for engine in self._priorities.engines(request):
                found[engine] += cycles
        return found

    def serve(self, source: RequestSource | None) -> None:
        """Take requests from ``source`` in the steps from now on, or from none any more."""
        self._waiting.serve(source)

    def run_until_done(self, source: RequestSource | None = None) -> None:
        """Run until every request has ended, those included that ``source`` submits meanwhile. Errors of a request are
        left in it."""
        self.serve(source)
        while self._waiting or self._started.requests or self._priorities.suspended:
            self.step()
        self.serve(None)
        self._recovery.guarded(self.device.settle)  # the last completions of restores belong to the spans

    def spans(self) -> list[RunSpan]:
        """Return what happened so far, by beginning."""
        return self._log.spans()

    def step(self) -> None:
        """Take one turn: start what has arrived, decide, queue, and wait for the next event. Raises ``DriverError``
        within another turn, as from ``on_end``, and from a second thread."""
        with self.device.ownership.one_thread():
            self._refuse_in_turn()
            self._in_turn = True
            try:
                guarded = self._recovery.ending_all if self._rules.whole else self._recovery.guarded
                guarded(self._turn)
                guarded(self._wait)
            finally:
                self._in_turn = False

    def _refuse_in_turn(self) -> None:
        if self._in_turn:
            raise DriverError("this run time is in a turn already: results are waited for outside of what it calls")

    def _withdraw(self, request: Request) -> None:
        with self.device.ownership.one_thread():
            request.cancelling = True
            if request.state is State.WAITING:
                self._end(request)
                return
            self._started.close(request)
            self._steps.advance_all()

    # -- starting --------------------------------------------------------------------------------------------
    def _turn(self) -> None:
        self._waiting.see()
        self._steps.end_cpu_steps()
        self._recovery.abort_late()
        self._changes.turn()
        while (request := self._waiting.startable()) is not None:
            self._start(request)
        self._started.turn(self._interrupted)

    def _start(self, request: Request) -> None:
        with blaming(request):  # it may make policies
            self._started.prepare()
        begin = max(request.arrival, self.device.bus.cycle)
        self._waiting.discard(request)
        try:
            if request.engines is not None:
                self.device.assign(request.model, request.engines)
            if not self._rules.whole:
                self._make_way(request)
            request.data.store(request.inputs)
            request.stored = self.device.bus.cycle
            self.device.begin(request.model, self._rules.limit, request.data.numbers)
        except (DeviceFault, DeviceTimeout):  # of a job of another request, or of a dump
            self._waiting.add(request)
            raise
        except Exception as error:  # inputs may be any object, and raise anything
            self._end(request, error)
            return
        request.run(self.device.bus.cycle)
        others = self._priorities.requests
        request.alone = not (others or self.device.outstanding or self.device.suspensions)
        for other in others:
            other.alone = False
        self._log.runs([request], begin)
        self._started.requests.append(request)
        self._steps.enter(request)

    def _make_way(self, request: Request) -> None:
        beside = self._priorities.beside(request)
        if self.device.suspensions:
            dump = self._recovery.admit(request)
            self._log.moves(request, dump)
            self._switching.admitted(request, dump, self.device.bus.cycle)
        elif any(request.model.overlaps(other) for other in beside):
            self.device.place(request.model, beside)
        # Switched to ahead of its arrival: the engines stand, so there is nothing else to do.
        self.device.bus.advance(max(0, request.arrival - self.device.bus.cycle))

    def _end(self, request: Request, error: Exception | None = None) -> None:
        if self._rules.whole and error is not None and request.stored is not None:
            self.device.abort(request.model)
        self._waiting.discard(request)
        self._log.stops(request, max((result.end for result in request.results), default=self.device.bus.cycle))
        request.end(self.device.bus.cycle, error)
        request.model.users.remove(request.name)
        self.device.end(request.model)
        self._switching.forget(request)
        self._switching.reconsider()
        self._unfinished -= 1
        self._demote(request)
        for action in (self._learn, self._on_end):
            try:
                if action is not None:
                    action(request)
            except Exception as failure:
                request.failed_at_end(failure)
        if not self._unfinished:
            self.device.ownership.release(self)

    def _learn(self, request: Request) -> None:
        """Keep the durations of the layers of a request that had the device to itself, if its image has none."""
        if request.alone and request.state is State.DONE and not reference.measured(request.model.image):
            reference.store(request.model.image, request.results)
            past_of(self.device, request.tenant).add(MeasuredLayer.all_of(request.model.image))

    def _demote(self, request: Request) -> None:
        """Let the stream of ``request`` be best effort from now on, as it has failed."""
        if self.admitted is None or request.stream is None or request.state is not State.FAILED:
            return
        self.admitted.demote(request.stream)
        for other in self._waiting:
            if other.stream == request.stream:
                other.priority = self.admitted.lowest

    # -- waiting ---------------------------------------------------------------------------------------------
    # Time passes while the host works. So what has become due since the turn began is looked at before anything is
    # waited for, whatever it is and wherever it comes from: nothing but an interrupt would end the wait otherwise.
    def _interrupted(self) -> bool:
        """Return whether the host has to leave what it does: for a more urgent request, or one that is too late."""
        late = self._recovery.next_deadline()
        return self._changes.due() or (late is not None and late <= self.device.bus.cycle)

    def _wait(self) -> None:
        """Let time pass until something is to be done, and take what has ended on the device. Raises ``DeviceTimeout``
        if a job has kept its engine longer than it may."""
        if self._rules.whole:
            self._wait_for_all()
            return
        if self._waiting.unseen() and (self._waiting.startable() is not None or self._changes.due()):
            return
        now = self.device.bus.cycle
        ahead = [max(0, cycle - now) for cycle in self._due()]
        if not self.device.outstanding and self.device.transferring:
            if not self.device.poll(min([_TICK, *ahead])):  # a dump or restore may fill the rings
                self.device.refuse_overdue()
            self._steps.advance_all()
        elif not self.device.outstanding:
            self._steps.advance_all()  # what ended together with a fault has not been looked at
            if ahead and self._changes.idle():
                self.device.bus.advance(min(ahead))
        else:
            self._wait_for_jobs(ahead)

    def _wait_for_all(self) -> None:
        """Wait until all that was begun has ended, or something has if there are layers still to be placed."""
        for request in self._priorities.requests:
            if request.on_cpu is not None:
                self.device.bus.advance(request.on_cpu.end - self.device.bus.cycle)
        runs = [*self._started.groups.values()]
        if self._started.starved:
            if self._rules.limit is None:
                self._wait_for_jobs([])
                return
            runs = runs[:1]
        self.device.collect([job for run in runs for job in run.jobs], self._rules.limit)
        self._steps.advance_all()

    def _wait_for_jobs(self, ahead: list[int]) -> None:
        ticks = [_TICK] if self._started.starved and not self._rules.at_arrival else []
        patience = self.device.patience()
        limits = [LOOK_AFTER if patience is None else patience, *ahead, *ticks, *self._back_soon()]
        if self.device.poll(min(limits), self._changes.due):
            self._steps.advance_all()
        else:
            self.device.refuse_overdue()

    def _back_soon(self) -> Iterator[int]:
        """Yield the cycles to sleep for while others wait for the engines of those that run: until shortly before these
        are expected to end, so that no interrupt has to wake the host for it."""
        if not self._priorities.suspended or not self._priorities.running:
            return
        ahead = self._started.remaining(self._priorities.running) - self.device.bus.costs.interrupt / 2
        if ahead > self.device.bus.costs.interrupt:
            yield int(ahead)

    def _due(self) -> Iterator[int]:
        """Yield the cycles at which something is to be done, the next of each kind; some may have passed."""
        for cycle in (self._waiting.next_arrival(), self._recovery.next_deadline()):
            if cycle is not None:
                yield cycle
        if (known := self._changes.foreseen()) is not None:
            yield known[1]
        yield from (request.on_cpu.end for request in self._priorities.requests if request.on_cpu is not None)
