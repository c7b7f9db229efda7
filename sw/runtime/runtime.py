"""Is the run time for several models at once: layer by layer, under a policy (**Idle-time layer scheduling**,
**Queue-time balancing**), with preemption by priority (**Cancellation points**) if wanted."""

import math
from collections import deque
from collections.abc import Callable, Sequence
from itertools import count
from typing import Self

from sw.driver import Device, DeviceFault, DeviceTimeout, DriverError, LoadedModel
from sw.runtime import reference
from sw.runtime.blame import blaming
from sw.runtime.cpu_steps import CpuSteps
from sw.runtime.deadlines import Deadlines
from sw.runtime.estimates import Estimates
from sw.runtime.group_run import GroupRun
from sw.runtime.handles import DeviceHandle, ModelHandle, ModelOfInputs, driver_of, loaded_of
from sw.runtime.level_changes import LevelChanges
from sw.runtime.measurements import Measurements
from sw.runtime.policies import OrderPolicy, PlacementPolicy
from sw.runtime.preemption_mechanism import Mechanism, Situation, choose
from sw.runtime.priority_level import PriorityLevel
from sw.runtime.recovery import Recovery
from sw.runtime.request import Inputs, Request, State
from sw.runtime.request_source import RequestSource
from sw.runtime.request_steps import RequestSteps
from sw.runtime.rules import Rules
from sw.runtime.session import Session
from sw.runtime.spans import RunSpan, SpanLog
from sw.runtime.switching import Switching
from sw.runtime.waiting_requests import WaitingRequests
from sw.runtime.wake_ups import WakeUps

HISTORY = 1000  #: requests, and other things of the past, that a run time remembers unless told otherwise


class Runtime:
    """Runs requests of several loaded models side by side on one device.

    Each time a layer starts to load, ``order`` (a policy's name, or what makes one) chooses whose layer is next; its
    jobs are queued at once, so that the loader fetches its weights while others compute. Models whose LV2 windows
    overlap take turns, and so do requests of one loaded model: load a model twice, with ``Options.lv2_limit``, to have
    two in flight.

    A request that has the device to itself stores the durations of its layers in its image, if that has none.

    Steps of a model that the CPU computes take their time (``sim.bus.HostCosts``), one after the other on a core of its
    own, beside the one that runs driver and scheduler; layers of other requests run meanwhile.

    Layers run on the engines that were chosen for their model or its request, so that models on different engines run
    side by side. With ``placed``, ``placement`` (likewise, ``queue_time`` if not given) says on which engine each layer
    runs. Layers of a model that was compiled with ``placed`` wait for those that they read; those of one compiled for
    one engine (``engines=1``) run one after the other.

    Parameters
    ----------
    device : as ``caesura.open`` returns it, or its driver
    preemptive : the most urgent requests suspend all others; one at a time while others are suspended
    at_arrival : place all layers of a request when it arrives, as queue balancers do
    ahead : layers that may be queued and not have begun to compute, as many as an engine has job slots by default; more
        hide longer loads, fewer react sooner
    layers_per_decision : decided on at a time, for the cost of one decision
    gain : how far a measurement moves an estimate, see ``Estimates``
    rule : what to do on a more urgent arrival
    may_kill : offer ``rule`` to kill what runs, which then starts again from its beginning
    on_end : called with each request when it has ended; it may submit others
    initial_waits : of each engine's queue, for queue-time balancing, in cycles
    initial_waits_decay : they fall with every cycle from now on, as of engines that warm up
    history : how many requests, groups, spans, decisions and dumps are remembered, the newest of each; None: all
    """

    def __init__(
        self,
        device: Device | DeviceHandle,
        order: str | Callable[[], OrderPolicy] = "idle_time",
        placement: str | Callable[..., PlacementPolicy] | None = None,
        *,
        placed: bool = False,
        preemptive: bool = False,
        at_arrival: bool = False,
        ahead: int | None = None,
        gain: float = 0.5,
        rule: Callable[[Situation], Mechanism] = choose,
        may_kill: bool = False,
        on_end: Callable[[Request], None] | None = None,
        initial_waits: Sequence[float] | None = None,
        initial_waits_decay: bool = False,
        layers_per_decision: int = 1,
        history: int | None = HISTORY,
    ) -> None:
        self.device = device = driver_of(device)
        device.remember(history)
        self.measured = Measurements(deque(maxlen=history))
        self._requests: deque[Request] = deque(maxlen=history)
        self._groups: deque[GroupRun] = deque(maxlen=history)
        self._submitted = count()
        self._rules = Rules.chosen(
            device, order, placement, placed=placed, ahead=ahead, at_arrival=at_arrival,
            per_decision=layers_per_decision, initial_waits=initial_waits, decay=initial_waits_decay,
        )  # fmt: skip
        self._on_end = on_end
        self._estimates = Estimates({}, gain)
        self._sessions: dict[int, Session] = {}
        self._numbers = count(1)
        self._levels: list[PriorityLevel] = []  #: the last has the engines, the others are suspended
        self._unfinished = 0  #: requests
        self._in_turn = self._closed = False
        self._log = SpanLog(history)
        self._switching = Switching(rule, gain)
        self._waiting = WaitingRequests(device, self._levels, self._switching, preemptive)
        self._recovery = Recovery(device, self._levels, self._waiting, self._log, self._end)
        self._deadlines = Deadlines(device, self._levels, self._waiting, self._recovery, self._end)
        self._steps = RequestSteps(self._levels, self._groups, CpuSteps(device), self._recovery, self._end)
        self._changes = LevelChanges(
            device, self._levels, self._waiting, self._switching, self._recovery, self._log,
            preemptive=preemptive, may_kill=may_kill, collect=self._steps.advance_all,
        )  # fmt: skip
        self._wake_ups = WakeUps(
            device, self._levels, self._waiting, self._deadlines, self._changes, self._steps, self._rules,
        )  # fmt: skip

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
        left = [*self._waiting, *(request for level in self._levels for request in level.requests)]
        if left and not self.device.ownership.closed:
            with self.device.ownership.one_thread():
                self.device.drop_all()
        self._levels.clear()
        for request in left:
            request.cancelling = True
            self._end(request)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- requests --------------------------------------------------------------------------------------------
    def submit(
        self,
        model: LoadedModel | ModelHandle | ModelOfInputs,
        inputs: Inputs,
        *,
        priority: int = 0,
        deadline: float | None = None,
        soft_deadline: bool = False,
        arrival: int = 0,
        announced: bool = False,
        engines: Sequence[int] | None = None,
        tag: object = None,
    ) -> Request:
        """Return a request for an inference of ``model``, as ``caesura.Device.load`` or the driver returns it, or of
        the one that a ``caesura.dynamic`` model has for ``inputs``, that arrives at cycle ``arrival`` (0: now). ``tag``
        is the caller's.

        ``deadline``: the last cycle at which it may end, counted as ``arrival`` is, from the device's beginning. One
        that has not ended then is aborted, whether it waits, runs, is suspended or on the CPU, and its error is
        :class:`DeadlineMissed`. It ends at once, unless jobs of others stand on its engines: then it ends with the last
        of its jobs that are queued there, or after 2^20 cycles, and others on these engines start over. Policies may
        look at the deadline; a ``soft_deadline`` is for them alone, and nothing is aborted.

        ``announced``: that it will arrive then is known from now on, as when the CPU computes its inputs in a known
        time. Less urgent requests may be suspended ahead of it. Otherwise nothing is done about it before it arrives.

        ``engines``: the engines that run it, see ``Device.assign``; by default those of the model's last inference.

        Raises ``ValueError`` for a deadline that is no number, ``DriverError`` if layers are to be placed and the model
        was compiled for several engines, or if it cannot run on ``engines``, is not loaded, or the device is used by
        somebody else.
        """
        if deadline is not None and math.isnan(deadline):
            raise ValueError("deadline is not a number: give the last cycle at which the request may end")
        with self.device.ownership.one_thread():
            if self._closed:
                raise DriverError("this run time was closed: open another")
            model = loaded_of(model, inputs)
            self.device.refuse_unloaded(model)
            chosen = self._rules.engines_for(self.device, model, engines)
            arrival = max(arrival, self._waiting.present())
            session = self._session(model)
            self.device.claim(self, "a run time with requests that have not ended")
            request = Request(
                next(self._submitted), session, inputs, priority, deadline, arrival, self.step, self._withdraw, tag,
                announced, chosen, soft_deadline,
            )  # fmt: skip
            model.users.append(request.name)
            self._unfinished += 1
            self._requests.append(request)
            self._waiting.add(request)
            return request

    def _session(self, model: LoadedModel) -> Session:
        if id(model) not in self._sessions:
            self._sessions = {key: kept for key, kept in self._sessions.items() if kept.model.loaded}
            self._sessions[id(model)] = Session(self.device, model)
        return self._sessions[id(model)]

    def run_until_done(self, source: RequestSource | None = None) -> None:
        """Run until every request has ended, those included that ``source`` submits meanwhile. Errors of a request are
        left in it."""
        self._waiting.serve(source)
        while self._waiting or self._levels:
            self.step()
        self._waiting.serve(None)
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
                self._recovery.guarded(self._turn)
                self._recovery.guarded(self._wake_ups.wait)
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
            for level in self._levels:
                level.close(request)
            self._steps.advance_all()

    # -- starting --------------------------------------------------------------------------------------------
    def _turn(self) -> None:
        self._waiting.see()
        self._steps.end_cpu_steps()
        self._deadlines.turn()
        self._changes.turn()
        while (request := self._waiting.startable()) is not None:
            self._start(request)
        if self._levels:
            self._levels[-1].turn(self._wake_ups.interrupted)

    def _start(self, request: Request) -> None:
        if not self._levels or self._levels[-1].suspension is not None:
            with blaming(request):  # it makes policies
                new = PriorityLevel(
                    self.device, self._rules, self._estimates, request.priority, self.measured, self._numbers
                )
                self._levels.append(new)
        level, begin = self._levels[-1], max(request.arrival, self.device.bus.cycle)
        self._waiting.discard(request)
        try:
            if request.engines is not None:
                self.device.assign(request.model, request.engines)
            if self.device.suspensions:
                dump = self._recovery.admit(request)
                self._log.moves(request, dump)
                self._switching.admitted(request, dump, self.device.bus.cycle)
            # Switched to ahead of its arrival: the engines stand, so there is nothing else to do.
            self.device.bus.advance(max(0, request.arrival - self.device.bus.cycle))
            request.session.store(request.inputs)
            self.device.begin(request.model, None)
        except (DeviceFault, DeviceTimeout):  # of a job of another request, or of a dump
            self._waiting.add(request)
            raise
        except Exception as error:  # inputs may be any object, and raise anything
            self._end(request, error)
            return
        request.run(self.device.bus.cycle)
        others = [other for each in self._levels for other in each.requests]
        request.alone = not others and not self.device.outstanding
        for other in others:
            other.alone = False
        self._log.runs([request], begin)
        level.requests.append(request)
        self._steps.enter(level, request)

    def _end(self, request: Request, error: Exception | None = None) -> None:
        self._waiting.discard(request)
        self._log.stops(request, max((result.end for result in request.results), default=self.device.bus.cycle))
        request.end(self.device.bus.cycle, error)
        request.model.users.remove(request.name)
        self._switching.forget(request)
        self._switching.reconsider()
        self._unfinished -= 1
        try:
            if request.alone and request.state is State.DONE and not reference.measured(request.model.image):
                reference.store(request.model.image, request.results)
            if self._on_end is not None:
                self._on_end(request)
        except Exception as failure:
            request.failed_at_end(failure)
        if not self._unfinished:
            self.device.ownership.release(self)
