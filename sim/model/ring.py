"""Fetches job descriptors as ``hw/control/ring.py`` does."""

from hw.contract.job import JOB
from hw.contract.timing import AXI_RETURN, FETCH_BURST_BYTES
from sim.model.commands import HELD, READ_PORTS
from sim.model.jobs import BAD_DESCRIPTOR, BAD_READ, Job, JobFault, read_job
from sim.model.surroundings import Component

_WORDS = JOB.size // 8


class RingModel(Component):
    """Keeps up to ``job_slots`` descriptors in ring order. ``jobs``: those that are valid, by index."""

    def reset(self) -> None:
        self.generation += 1
        self.port = READ_PORTS * self.engine.number + 1
        self.tail = self.fetched = 0
        self.fetching = False
        self.stored = 0
        self.bad: JobFault | None = None
        self._unread: list[int] = []  # offsets of bursts of the descriptor at hand that were answered with an error
        self.jobs: dict[int, Job] = {}

    def doorbell(self, time: int, tail: int) -> None:
        """Take note that the host has written RING_TAIL."""
        behind = (tail - self.fetched) & 0xFFFFFFFF
        self.tail = self.fetched if behind >> 31 else self.fetched + behind
        self.consider(time)

    def consider(self, time: int) -> None:
        """Begin a fetch if one may begin."""
        engine = self.engine
        if (
            self.fetching or self.bad or self.fetched == self.tail or not engine.enabled or engine.paused
            or engine.stopped or self.fetched - engine.executor.released == engine.params.job_slots
        ):  # fmt: skip
            return
        self.fetching = True
        place = self.fetched & ((1 << engine.regs["RING_SIZE"]) - 1)
        address = engine.regs["RING_BASE"] + place * JOB.size
        self.fetched += 1
        word = engine.params.dram_word
        beats = min(engine.params.axi_burst_beats, FETCH_BURST_BYTES // word, JOB.size // word)
        self._beats, self._left = beats, JOB.size // word // beats
        self._first, self._unread = 0, []
        self._offer(time + 1, (address, beats, self._left))

    def _offer(self, time: int, subject: tuple[int, int, int]) -> None:
        """Ask for the next of the bursts of a descriptor."""
        address, beats, number = subject
        if number:
            at = (
                address
                + (JOB.size // (beats * self.engine.params.dram_word) - number) * beats * self.engine.params.dram_word
            )
            self._next = (address, beats, number - 1)
            accepted = self.engine.memory.request(
                time, self, False, at, beats, self._came, (self.generation, beats, address)
            )
            if accepted != HELD:
                self.accepted(accepted)

    def accepted(self, time: int) -> None:
        """Take note that a burst was accepted, as a ``Client`` does."""
        self.later(time, self._offer, self._next)

    def _came(self, time: int, subject: tuple[int, int, int]) -> None:
        generation, beats, address = subject
        if generation != self.generation:
            return
        per_beat = self.engine.params.dram_word // 8
        resumed = self.engine.memory.resumed
        if not self._first:
            # Words are taken apart as they come: what came before an interruption has been.
            self._first = time - resumed + 1 - (beats - resumed) * per_beat if resumed else time - beats + 1
        if self.engine.memory.failed:
            size = beats * self.engine.params.dram_word
            self._unread.append(JOB.size - self._left * size)
            if len(self._unread) == 1:
                # Said at the first word, by which the words before it have been kept.
                self.later(max(time - beats + 1 + AXI_RETURN + 2, time + 1), self._failed, address)
        self._left -= 1
        if not self._left:
            last = max(self._first + AXI_RETURN + 1 + _WORDS, time + AXI_RETURN + 1 + per_beat)
            self.later(last + 1, self._stored, address)

    def _failed(self, time: int, address: int) -> None:
        """Stop at a descriptor that cannot be read; the jobs before it are not affected."""
        self.bad = BAD_READ
        self.jobs[self.stored] = self._flawed(address)
        self.engine.loader.consider(time)

    def _flawed(self, address: int) -> Job:
        """Return what is kept of a descriptor that is not valid: zeros where it could not be read."""
        raw = bytearray(self.engine.read_dram(address, JOB.size))
        size = self._beats * self.engine.params.dram_word
        for offset in self._unread:
            raw[offset : offset + size] = bytes(size)
        return Job(self.stored, JOB.unpack(bytes(raw)))

    def _stored(self, time: int, address: int) -> None:
        self.fetching = False
        engine = self.engine
        if self.bad:
            return
        if address + JOB.size > engine.params.dram_bytes:
            self.bad = BAD_READ
        else:
            job = read_job(self.stored, engine.read_dram(address, JOB.size), engine.params)
            if job is None:
                self.bad = BAD_DESCRIPTOR
                self.jobs[self.stored] = self._flawed(address)
            else:
                self.jobs[self.stored] = job
                self.stored += 1
        engine.loader.consider(time)
        self.consider(time)
