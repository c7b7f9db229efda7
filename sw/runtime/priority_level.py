"""Keeps requests of one priority on the device: what is decided for them, queued, loading, running."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from hw.contract.isa import Segment
from sw.driver import Device, LoadedModel
from sw.driver.preempt.state_transfer import StateTransfer
from sw.driver.preempt.suspension import Suspension
from sw.driver.queues.job import JobState
from sw.runtime.forecast import Estimates, Forecast
from sw.runtime.job_groups import JobGroup, job_groups, reference_duration
from sw.runtime.layer_runner import LayerRunner, StepScheduler
from sw.runtime.measurements import Measurements
from sw.runtime.reference import longest
from sw.runtime.request import Blamed, GroupRun, Request, State, blaming
from sw.runtime.rules import Rules
from sw.runtime.scheduler import Decision, LayerChain, LayerGraph, LayerScheduler, PolicyFailed


class PriorityLevel:
    """Holds started requests of one priority. ``suspension`` is set while more urgent requests have the engines.
    ``numbers`` gives one for each step of a request, later ones larger."""

    def __init__(
        self, device: Device, rules: Rules, estimates: Estimates, measured: Measurements, numbers: Iterator[int],
        priority: int,
    ) -> None:  # fmt: skip
        self.priority = priority
        self.suspension: Suspension | None = None
        self.requests: list[Request] = []  #: started, not ended
        self.groups: dict[tuple[int, int], GroupRun] = {}  #: decided on, not ended, in the order of decision
        self.finished: list[GroupRun] = []
        self.failed: list[tuple[Request, Exception]] = []  #: requests to be ended with these errors
        self._device, self._rules, self._estimates = device, rules, estimates
        self._measured, self._numbers = measured, numbers
        self._holders: dict[str, list[int | None]] = {}
        engines = device.params.engines if rules.placed else 1
        self._forecast = Forecast(engines, device.params.lv2_bytes, device.params.job_slots)
        self._chooses = rules.placed or not rules.whole
        self._scheduler = StepScheduler() if not self._chooses else LayerScheduler(
            rules.order(), rules.placement(), self._forecast, estimates, holders=self._holders,
            duration=lambda cost: max(cost.load, cost.compute),  # each engine has a loader of its own
        )  # fmt: skip
        self._layers = LayerRunner[Request, JobGroup](self._scheduler, measured.decision_seconds, rules.per_decision)
        self._waiting: deque[GroupRun] = deque()  #: not all jobs queued
        self._begun: set[tuple[int, int]] = set()  #: known to compute
        self._observed = 0  #: cycle of the latest look at the loaders
        self._resumed = 0  #: cycle of the latest return to the engines

    # -- requests --------------------------------------------------------------------------------------------
    def open(self, request: Request) -> None:
        """Schedule the current step of ``request``, which runs on the accelerator, from now on."""
        image = request.model.image
        key = f"{image.meta.model} #{id(image)} step {request.step}"
        groups, number = self._rules.groups(request), next(self._numbers)
        self._estimates.add(key, [group.cost for group in groups])
        self._holders[key] = [group.holder for group in groups]
        graph = LayerGraph([group.after or () for group in groups]) if request.model.placed else None
        chain = LayerChain(number, key, request.arrival, request.priority, request.deadline)
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

    def robbed(self, request: Request) -> bool:
        """Return whether jobs of ``request`` that were queued are gone."""
        runs = [run for run in self.groups.values() if run.request is request]
        return any(job.state is JobState.LOST for run in runs for job in run.jobs)

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
        if not self._rules.whole:
            self._observe()
        self.push()
        try:
            self._layers.turn(self, interrupted)
        except PolicyFailed as failure:
            raise Blamed(self._layers.steps[failure.chain.number].owner, failure) from failure

    @property
    def starved(self) -> bool:
        """Return whether there is something to decide on as soon as a loader gets to what is queued."""
        return bool(self._scheduler.open_chains)

    # -- as executor of the layers that are decided on (``LayerExecutor``) ------------------------------------------
    def now(self) -> float:
        """Return the cycle of the device."""
        return self._device.bus.cycle

    def think(self) -> None:
        """Let the host decide, unless there is nothing to choose."""
        if not self._rules.whole:
            self._device.bus.advance(self._device.bus.costs.decision)

    def room(self) -> bool:
        """Return whether there are few enough groups that have not begun to compute, and loaders have come to what is
        queued."""
        if self._rules.at_arrival:
            return True
        if len(self.groups) - len(self._begun) >= self._rules.ahead:
            return False
        if self._rules.whole:
            return True
        if (
            self._rules.placed
            and len({run.decision.engine for run in self.groups.values()}) < self._device.params.engines
        ):
            return True
        return not self._waiting and not self._backlog()

    def _backlog(self) -> bool:
        """Return whether, on the engines of every open request, there is a queued group that no loader has come to."""
        waiting = {job for queue in self._device.engines for job in queue.not_loaded()[1:]}
        behind = {e for run in self.groups.values() if waiting.intersection(run.jobs[:1]) for e in self._engines(run)}
        if self._rules.placed:  # anywhere
            return bool(behind)
        opened = [self._layers.steps[chain.number].owner.model for chain in self._scheduler.open_chains]
        return all(not behind.isdisjoint(model.engines) for model in opened)

    def take(self, decision: Decision) -> None:
        """Let a group of jobs wait to be queued."""
        step = self._layers.steps[decision.chain.number]
        group = step.layers[decision.layer]
        run = GroupRun(step.owner, decision.layer, group, decision, self._device.bus.cycle, deque(group.jobs))
        self.groups[run.decision.key] = run
        self._waiting.append(run)

    def push(self) -> None:
        """Queue jobs in the order of decisions, until a ring is full.

        A placed group that has to wait, for its ring, for a window that a job on another engine holds, or for more
        engines than a descriptor can name, holds up its own request only: jobs depend on nothing but earlier jobs of
        their request, which are queued already.
        """
        stuck: set[int] = set()
        for run in list(self._waiting):
            if run.request.number in stuck:
                continue
            self._submit(run)
            if not run.left:
                self._waiting.remove(run)
            elif self._rules.placed:
                stuck.add(run.request.number)
            else:
                return

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
        models = {id(request.model): request.model for request in self.requests}.values()
        self._forecast.resident = sum(model.image.meta.segment_sizes[Segment.LV2] for model in models)
        not_loaded = {job for queue in self._device.engines for job in queue.not_loaded()}
        heads: set[int] = set()  #: engines whose first group of those that are queued has been seen
        for run in self.groups.values():
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
    def suspend(self, suspension: Suspension) -> None:
        """Leave the engines to more urgent requests. What bodies did before they halted counts as compute: completions
        of jobs that continue tell of the rest only. They are taken to have begun when the engine was free for them."""
        self.collect()
        self.suspension = suspension
        for halt in suspension.halts.values():
            run = next((run for run in self.groups.values() if halt.in_job and run.has(halt.job_id)), None)
            if run is not None:
                ends = [job.result.end for job in run.jobs if job.result is not None and job.engine == halt.engine]
                begin = max([run.decided, self._resumed, self._measured.last_end([halt.engine]), *ends])
                run.stopped.append(begin)
                self._measured.computed(halt.engine, halt.cycle - begin)

    def next_jobs(self) -> list[tuple[LoadedModel, int]]:
        """Return the next job of each request that is not on an engine, for what it finds in LV2: of a layer that is
        queued in part the next one, otherwise the first of the table.

        Also of requests that have others queued: these may end before the engines halt.
        """
        begun = {run.request.number: run.left[0] for run in self.groups.values() if run.jobs and run.left}
        lefts = [(request, self._jobs_left(request)) for request in self.requests]
        return [(request.model, begun.get(request.number, jobs[0])) for request, jobs in lefts if jobs]

    def _jobs_left(self, request: Request) -> list[int]:
        runs = [run for run in self.groups.values() if run.request is request]
        known = {job for run in runs for job in set(run.group.jobs) - set(run.left)} | {r.job for r in request.results}
        steps = [step for step in request.steps[request.step :] if step.kind == "jobs"]
        jobs = [job for step in steps for group in job_groups(request.model.image, step) for job in group.jobs]
        return [job for job in jobs if job not in known]

    def resume(self) -> tuple[int, StateTransfer | None]:
        """Go back to the engines, where the level stood. Return the cycle from which its stopped jobs are queued again,
        and the restore if there is one."""
        assert self.suspension is not None
        operation = self._device.resume(self.suspension)
        self._resumed, self.suspension = self.suspension.announced, None
        for request in self.requests:
            request.run()
        return self._resumed, operation

    def hold(self, suspension: Suspension) -> None:
        """Stay suspended, as the restore has failed."""
        self.suspension = suspension
        for request in self.requests:
            if request.state is State.RUNNING:
                request.hold()

    def remaining(self) -> float:
        """Return the cycles until the requests of this level will have ended, as forecast: what is queued has to
        compute, and what is not scheduled yet."""
        now, engines = self._device.bus.cycle, self._device.params.engines if self._rules.placed else 1
        self._forecast.state(now)
        queued = max(0.0, max(map(self._forecast.compute_end, range(engines))) - now)
        chains = [self._estimates.remaining(chain.model, chain.next_layer) for chain in self._scheduler.open_chains]
        later = sum(
            reference_duration(r.model.image, step) + r.data.host_cycles(step)
            for r in self.requests
            for step in r.steps[r.step + 1 :]
        )
        on_cpu = max([0, *(r.on_cpu.end - now for r in self.requests if r.on_cpu is not None)])
        return max(queued + max([0.0, sum(chains) / engines, *chains]), on_cpu) + later
