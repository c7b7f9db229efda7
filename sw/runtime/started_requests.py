"""Keeps the requests that have started: what is decided for them, queued, loading, running."""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress

from hw.contract.isa import Segment
from sw.driver import Device, HaltRecord, LoadedModel
from sw.driver.queues.job import JobState
from sw.runtime.forecast import Estimates, Forecast
from sw.runtime.job_groups import JobGroup, first_job, reference_duration
from sw.runtime.layer_graph import LayerGraph
from sw.runtime.layer_runner import LayerRunner, StepScheduler
from sw.runtime.loaders import Loaders
from sw.runtime.measurements import Measurements
from sw.runtime.memory_share import MemoryShares
from sw.runtime.reference import longest, measured
from sw.runtime.request import Blamed, GroupRun, Request, State, blaming
from sw.runtime.rules import Rules
from sw.runtime.scheduler import Decision, LayerChain, LayerScheduler, PolicyFailed


class StartedRequests:
    """Holds the requests of one run time that have started. Each uses a set of engines; where no two sets meet, nothing
    that is decided or queued for one waits for the other. Suspended ones stay, with what was decided for them.
    ``numbers`` gives one for each step of a request, later ones larger."""

    def __init__(
        self, device: Device, rules: Rules, estimates: Estimates, measured: Measurements, numbers: Iterator[int]
    ) -> None:
        self.requests: list[Request] = []  #: not ended, in the order in which they started
        self.groups: dict[tuple[int, int], GroupRun] = {}  #: decided on, not ended, in the order of decision
        self.finished: list[GroupRun] = []
        self.failed: list[tuple[Request, Exception]] = []  #: requests to be ended with these errors
        self._device, self._rules, self._estimates = device, rules, estimates
        self._measured, self._numbers = measured, numbers
        self._holders: dict[str, list[int | None]] = {}
        self._chooses = rules.placed or not rules.whole
        self._waiting: deque[GroupRun] = deque()  #: not all jobs queued
        self._begun: set[tuple[int, int]] = set()  #: known to compute
        self._loaders, self._shares = Loaders(device), MemoryShares(estimates)
        self._observed = 0  #: cycle of the latest look at the loaders
        self._resumed: dict[int, int] = {}  #: cycle of the latest return to each engine
        self._forecast: Forecast
        self._scheduler: LayerScheduler
        self._layers: LayerRunner[Request, JobGroup]

    # -- requests --------------------------------------------------------------------------------------------
    def prepare(self) -> None:
        """Get ready for a request that is about to start. For the first one this makes the policies, which may be the
        user's and raise anything."""
        if self.requests:
            return
        params, rules = self._device.params, self._rules
        self._holders.clear()
        self._forecast = Forecast(params.engines, params.lv2_bytes, params.job_slots)
        self._scheduler = StepScheduler() if not self._chooses else LayerScheduler(
            rules.order(), rules.placement(), self._forecast, self._estimates, holders=self._holders,
            duration=lambda cost: max(cost.load, cost.compute),  # each engine has a loader of its own
        )  # fmt: skip
        self._layers = LayerRunner(self._scheduler, self._measured.decision_seconds, rules.per_decision)

    def remove(self, request: Request) -> None:
        """Remove ``request``, of which nothing is queued, if it is here."""
        self.requests = [other for other in self.requests if other is not request]

    def clear(self) -> None:
        """Forget all requests, as nothing is on the device any more."""
        self.requests.clear()
        self.groups.clear()
        self._waiting.clear()

    def open(self, request: Request) -> None:
        """Schedule the current step of ``request``, which runs on the accelerator, from now on."""
        image = request.model.image
        key = f"{image.meta.model} #{id(image)} step {request.step}"
        groups, number = self._rules.groups(request), next(self._numbers)
        kinds = [] if measured(image) else [image.meta.layers[group.layer].kind for group in groups]
        self._estimates.add(key, [group.cost for group in groups], kinds)
        self._holders[key] = [group.holder for group in groups]
        graph = LayerGraph([group.after or () for group in groups]) if request.model.placed else None
        engines = frozenset() if self._rules.placed else frozenset(request.model.engines)
        parked = request.state is State.SUSPENDED
        chain = LayerChain(number, key, request.arrival, request.priority, request.deadline, engines, parked=parked)
        self._layers.open(chain, request, groups, graph)

    def close(self, request: Request) -> None:
        """Schedule no more for ``request``; what is queued runs out."""
        for number in [n for n, step in self._layers.steps.items() if step.owner is request]:
            self._layers.close(number)
            for run in [run for run in self._waiting if run.request is request and not run.jobs]:
                self._waiting.remove(run)
                self._forget(run)

    def drop(self, request: Request) -> None:
        """Remove ``request``, whose jobs are gone."""
        self.close(request)
        for run in [run for run in self.groups.values() if run.request is request]:
            self._forget(run)
        self._waiting = deque(run for run in self._waiting if run.request is not request)
        self._layers.forget(request)

    def robbed(self) -> Request | None:
        """Return a request that has lost jobs which were queued, or None if there is none."""
        runs = (run for run in self.groups.values() if any(job.state is JobState.LOST for job in run.jobs))
        return next((run.request for run in runs), None)

    def owner_of(self, job_id: int) -> Request | None:
        """Return the request that a job belongs to, or None if it is none of these."""
        return next((run.request for run in self.groups.values() if run.has(job_id)), None)

    def oldest(self) -> Request | None:
        """Return the request whose group has been on the engines longest, or None if there is none."""
        return next((run.request for run in self._running()), None)

    def _forget(self, run: GroupRun) -> None:
        del self.groups[run.decision.key]
        with suppress(Exception):  # of a policy that is told of it: the request ends or starts over anyway
            self._layers.dropped(run.decision)

    def busy(self, request: Request) -> bool:
        """Return whether any group of ``request`` is decided on or still to be decided on."""
        return any(step.owner is request for step in self._layers.steps.values())

    # -- decisions -------------------------------------------------------------------------------------------
    def turn(self, interrupted: Callable[[], bool]) -> None:
        """Decide on what the loaders can begin with, and queue it as far as there is room. Between two decisions the
        host asks whether it is ``interrupted``; then the rest is for a later turn."""
        if not self.requests:
            return
        self.push()
        if not self._rules.whole:
            self._observe()
        try:
            self._layers.turn(self, interrupted)
        except PolicyFailed as failure:
            raise Blamed(self._layers.steps[failure.chain.number].owner, failure) from failure

    @property
    def starved(self) -> bool:
        """Return whether there is something to decide on as soon as a loader gets to what is queued."""
        return bool(self.requests) and bool(self._scheduler.open_chains)

    # -- as executor of the layers that are decided on (``LayerExecutor``) ------------------------------------------
    def now(self) -> float:
        """Return the cycle of the device."""
        return self._device.bus.cycle

    def think(self) -> None:
        """Let the host decide, unless there is nothing to choose."""
        if not self._rules.whole:
            self._device.bus.advance(self._device.bus.costs.decision)

    def room(self, chain: LayerChain) -> bool:
        """Return whether there are few enough groups that have not begun to compute, and loaders have come to what is
        queued: on the engines of ``chain``, or on all where its layers are placed."""
        if self._rules.at_arrival:
            return True
        runs = [run for run in self._running() if run.decision.chain.meets(chain)]
        if sum(run.decision.key not in self._begun for run in runs) >= self._rules.ahead:
            return False
        if self._rules.whole:
            return True
        if self._rules.placed and len({run.decision.engine for run in runs}) < self._device.params.engines:
            return True
        if any(run in self._waiting for run in runs):
            return False
        if not self._loaders.has_come_to([job for run in runs for job in run.jobs[:1]], chain.engines or None):
            return False
        beside = [step.chain for step in self._layers.steps.values()]
        return self._shares.may_join(chain, beside, self._running(), self._begun, self._scheduler.yields, self.now())

    def _running(self) -> list[GroupRun]:
        """Return the groups of requests that are not suspended, in the order of decision."""
        return [run for run in self.groups.values() if not run.decision.chain.parked]

    def take(self, decision: Decision) -> None:
        """Let a group of jobs wait to be queued."""
        step = self._layers.steps[decision.chain.number]
        group = step.layers[decision.layer]
        run = GroupRun(step.owner, decision.layer, group, decision, self._device.bus.cycle, deque(group.jobs))
        self.groups[run.decision.key] = run
        self._waiting.append(run)

    def push(self) -> None:
        """Queue jobs in the order of decisions, on each engine until its ring is full.

        A placed group that has to wait, for its ring, for a window that a job on another engine holds, or for more
        engines than a descriptor can name, holds up its own request only: jobs depend on nothing but earlier jobs of
        their request, which are queued already.
        """
        self._loaders.forget()
        stuck: set[int] = set()  #: requests, or engines
        for run in [run for run in self._waiting if not run.decision.chain.parked]:
            held = {run.request.number} if self._rules.placed else set(run.request.model.engines)
            if stuck.isdisjoint(held):
                self._submit(run)
                if not run.left:
                    self._waiting.remove(run)
            if run.left:
                stuck |= held

    def _submit(self, run: GroupRun) -> None:
        """Queue as many jobs of ``run`` as there is room for."""
        engine = self._engines(run)[0] if self._rules.placed else None
        limit = self._rules.limit if self._rules.whole else 0
        with blaming(run.request):
            queued = self._device.submit(run.request.model, list(run.left), limit=limit, engine=engine)
        run.jobs += queued
        for _ in queued:
            run.left.popleft()

    # -- what happens ----------------------------------------------------------------------------------------
    def _observe(self) -> None:
        """Tell the forecast what has been loaded and what computes, as of now."""
        now = self._device.bus.cycle
        self._forecast.turnaround = self._measured.turnaround
        models = {id(request.model): request.model for request in self.requests if request.state is State.RUNNING}
        self._forecast.resident = sum(model.image.meta.segment_sizes[Segment.LV2] for model in models.values())
        not_loaded = {job for jobs in self._loaders.to_load().values() for job in jobs}
        heads: set[int] = set()  #: engines whose first group of those that are queued has been seen
        for run in self._running():
            if not run.jobs or run.left:
                continue
            if not not_loaded.intersection(run.jobs):
                self._scheduler.load_noticed(run.decision, max(run.decided, self._observed), now)
            engines = self._engines(run)
            if heads.isdisjoint(engines) and run.jobs[0] not in not_loaded and run.decision.key not in self._begun:
                self._begun.add(run.decision.key)
                self._scheduler.started(run.decision, max(run.decided, self._measured.last_end(engines)))
            heads.update(engines)
        self._observed = now

    def _engines(self, run: GroupRun) -> Sequence[int]:
        engines = run.request.model.engines
        if not self._rules.placed:
            return engines
        return [engines[run.decision.engine] if self._rules.whole else run.decision.engine]

    def collect(self) -> None:
        """Take results of jobs that have ended, and correct estimates by them."""
        for run in list(self.groups.values()):
            if run.left or run.results or {job.state for job in run.jobs} - {JobState.DONE}:
                continue
            run.results, run.jobs = self._device.collect(run.jobs, 0), []
            try:
                self._finish(run)
            except Exception as error:  # of a policy
                self.failed.append((run.request, error))

    def _finish(self, run: GroupRun) -> None:
        if self._chooses:
            run.idle = self._measured.idle(run.results, run.decided)
        del self.groups[run.decision.key]
        self._begun.discard(run.decision.key)
        self._scheduler.load_started(run.decision, run.load_start)
        self._scheduler.load_ended(run.decision, run.load_end)
        self._scheduler.started(run.decision, run.start)
        if any(result.resumed for result in run.results):
            self._layers.ended(run.decision, run.end)
        else:
            took = longest(run.results)
            self._layers.ended(run.decision, run.end, load=took.load + took.stream, compute=took.compute)
        self.finished.append(run)
        run.request.groups_ended += 1
        run.request.results += run.results
        run.request.setbacks = 0

    # -- preemption ------------------------------------------------------------------------------------------
    def suspend(self, requests: Collection[Request], halts: Iterable[HaltRecord]) -> None:
        """Leave the engines to more urgent requests. What bodies did before they halted counts as compute: completions
        of jobs that continue tell of the rest only. They are taken to have begun when the engine was free for them."""
        for halt in halts:
            run = next((run for run in self.groups.values() if halt.in_job and run.has(halt.job_id)), None)
            if run is not None:
                ends = [job.result.end for job in run.jobs if job.result is not None and job.engine == halt.engine]
                resumed = self._resumed.get(halt.engine, 0)
                begin = max([run.decided, resumed, self._measured.last_end([halt.engine]), *ends])
                run.stopped.append(begin)
                self._measured.computed(halt.engine, halt.cycle - begin)
        for request in requests:
            self._layers.park(request, self.now())
            request.suspend()

    def resume(self, requests: Collection[Request], engines: Iterable[int], cycle: int) -> None:
        """Go on with ``requests``, whose stopped jobs are queued again from ``cycle`` on."""
        self._resumed |= dict.fromkeys(engines, cycle)
        for request in requests:
            request.run()
            self._layers.unpark(request, self.now())

    def hold(self, requests: Collection[Request]) -> None:
        """Stay suspended, as the restore has failed."""
        for request in requests:
            if request.state is State.RUNNING:
                request.hold()
                self._layers.park(request, self.now())

    def next_jobs(self, requests: Collection[Request]) -> list[tuple[LoadedModel, int]]:
        """Return the next job of each of ``requests`` that is not on an engine, for what it finds in LV2: of a layer
        that is queued in part the next one, otherwise the first of the table.

        Also of requests that have others queued: these may end before the engines halt.
        """
        return [(request.model, job) for request in requests if (job := self._next_job(request)) is not None]

    def _next_job(self, request: Request) -> int | None:
        runs = [run for run in self.groups.values() if run.request is request]
        begun = [run.left[0] for run in runs if run.jobs and run.left]
        known = {job for run in runs for job in set(run.group.jobs) - set(run.left)} | {r.job for r in request.results}
        steps = [step for step in request.steps[request.step :] if step.kind == "jobs"]
        return begun[-1] if begun else first_job(request.model.image, steps, known)

    def remaining(self, requests: Collection[Request]) -> float:
        """Return the cycles until ``requests`` will have ended, as forecast: what is queued on their engines has to
        compute, and what is not scheduled yet."""
        now, everywhere = self._device.bus.cycle, range(self._device.params.engines)
        engines = everywhere if self._rules.placed else {e for request in requests for e in request.model.engines}
        self._forecast.state(now)
        queued = max(0.0, self._forecast.compute_end(engines) - now)
        numbers = {number for number, step in self._layers.steps.items() if step.owner in requests}
        to_decide = self._scheduler.remaining(numbers, len(everywhere) if self._rules.placed else 1)
        later = sum(
            reference_duration(r.model.image, step, r.expected) + r.data.host_cycles(step)
            for r in requests
            for step in r.steps[r.step + 1 :]
        )
        on_cpu = max([0, *(r.on_cpu.end - now for r in requests if r.on_cpu is not None)])
        return max(queued + to_decide, on_cpu) + later
