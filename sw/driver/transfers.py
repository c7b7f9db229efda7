"""Moving what suspended tasks hold on chip to DRAM and back, by supervisor jobs (of **Cancellation points**)."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from hw.contract.isa import Insn, Op
from hw.contract.spaces import Space
from sw.driver.dump import Move, load, reload, save
from sw.driver.errors import DeviceTimeout, DriverError
from sw.driver.footprint import LV2, Footprint
from sw.driver.halting import LIMIT
from sw.driver.loaded import LoadedModel
from sw.driver.program import MAX_INSTRUCTIONS, Program
from sw.driver.ranges import Range, normalise, subtract
from sw.driver.staging import Part, Room, deal, parts, plan_dump, preferred, split
from sw.driver.supervisor import Effects, Operation, Supervisor, private_segments
from sw.driver.suspension import Piece, Suspension

if TYPE_CHECKING:
    from sw.driver.device import Device

COPY_ALIGN = 64  #: of copies in DRAM
TRANSFERRED = 1_000_000  #: cycles; no dump or restore takes as long
_POLL = 200


class Transfers:
    """Dumps and restores of one device. ``suspensions``: suspended tasks, oldest first; those that have been restored,
    or given up, are taken off the list. ``operations``: dumps and restores so far, oldest first, for traces."""

    def __init__(self, device: "Device", supervisor: Supervisor, suspensions: list[Suspension]) -> None:
        self._device, self._supervisor, self._suspensions = device, supervisor, suspensions
        self.operations: list[Operation] = []
        self._targets: dict[Piece, int] = {}  #: where the dump that is being queued puts its pieces

    def running(self) -> list[Range]:
        """LV2 windows of models with jobs on engines."""
        models = {id(e.model): e.model for e in self._device.books.outstanding.values()}
        return normalise(w for model in models.values() for w in model.windows())

    def make_room(self, wanted: Footprint, engines: Sequence[int], keep: Suspension | None = None) -> Operation | None:
        """Queue the dump of what ``wanted`` would destroy of all suspended tasks but ``keep``; nothing queued on
        ``engines`` from here on begins before it has ended. None if nothing had to be dumped."""
        others = [s for s in self._suspensions if s is not keep]
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
        held = [r for s in self._suspensions for r in s.on_chip(LV2)]
        soft = [r for s in self._suspensions for r in (*s.kept_clean(), *s.windows.values())]
        free = subtract([(0, params.lv2_bytes)], [*held, *self.running(), *avoid])
        lv1 = {}
        for e in engines:
            taken = [r for s in self._suspensions for r in s.on_chip((Space.LV1, e))]
            lv1[e] = sorted(subtract([(0, params.lv1_bytes)], taken), key=lambda r: r[0] - r[1])
        return Room(preferred(free, wanted.get(LV2, ()), soft), lv1)

    def _assign_copies(self, owners: dict[Piece, Suspension]) -> None:
        """DRAM addresses for the copies; not valid before their dump has completed."""
        self._targets = {}
        for owner in {id(s): s for s in owners.values()}.values():
            mine = [p for p, s in owners.items() if s is owner]
            total = sum(-(-p.size // COPY_ALIGN) * COPY_ALIGN for p in mine)
            at = self._device.dram.allocate(total, COPY_ALIGN, "the dump of a preempted task")
            owner.areas.append(at)
            for piece in mine:
                self._targets[piece] = at
                at += -(-piece.size // COPY_ALIGN) * COPY_ALIGN

    def restore(self, suspended: Suspension) -> Operation | None:
        """Queue what brings everything of a task back; None if nothing was missing."""
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
        operation = Operation("restore", lambda: self.discard(suspended))
        working, after = set[int](), None
        for group in groups:
            self._push_parts(operation, group, after)
            working |= {part.engine for part in group}
            after = self._supervisor.signals
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
            self._supervisor.push(
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

    def discard(self, suspended: Suspension) -> None:
        """Take a task off the list, and free its copies."""
        if suspended in self._suspensions:
            self._suspensions.remove(suspended)
        for address in suspended.areas:
            self._device.dram.free(address)
        suspended.areas = []

    # -- supervisor jobs -------------------------------------------------------------------------------------
    def _push_parts(self, operation: Operation, group: list[Part], after: int | None) -> None:
        """Queue the programs of one group; the last of each engine gives a signal."""
        for engine in sorted({part.engine for part in group}):
            programs = self._programs(operation, [part for part in group if part.engine == engine])
            for i, (program, mine) in enumerate(programs):
                effects = self._dump_effects(mine) if operation.purpose == "dump" else _restore_effects(mine)
                self._supervisor.push(
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
        for s in self._suspensions:
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
                self._supervisor.push(
                    operation, e, Program(self._device.params).encode(), after=self._supervisor.signals
                )
        operation.closed = True
        self.operations.append(operation)
        for e in {*working, *engines}:
            self._device.engines[e].ring_doorbell()
        self._supervisor.settle(operation)

    def settle(self, limit: int = LIMIT) -> None:
        """Wait until no supervisor job is outstanding; ``SupervisorFault`` if one fails."""
        deadline = self._device.bus.cycle + limit
        while self._supervisor.jobs:
            for e in sorted({job.engine for job in self._supervisor.jobs.values()}):
                self._device.take_completions(self._device.engines[e])
            if self._supervisor.jobs and not self._device.poll(_POLL) and self._device.bus.cycle >= deadline:
                raise DeviceTimeout(f"a dump or restore did not end within {limit} cycles; recover the device")


def _restore_effects(mine: list[Part]) -> Effects:
    def on_end() -> None:
        for part in mine:
            for piece in part.pieces:
                piece.on_chip = True

    return Effects(on_end=on_end)
