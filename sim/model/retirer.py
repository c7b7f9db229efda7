"""Writes completions as ``hw/control/retire.py`` does."""

from hw.contract.job import COMPLETION, COUNTERS, Fault, FaultUnit, JobFlag
from hw.contract.timing import AXI_RETURN
from sim.model.commands import HELD
from sim.model.jobs import Job
from sim.model.surroundings import Component

COPIED = COMPLETION[COUNTERS[0][0]].offset // 4 + len(COUNTERS)  #: words of a completion, one per cycle


class RetirerModel(Component):
    """Copies a completion, writes it, and tells host and events. ``retired``: jobs whose completion is in DRAM;
    ``free``: the next may come; ``failed``: the job whose completion could not be written."""

    def reset(self) -> None:
        self.generation += 1
        self.port = 2 * self.engine.number + 1
        self.retired = 0
        self.free = True
        self.failed: Job | None = None
        self.writing = 0  #: bursts that are not answered
        self._waiting: tuple[Job, bytes] | None = None  # for room in the ring

    def take(self, time: int, job: Job, completion: bytes) -> int:
        """Take a job that has ended, which the executor offers in cycle ``time``; return when it may forget the job."""
        self.free = False
        done = time + 1 + COPIED
        self.later(done + 1, self._copied, (job, completion))
        return done

    def _copied(self, time: int, subject: tuple[Job, bytes]) -> None:
        self._waiting = subject
        self.consider(time)

    def consider(self, time: int) -> None:
        """Begin to write if there is room."""
        engine = self.engine
        if self._waiting is None or engine.resetting:
            return
        size = engine.regs["CPL_SIZE"]
        if ((self.retired - engine.regs["CPL_HEAD"]) & 0xFFFFFFFF) >> size:
            return
        job, completion = self._waiting
        self._waiting = None
        word = engine.params.dram_word
        self._beats = min(engine.params.axi_burst_beats, COMPLETION.size // word)
        self._address = engine.regs["CPL_BASE"] + (self.retired & ((1 << size) - 1)) * COMPLETION.size
        self._raw, self._job = completion, job
        self.writing = COMPLETION.size // word // self._beats
        self._bad = False
        self.later(time + 1, self._request, 0)

    def _request(self, time: int, number: int) -> None:
        size = self._beats * self.engine.params.dram_word
        self._number = number
        accepted = self.engine.memory.request(
            time, self, True, self._address + number * size, self._beats, self._written, (self.generation, number)
        )
        if accepted != HELD:
            self.accepted(accepted)

    def accepted(self, time: int) -> None:
        """Take note that a burst was accepted, as a ``Client`` does."""
        if (self._number + 1) * self._beats * self.engine.params.dram_word < COMPLETION.size:
            self.later(time + self._beats + 1, self._request, self._number + 1)

    def _written(self, time: int, subject: tuple[int, int]) -> None:
        generation, number = subject
        if generation != self.generation:
            return
        engine = self.engine
        size = self._beats * engine.params.dram_word
        at = self._address + number * size
        if engine.memory.failed or at + size > engine.params.dram_bytes:
            self._bad = True
        else:
            engine.write_dram(at, self._raw[number * size : (number + 1) * size])
        self.writing -= 1
        if not self.writing:
            self.later(time + AXI_RETURN + 2, self._answered)

    def _answered(self, time: int, _: None) -> None:
        engine, job = self.engine, self._job
        if self._bad:
            self.failed = job
            self.free = True
            engine.executor.completion_failed(time, Fault.BUS, FaultUnit.RING)
            return
        self.retired += 1
        engine.loader.consider(time)
        if job.has(JobFlag.INTERRUPT):
            engine.interrupt(time, "completion")
        if job.has(JobFlag.SIGNAL):
            self.later(engine.events.signalled(time, engine.number) + 1, self._signalled, job.members["signal_id"])
        else:
            self.later(time + 1, self._over)

    def _signalled(self, time: int, number: int) -> None:
        counts = self.engine.events.counts
        if number < len(counts):  # a descriptor that was refused may name any
            counts[number] = (counts[number] + 1) & 0xFFFFFFFF
        self._over(time)
        self.engine.event_changed(time)

    def _over(self, time: int, _: None = None) -> None:
        self.free = True
        self.engine.executor.retirer_free(time)
