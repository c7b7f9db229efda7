"""Moves what suspended tasks hold on chip to DRAM and back, by supervisor jobs (of **Cancellation points**)."""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from hw.contract.isa import Insn, Op
from hw.contract.spaces import Space
from sw.driver.errors import DeviceFault, DeviceTimeout, DriverError, NotSuspendable, OutOfMemory
from sw.driver.limits import copy_limit
from sw.driver.memory.ranges import LV2, Footprint, Range, normalise, subtract
from sw.driver.models.loaded_model import LoadedModel
from sw.driver.models.model_jobs import ModelJobs
from sw.driver.preempt.copies import MAX_INSTRUCTIONS, SLOT_BYTES, Program, reload
from sw.driver.preempt.staging import CopyJob, StagingSpace, copy_jobs, deal, plan_dump, preferred, split
from sw.driver.preempt.state_transfer import Dump, Effects, Restore, StateTransfer
from sw.driver.preempt.supervisor import Supervisor
from sw.driver.preempt.suspended_tasks import SuspendedTasks
from sw.driver.preempt.suspension import DirtyRange, Suspension
from sw.driver.queues.job import DeviceJob
from sw.driver.queues.job_queues import JobQueues


@dataclass(frozen=True)
class _Portion:
    """Is a program that moves the rest of the jobs ``ending``, or some of one that has ``begun`` and goes on."""

    program: Program
    begun: list[CopyJob]
    ending: list[CopyJob]

    def effects(self, operation: StateTransfer) -> Effects:
        """Return what changes when the program runs: bytes count as moved once all of their job are."""
        if self.begun:
            return Effects(on_start=operation.effects(self.begun).on_start)
        return operation.effects(self.ending)


class Transfers:
    """Runs the dumps and restores of one device, of ``tasks``. ``operations`` are those remembered, oldest first, for
    traces."""

    def __init__(self, queues: JobQueues, jobs: ModelJobs, supervisor: Supervisor, tasks: SuspendedTasks) -> None:
        self._queues, self._jobs, self._supervisor, self._tasks = queues, jobs, supervisor, tasks
        self._params = queues.params
        self.operations: deque[StateTransfer] = deque()

    def running(self) -> list[Range]:
        """Return the LV2 windows of models with jobs on engines, or with data between two of their jobs."""
        between = [model for model in self._jobs.in_flight() if not self._tasks.hold(model)]
        return normalise(w for model in [*self._jobs.models(), *between] for w in model.windows())

    def settle(self) -> None:
        """Wait until no supervisor job is outstanding; raises ``SupervisorFault`` if one fails, ``DeviceTimeout`` for a
        job that is overdue."""
        self._supervisor.wait(lambda: not self._supervisor.jobs)

    # -- dump ------------------------------------------------------------------------------------------------
    def make_room(
        self, wanted: Footprint, engines: Sequence[int], keep: Suspension | None = None
    ) -> StateTransfer | None:
        """Queue the dump of what ``wanted`` would destroy of all suspended tasks but ``keep``; nothing queued on
        ``engines`` from here on overwrites a byte before it has been moved. Return None if nothing had to be dumped."""
        self.settle()
        losing = [task for task in self._tasks if task is not keep]
        chosen = [r for task in losing for r in task.to_dump(wanted)]
        if not chosen:
            for task in losing:
                task.overwrite(wanted)
            return None
        work = deal(chosen, self._queues.idle())
        with _refused_for(chosen):
            groups, apart = self._plan_dump(chosen, work, losing, wanted)
            planned = {r for group in groups for copy_job in group for r in copy_job.ranges}
            copies = self._tasks.reserve_copies(planned)
            if apart:
                at_once = {memory: w for memory, w in wanted.items() if memory == LV2 or memory[1] not in work}
                for task in losing:
                    task.overwrite(at_once)
            operation = Dump(self._tasks, losing, wanted, copies, apart=apart)
            for group in groups:
                self._push(operation, group, None)
            owners = _owners([copy_job for group in groups for copy_job in group])
            self._gate(operation, sorted({*engines, *work}), engines, owners)
        return operation

    def _plan_dump(
        self, chosen: Sequence[DirtyRange], work: dict[int, list[DirtyRange]], losing: Sequence[Suspension],
        wanted: Footprint,
    ) -> tuple[list[list[CopyJob]], bool]:  # fmt: skip
        """Return groups of jobs, and whether they go *apart*: each moves only what is private to its engine, past what
        is wanted of LV2, so that jobs on other engines need not wait for it."""
        if all(r.memory != LV2 for r in chosen):
            apart = copy_jobs(self._params, work, self._staging_space(work, {}, wanted.get(LV2, ())))
            if apart is not None:
                return [apart], True
        spare = [r for task in losing for r in task.dirty if r.memory == LV2 and r.on_chip and r.copy is None]
        free = self._staging_space(work, wanted)
        return plan_dump(self._params, work, free, [r for r in spare if r not in chosen]), False

    def _staging_space(self, engines: Iterable[int], wanted: Footprint, avoid: Iterable[Range] = ()) -> StagingSpace:
        """Return where staging buffers may lie: on nothing dirty and nothing that runs; rather where ``wanted``
        overwrites anyway."""
        params = self._params
        soft = [*self._tasks.clean(), *self._tasks.prefetched()]
        free = subtract([(0, params.lv2_bytes)], [*self._tasks.dirty(LV2), *self.running(), *avoid])
        lv1 = {}
        for e in engines:
            taken = self._tasks.dirty((Space.LV1, e))
            lv1[e] = sorted(subtract([(0, params.lv1_bytes)], taken), key=lambda r: r[0] - r[1])
        return StagingSpace(preferred(free, wanted.get(LV2, ()), soft), lv1)

    # -- restore ---------------------------------------------------------------------------------------------
    def restore(self, suspended: Suspension) -> StateTransfer | None:
        """Queue what brings everything of a task back; return None if nothing was missing."""
        engines = suspended.engines
        missing = suspended.missing()
        groups = self._restore_private(suspended, [r for r in missing if r.memory != LV2])
        clean = split(DirtyRange(c.model, LV2, c.start, c.end, c.source, False) for c in suspended.missing_clean())
        lv2 = [r for r in missing if r.memory == LV2] + clean
        if lv2:
            groups[-1] += [CopyJob(e, ranges) for e, ranges in deal(lv2, self._queues.idle()).items()]
        groups = [group for group in groups if group]
        reloads = [(e, pair) for e in engines if (pair := suspended.reloads(e))]
        if not groups and not reloads:
            return None
        operation = Restore(self._tasks, suspended)
        working, after = set[int](), None
        with _refused_for([*missing, *clean], [job for _, (job, _) in reloads]):
            for group in groups:
                self._push(operation, group, after)
                working |= {copy_job.engine for copy_job in group}
                after = self._supervisor.signals
            for e, (job, insns) in reloads:
                self._push_reloads(operation, e, job, insns, after)
            self._gate(operation, sorted({*working, *engines}), engines, suspended.models)
        return operation

    def _restore_private(self, suspended: Suspension, private: list[DirtyRange]) -> list[list[CopyJob]]:
        """Return groups of jobs that bring accumulators and LV1 back; what is loaded to LV2 may join the last.

        Where no staging buffer lies beside what is to come back to LV2, the group is followed by an empty one.
        """
        if not private:
            return [[]]
        work = deal(private, self._queues.idle())
        targets = [(r.start, r.end) for r in suspended.missing() if r.memory == LV2]
        targets += [(c.start, c.end) for c in suspended.clean]
        for avoid in (targets, []):
            planned = copy_jobs(self._params, work, self._staging_space(work, {}, avoid))
            if planned is not None:
                for copy_job in planned:
                    self._tasks.overwrite(copy_job.staged())
                return [planned] if avoid or not targets else [planned, []]
        beside = [r for task in self._tasks if task is not suspended for r in task.dirty]
        others = [r for r in beside if r.memory == LV2 and r.on_chip]
        message = "no place in LV2 to bring accumulators and LV1 of a suspended task back through"
        raise NotSuspendable(_largest(others or private), message)

    # -- supervisor jobs -------------------------------------------------------------------------------------
    def _push(self, operation: StateTransfer, group: list[CopyJob], after: int | None) -> None:
        """Queue the programs of one group, in portions that fit; the last of each engine gives a signal."""
        for copy_job in group:
            if copy_job.lv2 is not None:
                tenants = self._tasks.tenants(copy_job.ranges)
                self._jobs.lv2.pass_through([copy_job.lv2.where], tenants)
            self._jobs.lv2.overwritten(operation.written(copy_job))
        for engine in sorted({copy_job.engine for copy_job in group}):
            portions = self._portions(operation, [copy_job for copy_job in group if copy_job.engine == engine])
            for i, portion in enumerate(portions):
                self._supervisor.push(
                    operation,
                    engine,
                    portion.program.encode(),
                    _owners([*portion.begun, *portion.ending]),
                    cycle_limit=copy_limit(portion.program.moved),
                    after=after if i == 0 else None,
                    signal=i == len(portions) - 1,
                    moved=portion.program.moved,
                    effects=portion.effects(operation),
                )
            self._queues.engines[engine].ring_doorbell()  # it moves while the host writes the others

    def _portions(self, operation: StateTransfer, mine: list[CopyJob]) -> list[_Portion]:
        """Return programs that each move as many of an engine's jobs as a program may hold, in order; a job that takes
        more has several."""
        result: list[_Portion] = []
        for copy_job in mine:
            alone = Program(self._params)
            operation.append(alone, copy_job)
            if result and len(result[-1].program.steps) + len(alone.steps) <= MAX_INSTRUCTIONS:
                result[-1].program.steps += alone.steps
                result[-1].ending.append(copy_job)
                continue
            *first, last = alone.split()
            result += [_Portion(part, [copy_job], []) for part in first]
            result.append(_Portion(last, [], [copy_job]))
        return result

    def _push_reloads(
        self, operation: StateTransfer, engine: int, job: DeviceJob, insns: list[Insn], after: int | None
    ) -> None:
        """Run loads of the image again. They may take as many cycles as its body may."""
        model = job.model
        for i in range(0, len(insns), MAX_INSTRUCTIONS):
            mine = insns[i : i + MAX_INSTRUCTIONS]
            program = Program(self._params)
            reload(program, mine, engine)
            self._supervisor.push(
                operation,
                engine,
                program.encode(),
                [model],
                cycle_limit=job.work.cycle_limit,
                segments=job.work.segments,
                after=after if i == 0 else None,
                signal=i + MAX_INSTRUCTIONS >= len(insns),
                moved=sum(n["len"] * n["n0"] * n["n1"] * n["n2"] for n in mine if n.op is Op.LD2),
            )
        self._queues.engines[engine].ring_doorbell()

    def _gate(
        self, operation: StateTransfer, working: Sequence[int], engines: Sequence[int], models: Sequence[LoadedModel]
    ) -> None:
        """Let nothing that is queued on ``engines`` from here on begin before the operation's jobs, which move state of
        ``models``, have ended; where these go apart, before those on its own engine have."""
        if len({*working, *engines}) > 1 and not operation.apart:
            for e in engines:
                nothing = Program(self._params).encode()
                after = self._supervisor.signals
                self._supervisor.push(operation, e, nothing, models, cycle_limit=copy_limit(0), after=after)
        self.operations.append(operation)
        for e in {*working, *engines}:
            self._queues.engines[e].ring_doorbell()
        operation.close()


@contextmanager
def _refused_for(ranges: Sequence[DirtyRange], reloading: Sequence[DeviceJob] = ()) -> Iterator[None]:
    """Raise ``NotSuspendable`` for what cannot be done for these ranges, or for jobs with loads to run again; it names
    the model that has most of them."""
    try:
        yield
    except (DeviceFault, DeviceTimeout, OutOfMemory, NotSuspendable):
        raise
    except DriverError as error:
        raise NotSuspendable(_largest(ranges) if ranges else reloading[0].model, str(error)) from error


def _largest(ranges: Sequence[DirtyRange]) -> LoadedModel:
    """Return the model that has most of the bytes; a range counts for a few, as each takes instructions of its own."""
    sizes: Counter[int] = Counter()
    for r in ranges:
        sizes[id(r.model)] += r.size + SLOT_BYTES
    largest = sizes.most_common(1)[0][0]
    return next(r.model for r in ranges if id(r.model) == largest)


def _owners(copy_jobs: Sequence[CopyJob]) -> list[LoadedModel]:
    """Return the models whose state these jobs move."""
    return list({id(r.model): r.model for copy_job in copy_jobs for r in copy_job.ranges}.values())
