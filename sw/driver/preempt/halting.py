"""Halts engines and finds out where they stand (of **Cancellation points**)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hw.contract.regs import EngineState
from sw.driver.errors import DriverError, NotSuspendable
from sw.driver.limits import BEGINNING, BODY
from sw.driver.models.loaded_model import LoadedModel
from sw.driver.queues.engine_queue import EngineQueue
from sw.driver.queues.job_queues import JobQueues

RESTED = 1_000_000  #: cycles in which what still moves on an engine that is to be reset may end
#: Register accesses to find out where a halted engine stands: STATUS and HALT_CYCLE_LO; RING_LOADED and CPL_TAIL where
#: the ring holds many jobs.
RECORD_ACCESSES = 4
_AWAKE = 20_000  #: cycles for which the driver looks for a halt by itself: usual intervals between points
_POLL = 200


@dataclass(frozen=True)
class HaltRecord:
    """Says where an engine stood when it halted. ``in_job``: inside the body of ``job_id``, at cancellation point
    ``point`` whose CANCEL is at ``pc``; otherwise before a body, or idle. ``loaded``: jobs of its ring whose prologue
    had run."""

    engine: int
    in_job: bool
    job_id: int = 0
    point: int = 0
    pc: int = 0
    cycle: int = 0  #: at which it became HALTED; 0 if it was idle
    loaded: int = 0


class Halting:
    """Sends pauses to the engines of one device, waits for them, and reads where each has halted."""

    def __init__(self, queues: JobQueues) -> None:
        self._queues = queues

    def pause(self, engines: Iterable[int], limit: int | None = None, *, verify: bool = False) -> dict[int, HaltRecord]:
        """Halt engines at their next cancellation point or before a body; idle ones count as halted at once.

        ``verify``: also compare PC and semaphores with the image's table, at the cost of more than 30 register reads
        per engine. Raises ``DeviceFault`` if an engine stops on a fault instead, ``DeviceTimeout`` at the limit, by
        default when the body that runs should have ended, ``NotSuspendable`` for a point that the image does not know;
        the engines go on then.
        """
        queues = [self._queues.engines[e] for e in sorted(engines)]
        busy = [queue for queue in queues if queue.outstanding]
        for queue in busy:
            queue.pause()
        try:
            records = self._wait_halted(busy, limit, verify)
        except DriverError:
            self.go_on(queue.number for queue in busy)
            raise
        self.go_on(queue.number for queue in busy if not queue.outstanding)  # nothing left that could halt
        return {q.number: records.get(q.number) or HaltRecord(q.number, in_job=False) for q in queues}

    def _wait_halted(self, busy: Sequence[EngineQueue], limit: int | None, verify: bool) -> dict[int, HaltRecord]:
        """Return where each engine stands, once all have halted; of each that is read as soon as it has, while others
        still run.

        A ``halted`` interrupt may be left over from a withdrawn pause, so trust ``STATUS.state``, not the interrupt.
        """
        waiting, records = {queue.number for queue in busy}, dict[int, HaltRecord]()
        if limit is None:
            limit = max((BEGINNING + (q.oldest.work.cycle_limit or BODY) for q in busy if q.oldest), default=0)
        deadline = self._queues.bus.cycle + limit
        while waiting:
            left = deadline - self._queues.bus.cycle
            pending = self._queues.interrupts.wait(left, _AWAKE) if left > 0 else None
            if pending is None:
                message = f"engines {sorted(waiting)} did not halt within {limit} cycles; raise the limit"
                raise self._queues.late(min(waiting), message)
            told = [e for e in sorted(waiting) if pending >> e & 1]
            halted = [e for e in told if self._halted(e, records, verify)]
            # Others have jobs that retired; one of them may have halted since it was looked at.
            late = self._queues.serve_interrupts(pending & ~sum(1 << e for e in halted))
            halted += [e for e in late if e in waiting and self._halted(e, records, verify)]
            waiting.difference_update(halted)
        return records

    def _halted(self, engine: int, records: dict[int, HaltRecord], verify: bool) -> bool:
        """Return whether an engine has halted; if so, handle its interrupts and add where it stands to ``records``."""
        queue = self._queues.engines[engine]
        status = queue.status()
        if status["state"] != EngineState.HALTED:
            return False
        loaded, retired = queue.counts(status)
        self._queues.serve_halt(engine, retired)
        records[engine] = self._record(queue, status, loaded, verify)
        return True

    def rest(self, engines: Iterable[int]) -> None:
        """Wait until engines have halted or stopped on a fault, which is not raised, or until they will not: no job
        begins any more."""
        queues = [self._queues.engines[e] for e in engines]
        for queue in queues:
            queue.pause()
        deadline = self._queues.bus.cycle + RESTED
        while any(queue.state() not in (EngineState.HALTED, EngineState.FAULT) for queue in queues):
            if self._queues.bus.cycle >= deadline:
                return
            self._queues.bus.advance(_POLL)

    def go_on(self, engines: Iterable[int]) -> None:
        """Withdraw a pause: halted engines continue where they stand."""
        for e in engines:
            self._queues.engines[e].go_on()

    def _record(self, queue: EngineQueue, status: dict[str, int], loaded: int, verify: bool) -> HaltRecord:
        engine = queue.number
        if not queue.outstanding:
            return HaltRecord(engine, in_job=False)
        low = queue.register("HALT_CYCLE_LO")
        now = self._queues.bus.cycle
        cycle = now - ((now - low) & 0xFFFFFFFF)
        if not status["in_job"]:
            return HaltRecord(engine, False, cycle=cycle, loaded=loaded)
        job = queue.unfinished[0]
        model, points = job.model, job.model.image.meta.cancel_points
        number = model.point_number(job.index, status["point"])
        if number >= len(points):
            raise NotSuspendable(
                model, f"engine {engine} halted at point {number}; the table of {model.name!r} has {len(points)}"
            )
        if points[number].job != job.index:
            raise NotSuspendable(
                model,
                f"engine {engine} halted in job {job.index} of {model.name!r} at point {number}, which the table has "
                f"in job {points[number].job}",
            )
        if verify:
            self._verify(engine, job.id, model, number)
        return HaltRecord(engine, True, job.id, number, points[number].pc, cycle, loaded)

    def _verify(self, engine: int, job_id: int, model: LoadedModel, number: int) -> None:
        queue, point = self._queues.engines[engine], model.image.meta.cancel_points[number]
        counts = dict(point.semaphores)
        expected = {"HALT_JOB": job_id, "HALT_PC": point.pc + 1}
        expected |= {f"SEM[{i}]": counts.get(i, 0) for i in range(self._queues.params.semaphores)}
        for name, value in expected.items():
            found = queue.register(name)
            if found != value:
                raise NotSuspendable(
                    model,
                    f"engine {engine} at point {number} of {model.name!r}: {name} reads {found}, "
                    f"the image says {value}; compile the model again",
                )
