"""Taking a running task off its engines and continuing it later: the driver's side of **Cancellation points**.

Suspended tasks are records (:class:`~sw.driver.suspension.Suspension`) in host memory, so they nest to any depth. Bytes
leave the chip only when something is about to overwrite them, and the DRAM they go to is set aside before an engine is
paused.
"""

import contextlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from hw.image import CancelPoint
from hw.isa import LV2_SEGMENTS, Insn, Op
from hw.regs import EngineState
from sw.driver import reserve, suspension
from sw.driver.dump import Move, load, reload, save
from sw.driver.engine import EngineQueue
from sw.driver.errors import DeviceTimeout, DriverError, OutOfMemory
from sw.driver.footprint import LV2, Footprint, choose_windows, engines_of, footprint
from sw.driver.loaded import LoadedModel
from sw.driver.program import MAX_INSTRUCTIONS, Program
from sw.driver.ranges import Range, normalise, subtract
from sw.driver.staging import Part, Room, deal, parts, plan_dump, preferred, split
from sw.driver.supervisor import Effects, Operation, Supervisor, private_segments
from sw.driver.suspension import HaltRecord, Piece, QueuedJob, Suspension

if TYPE_CHECKING:
    from sw.driver.device import Device

LIMIT = 50_000_000  #: cycles within which an engine halts, or a dump ends
_POLL = 200
_COPY_ALIGN = 64

Upcoming = Sequence[tuple[LoadedModel, int]]  #: jobs that will be queued later: model, index in its table


class Preemption:
    """Pause, dump, restore and resume on one device. ``suspensions``: suspended tasks, oldest first."""

    def __init__(self, device: "Device", supervisor: Supervisor) -> None:
        self._device = device
        self.supervisor = supervisor
        self.suspensions: list[Suspension] = []
        self.operations: list[Operation] = []  #: dumps and restores, oldest first, for traces
        self._targets: dict[Piece, int] = {}  #: where the dump that is being queued puts its pieces

    # -- pause -----------------------------------------------------------------------------------------------
    def pause(self, engines: Iterable[int], limit: int = LIMIT, *, verify: bool = False) -> dict[int, HaltRecord]:
        """Halt engines at their next cancellation point or before a body; idle ones count as halted at once.

        ``verify``: also compare PC and semaphores with the image's table, at the cost of more than 30 register reads
        per engine. Raises ``DeviceFault`` if an engine stops on a fault instead, ``DeviceTimeout`` at the limit.
        """
        self.settle(limit)
        queues = [self._device.engines[e] for e in sorted(engines)]
        busy = [queue for queue in queues if queue.outstanding]
        for queue in busy:
            queue.pause()
        try:
            self._wait_halted(busy, limit)
        except DriverError:
            self.go_on(queue.number for queue in busy)
            raise
        self.go_on(queue.number for queue in busy if not queue.outstanding)  # nothing left that could halt
        return {queue.number: self._record(queue.number, verify) for queue in queues}

    def _wait_halted(self, busy: Sequence[EngineQueue], limit: int) -> None:
        waiting = {queue.number for queue in busy}
        deadline = self._device.bus.cycle + limit
        while waiting:
            left = deadline - self._device.bus.cycle
            if left <= 0 or not self._device.bus.wait_irq(left):
                raise DeviceTimeout(f"engines {sorted(waiting)} did not halt within {limit} cycles; raise the limit")
            waiting -= set(self._device.serve_interrupts())

    def go_on(self, engines: Iterable[int]) -> None:
        """Withdraw a pause: halted engines continue where they stand."""
        for e in engines:
            self._device.engines[e].go_on()

    def _record(self, engine: int, verify: bool) -> HaltRecord:
        queue = self._device.engines[engine]
        if not queue.outstanding:
            return HaltRecord(engine, in_job=False)
        status = self._device.regs.read_fields(f"E{engine}.STATUS")
        if status["state"] != EngineState.HALTED:
            raise DriverError(f"engine {engine} reported a halt and is {EngineState(status['state']).name}: reset it")
        in_job = bool(status["in_job"])
        loaded, low = queue.register("RING_LOADED"), queue.register("HALT_CYCLE_LO")
        now = self._device.bus.cycle
        cycle = now - ((now - low) & 0xFFFFFFFF)
        if not in_job:
            return HaltRecord(engine, False, cycle=cycle, loaded=loaded)
        number = queue.register("HALT_POINT")
        job_id = queue.unfinished[0][1]["job_id"]
        model = self._device.outstanding()[job_id].model
        points = model.image.meta.cancel_points
        if number >= len(points):
            raise DriverError(
                f"engine {engine} halted at point {number}; the table of {model.name!r} has {len(points)}"
            )
        if verify:
            self._verify(engine, job_id, model, number)
        return HaltRecord(engine, True, job_id, number, points[number].pc, cycle, loaded)

    def _verify(self, engine: int, job_id: int, model: LoadedModel, number: int) -> None:
        queue, point = self._device.engines[engine], model.image.meta.cancel_points[number]
        counts = dict(point.semaphores)
        expected = {"HALT_JOB": job_id, "HALT_PC": point.pc + 1}
        expected |= {f"SEM[{i}]": counts.get(i, 0) for i in range(self._device.params.semaphores)}
        for name, value in expected.items():
            found = queue.register(name)
            if found != value:
                raise DriverError(
                    f"engine {engine} at point {number} of {model.name!r}: {name} reads {found}, "
                    f"the image says {value}; compile the model again"
                )

    # -- suspend ---------------------------------------------------------------------------------------------
    def suspend(
        self,
        engines: Iterable[int],
        incoming: LoadedModel | None = None,
        upcoming: Upcoming = (),
        limit: int = LIMIT,
        *,
        verify: bool = False,
    ) -> Suspension:
        """Pause ``engines`` and take everything queued there off them; the engines are empty afterwards.

        Nothing leaves the chip yet: :meth:`admit` does that for the model that comes in. ``incoming``: DRAM for the
        worst case of that is set aside first (:class:`OutOfMemory`, and nothing was paused). ``upcoming``: jobs of the
        suspended tasks that are not queued yet; what they find in LV2 is kept, too.
        """
        engines = tuple(sorted(engines))
        self._reserve(engines, incoming)
        sent = self._device.bus.cycle
        halts = self.pause(engines, limit, verify=verify)
        suspended = self._take_off(engines, halts, upcoming)
        suspended.sent = sent
        self.suspensions.append(suspended)
        return suspended

    def _reserve(self, engines: tuple[int, ...], incoming: LoadedModel | None) -> None:
        """Raise :class:`OutOfMemory` unless DRAM could hold what ``incoming`` may displace."""
        if incoming is None:
            return
        models = {id(e.model): e.model for e in self._device.outstanding().values() if e.engine in engines}
        need = reserve.worst_case(self._device.params, list(models.values()), self.suspensions, incoming)
        if not need:
            return
        try:
            self._device.dram.free(self._device.dram.allocate(need, _COPY_ALIGN, "the dump of a preempted task"))
        except OutOfMemory as error:
            raise OutOfMemory(f"{error}; nothing was paused") from None

    def _take_off(self, engines: tuple[int, ...], halts: dict[int, HaltRecord], upcoming: Upcoming) -> Suspension:
        queues: dict[int, list[QueuedJob]] = {}
        points = dict[int, CancelPoint]()
        lives, windows = list[suspension.Live](), dict[int, Range]()
        known = self._device.outstanding()
        for e in engines:
            queue = queues[e] = []
            for place, members in self._device.engines[e].unfinished:
                entry = known[members["job_id"]]
                queue.append(QueuedJob.of(members["job_id"], entry.model, entry.job, members, place))
            point = _standing(halts[e], queue, known[queue[0].job_id].point) if queue else None
            if point is not None:
                points[e] = point
                lives.append((queue[0].model, e, point.live))
            waiting = queue[1:] if point is not None else queue
            windows |= suspension.prefetched(waiting, halts[e].loaded)
            lives += _first_lives([(job.model, job.job) for job in waiting], e)
        # What a queued job finds in LV2 includes what those behind it will.
        ahead = {(id(q.model), q.model.image.meta.jobs[q.job].engine) for queue in queues.values() for q in queue}
        later = [(m, job) for m, job in upcoming if (id(m), m.image.meta.jobs[job].engine) not in ahead]
        for e in sorted({model.image.meta.jobs[job].engine for model, job in later}):
            lives += _first_lives([(m, job) for m, job in later if m.image.meta.jobs[job].engine == e], e)
        pieces = split(suspension.dirty_pieces(lives))
        clean = suspension.clean_ranges(lives, pieces)
        for e in engines:
            if self._device.engines[e].outstanding:
                self._device.engines[e].empty()
            for job in queues[e]:
                self._device.withdraw(job.job_id)
        models = {id(model): model for model, _ in upcoming}
        models |= {id(job.model): job.model for queue in queues.values() for job in queue}
        return Suspension(engines, halts, queues, list(models.values()), points, pieces, clean, windows)

    def holds(self, model: LoadedModel) -> bool:
        """Whether ``model`` is suspended. A restore whose last completion nobody has taken yet is waited for."""
        if any(model in s.models for s in self.suspensions):
            self.settle()
        return any(model in s.models for s in self.suspensions)

    # -- making room -----------------------------------------------------------------------------------------
    def place(self, model: LoadedModel) -> None:
        """Choose LV2 windows for ``model`` where they displace least of the suspended tasks."""
        now = [model.segments[i] for i in LV2_SEGMENTS]
        if not model.movable or not any(length for _, length in now):
            return
        dirty = [r for s in self.suspensions for r in s.on_chip(LV2)]
        clean = [r for s in self.suspensions for r in s.kept_clean()]
        ahead = [w for s in self.suspensions for w in s.windows.values()]
        sizes, current = (now[0][1], now[1][1]), (now[0][0], now[1][0])
        params = self._device.params
        model.move_windows(
            *choose_windows(
                sizes, params.lv2_bytes, params.lv1_word, taken=self._running(), dirty=dirty, clean=clean,
                prefetched=ahead, current=current,
            )
        )  # fmt: skip

    def _running(self) -> list[Range]:
        """LV2 windows of models with jobs on engines."""
        models = {id(e.model): e.model for e in self._device.outstanding().values()}
        return normalise(w for model in models.values() for w in model.windows())

    def admit(self, model: LoadedModel, engines: Sequence[int] | None = None) -> Operation | None:
        """Place ``model`` and queue the dump of what it displaces; its jobs may be submitted at once, behind that.

        ``engines``: those it may run on, by default those it was compiled for.
        None if nothing had to be dumped. A failing dump raises ``SupervisorFault`` in whatever waits next.
        """
        if self.holds(model):
            raise DriverError(f"model {model.name!r} is suspended: resume it, or load it a second time")
        self.place(model)
        engines = engines_of(model.image) if engines is None else engines
        return self._make_room(footprint(self._device.params, model.windows(), engines), engines)

    def _make_room(self, wanted: Footprint, engines: Sequence[int], keep: Suspension | None = None) -> Operation | None:
        others = [s for s in self.suspensions if s is not keep]
        self.settle()
        chosen = [piece for s in others for piece in s.to_dump(wanted)]
        if not chosen:
            for s in others:
                s.clobber(wanted)
            return None
        work = deal(chosen, self._idle())
        spare = [p for s in others for p in s.pieces if p.memory == LV2 and p.on_chip and p.copy is None]
        groups = plan_dump(self._device.params, work, self._room(work, wanted), [p for p in spare if p not in chosen])
        planned = {piece for group in groups for part in group for piece in part.pieces}
        owners = {piece: s for s in others for piece in s.pieces if piece in planned}
        self._assign_copies(owners)

        def done() -> None:
            for s in others:
                s.clobber(wanted)

        operation = Operation("dump", done)
        for group in groups:
            self._push_parts(operation, group, None)
        self._gate(operation, sorted({*engines, *work}), engines)
        return operation

    def _idle(self) -> list[int]:
        return [queue.number for queue in self._device.engines if not queue.outstanding]

    def _room(self, engines: Iterable[int], wanted: Footprint, avoid: Iterable[Range] = ()) -> Room:
        """Where stages may lie: on nothing dirty and nothing that runs; rather where ``wanted`` overwrites anyway."""
        params = self._device.params
        held = [r for s in self.suspensions for r in s.on_chip(LV2)]
        soft = [r for s in self.suspensions for r in (*s.kept_clean(), *s.windows.values())]
        free = subtract([(0, params.lv2_bytes)], [*held, *self._running(), *avoid])
        lv1 = {}
        for e in engines:
            taken = [r for s in self.suspensions for r in s.on_chip(("lv1", e))]
            lv1[e] = sorted(subtract([(0, params.lv1_bytes)], taken), key=lambda r: r[0] - r[1])
        return Room(preferred(free, wanted.get(LV2, ()), soft), lv1)

    def _assign_copies(self, owners: dict[Piece, Suspension]) -> None:
        """DRAM addresses for the copies; not valid before their dump has completed."""
        self._targets = {}
        for owner in {id(s): s for s in owners.values()}.values():
            mine = [p for p, s in owners.items() if s is owner]
            total = sum(-(-p.size // _COPY_ALIGN) * _COPY_ALIGN for p in mine)
            at = self._device.dram.allocate(total, _COPY_ALIGN, "the dump of a preempted task")
            owner.areas.append(at)
            for piece in mine:
                self._targets[piece] = at
                at += -(-piece.size // _COPY_ALIGN) * _COPY_ALIGN

    # -- supervisor jobs -------------------------------------------------------------------------------------
    def _push_parts(self, operation: Operation, group: list[Part], after: int | None) -> None:
        """Queue the programs of one group; the last of each engine gives a signal."""
        for engine in sorted({part.engine for part in group}):
            programs = self._programs(operation, [part for part in group if part.engine == engine])
            for i, (program, mine) in enumerate(programs):
                effects = self._dump_effects(mine) if operation.purpose == "dump" else _restore_effects(mine)
                self.supervisor.push(
                    operation,
                    engine,
                    program.encode(),
                    after=after if i == 0 else None,
                    signal=i == len(programs) - 1,
                    moved=sum(piece.size for part in mine for piece in part.pieces),
                    effects=effects,
                )

    def _dump_effects(self, mine: list[Part]) -> Effects:
        def on_start() -> None:
            for part in mine:
                self._clobber(part.clobbers())

        copies = {piece: self._targets[piece] for part in mine for piece in part.pieces}

        def on_end() -> None:
            for piece, address in copies.items():
                piece.copy = address

        return Effects(on_start, on_end)

    def _clobber(self, wanted: Footprint) -> None:
        for s in self.suspensions:
            s.clobber(wanted)

    def _programs(self, operation: Operation, mine: list[Part]) -> list[tuple[Program, list[Part]]]:
        result: list[tuple[Program, list[Part]]] = []
        for part in mine:
            alone = self._program(operation, part)
            if result and len(result[-1][0].steps) + len(alone.steps) <= MAX_INSTRUCTIONS:
                result[-1][0].steps += alone.steps
                result[-1][1].append(part)
            else:
                result.append((alone, [part]))
        return result

    def _program(self, operation: Operation, part: Part) -> Program:
        program = Program(self._device.params)
        for piece in part.pieces:
            if operation.purpose == "dump":
                save(program, Move(piece.memory, piece.start, piece.size, self._targets[piece]), part.lv1, part.lv2)
            else:
                assert piece.copy is not None
                load(program, Move(piece.memory, piece.start, piece.size, piece.copy), part.lv1, part.lv2)
        return program

    def _gate(self, operation: Operation, working: Sequence[int], engines: Sequence[int]) -> None:
        """Nothing that is queued on ``engines`` from here on begins before the operation's jobs have ended."""
        if len({*working, *engines}) > 1:
            for e in engines:
                self.supervisor.push(operation, e, Program(self._device.params).encode(), after=self.supervisor.signals)
        operation.closed = True
        self.operations.append(operation)
        for e in {*working, *engines}:
            self._device.engines[e].ring_doorbell()
        self.supervisor.settle(operation)

    def settle(self, limit: int = LIMIT) -> None:
        """Wait until no supervisor job is outstanding; ``SupervisorFault`` if one fails."""
        deadline = self._device.bus.cycle + limit
        while self.supervisor.jobs:
            for e in sorted({job.engine for job in self.supervisor.jobs.values()}):
                self._device.take_completions(self._device.engines[e])
            if self.supervisor.jobs and not self._device.poll(_POLL) and self._device.bus.cycle >= deadline:
                raise DeviceTimeout(f"a dump or restore did not end within {limit} cycles; recover the device")

    # -- resume ----------------------------------------------------------------------------------------------
    def resume(self, suspended: Suspension) -> Operation | None:
        """Bring everything back and queue the task's jobs again, under their own ids; does not wait.

        Its engines must be idle. None if nothing had to be brought back.
        """
        if suspended not in self.suspensions:
            raise DriverError("this suspension has ended: it was resumed or abandoned")
        self.settle()
        engines = suspended.engines
        busy = [e for e in engines if self._device.engines[e].outstanding]
        if busy:
            raise DriverError(f"engines {busy} are in use: suspend what runs there before resuming this task")
        wanted = footprint(self._device.params, [w for m in suspended.models for w in m.windows()], engines)
        self._make_room(wanted, engines, keep=suspended)
        self.settle()
        operation = self._restore(suspended)
        for e in engines:
            for job, members in suspended.descriptors(e):
                queue = self._device.engines[e]
                queue.requeue(members | {"window_after": self._device.window_after(queue, job.model, job.job)})
                self._device.readmit(job, e, suspended.points.get(e) if job is suspended.queues[e][0] else None)
            self._device.engines[e].ring_doorbell()
        if operation is None:
            self._discard(suspended)
        return operation

    def _restore(self, suspended: Suspension) -> Operation | None:
        engines = suspended.engines
        missing = suspended.missing()
        private = [p for p in missing if p.memory != LV2]
        groups = self._restore_private(suspended, private)
        clean = split(Piece(LV2, c.start, c.end, c.source, False) for c in suspended.missing_clean())
        lv2 = [p for p in missing if p.memory == LV2] + clean
        if lv2:
            groups[-1] += [Part(e, pieces) for e, pieces in deal(lv2, self._idle()).items()]
        groups = [group for group in groups if group]
        reloads = [(e, pair) for e in engines if (pair := suspended.reloads(e))]
        if not groups and not reloads:
            return None
        operation = Operation("restore", lambda: self._discard(suspended))
        working, after = set[int](), None
        for group in groups:
            self._push_parts(operation, group, after)
            working |= {part.engine for part in group}
            after = self.supervisor.signals
        for e, (model, insns) in reloads:
            self._push_reloads(operation, e, model, insns, after)
        self._gate(operation, sorted({*working, *engines}), engines)
        return operation

    def _push_reloads(
        self, operation: Operation, engine: int, model: LoadedModel, insns: list[Insn], after: int | None
    ) -> None:
        for i in range(0, len(insns), MAX_INSTRUCTIONS):
            mine = insns[i : i + MAX_INSTRUCTIONS]
            program = Program(self._device.params)
            reload(program, mine, engine)
            self.supervisor.push(
                operation,
                engine,
                program.encode(),
                segments=private_segments(model.segments),
                after=after if i == 0 else None,
                signal=i + MAX_INSTRUCTIONS >= len(insns),
                moved=sum(n["len"] * n["n0"] * n["n1"] * n["n2"] for n in mine if n.op is Op.LD2),
            )

    def _restore_private(self, suspended: Suspension, private: list[Piece]) -> list[list[Part]]:
        """Groups of parts that bring accumulators and LV1 back; what is loaded to LV2 may join the last.

        Where no stage lies beside what is to come back to LV2, the group is followed by an empty one.
        """
        if not private:
            return [[]]
        work = deal(private, self._idle())
        targets = [(p.start, p.end) for p in suspended.missing() if p.memory == LV2]
        targets += [(c.start, c.end) for c in suspended.clean]
        for avoid in (targets, []):
            planned = parts(self._device.params, work, self._room(work, {}, avoid))
            if planned is not None:
                for part in planned:
                    self._clobber(part.clobbers())
                return [planned] if avoid or not targets else [planned, []]
        raise DriverError("no place in LV2 to bring accumulators and LV1 back through: end another task first")

    def _discard(self, suspended: Suspension) -> None:
        if suspended in self.suspensions:
            self.suspensions.remove(suspended)
        for address in suspended.areas:
            self._device.dram.free(address)
        suspended.areas = []

    # -- failure and abandonment -----------------------------------------------------------------------------
    def recover(self) -> None:
        """After a ``SupervisorFault``: reset the engines that hold supervisor jobs. Every suspended task is as it was,
        but for copies that were completed; jobs queued behind the failed ones are lost, as after ``Device.abort``."""
        for queue in self._device.engines:
            if any(job.engine == queue.number for job in self.supervisor.jobs.values()):
                with contextlib.suppress(DriverError):  # the fault that brought us here
                    self._device.take_completions(queue)
        for e in sorted({job.engine for job in self.supervisor.jobs.values()}):
            self._device.reset_engine(e)

    def abandon(self, suspended: Suspension) -> None:
        """Give a suspended task up: its jobs and its copies are gone; it can run again from the start."""
        self.settle()
        self._discard(suspended)
        for model in suspended.models:
            model.synchronise()


def _restore_effects(mine: list[Part]) -> Effects:
    def on_end() -> None:
        for part in mine:
            for piece in part.pieces:
                piece.on_chip = True

    return Effects(on_end=on_end)


def _standing(halt: HaltRecord, queue: Sequence[QueuedJob], before: CancelPoint | None) -> CancelPoint | None:
    """The point behind which the oldest job continues; ``before``: the one it was resumed behind, if it has not begun
    since. None if it starts from its beginning."""
    return queue[0].model.image.meta.cancel_points[halt.point] if halt.in_job else before


def _first_lives(jobs: Iterable[tuple[LoadedModel, int]], engine: int) -> list[suspension.Live]:
    """Live ranges of the first job of each model: what lies in LV2 for it before its body starts."""
    first: dict[int, tuple[LoadedModel, int]] = {}
    for model, job in jobs:
        first.setdefault(id(model), (model, job))
    return [(model, engine, model.image.meta.jobs[job].live) for model, job in first.values()]
