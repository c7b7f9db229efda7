"""DRAM and the way to it: ``sim/dram.py`` behind ``hw/axi/interconnect.py``, burst by burst."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from hw.contract.params import SocParams
from hw.contract.timing import AXI_RETURN, AXI_STAGE, DRAM_QUEUE_BURSTS, DRAM_QUEUED, WRITE_BUFFERED
from sim.model.agenda import Agenda

FULL = 100  #: percent of bandwidth at which the bus carries one beat per cycle

Served = Callable[[int, Any], None]  #: told the cycle in which the last beat moved
_PORTS = 1 << 20  #: more than there are
HELD = -1  #: the answer to a request that waits
STREAM_GAP = AXI_RETURN + 2  #: from the last beat of a burst until its client offers the next in its place


class Client(Protocol):
    """Whoever asks for bursts, one at a time; ``port``: its number among those that read, or write."""

    port: int

    def accepted(self, time: int) -> None:
        """A request that had to wait was accepted: from cycle ``time`` on the next may be offered."""


#: A burst that was accepted: the first cycle in which its first beat may move, beats, whether it writes, whom to tell.
_Burst = tuple[int, int, bool, Served, Any]
BurstLog = list[tuple[Client, Any, int, int, int, int, int, bool]]
"""Of each burst, in the order in which they were accepted: client, what it is told, when it was
offered, when its address was taken, bank, row, beats, whether it writes."""
ServedLog = list[tuple[int, bool]]  #: of each burst, in order: the cycle of its last beat, and whether it writes
#: A request that found the queue full: client, since when, address, beats, whom to tell.
_Held = tuple[Client, int, int, int, Served, Any]


class MemoryModel:
    """The memory port of the SoC: one address per cycle, reads in order, writes in order, turns between them.

    Bursts are whole: a read that becomes due amid the beats of a write waits for its end, which the hardware's does not
    always.
    """

    def __init__(self, params: SocParams, agenda: Agenda) -> None:
        self._agenda = agenda
        self.set_timing(params)
        self._row_shift = params.dram_row_bytes.bit_length() - 1
        self._bank_mask = params.dram_banks - 1
        self._bank_bits = params.dram_banks.bit_length() - 1
        self._interval, self._closed = params.dram_refresh_interval, params.dram_refresh_cycles
        self._banks = [(-1, 0, -1)] * params.dram_banks  # row of which line, free, epoch
        self._taken = [-1, -1]  # last cycle in which a read and a write address was taken
        self._queues: tuple[deque[_Burst], deque[_Burst]] = (deque(), deque())
        self._waiting: tuple[list[_Held], list[_Held]] = ([], [])  # one of a client at most
        self._last = [-1, -1]  # whose request was accepted last
        self._current: _Burst | None = None  # what moves
        self._end = 0  # the cycle of its last beat
        self._free = 0  # first cycle in which the next beat may move
        self._paced = (0, 0)  # where pacing began, and beats since
        self._write_next = False
        self._plan = 0
        self.log: BurstLog | None = None  #: of bursts, if somebody wants one
        self.served: ServedLog | None = None  #: of their ends, likewise

    def set_timing(self, params: SocParams) -> None:
        """From now on the DRAM has the latency, the row miss and the bandwidth of ``params``."""
        self._latency, self._miss = params.dram_latency, params.dram_row_miss
        self._bandwidth = params.dram_bandwidth

    def request(
        self, time: int, client: Client, write: bool, address: int, beats: int, served: Served, subject: Any
    ) -> int:
        """``client`` offers a burst from cycle ``time`` on; the data of a write follows without a gap. Returns the
        cycle from which it may offer the next, or :data:`HELD`: it will be told."""
        queue = self._queues[write]
        if len(queue) > DRAM_QUEUE_BURSTS or self._waiting[write]:
            self._waiting[write].append((client, time, address, beats, served, subject))
            return HELD
        self._last[write] = client.port
        at = self._accept(time, write, address, beats, served, subject)
        if self.log is not None:
            self._note(time, at, client, write, address, beats, subject)
        if self._current is None and len(queue) == 1:
            self._serve(at if at > self._free else self._free)
            if self._current is not None:
                self._agenda.at(self._end, self._ended, self._current)
        return at

    def stream(
        self, time: int, client: Client, base: int, bursts: Sequence[tuple[int, int]], served: Served, subject: Any
    ) -> tuple[int, int]:
        """Go on with reads of ``client`` as long as nothing else can happen: called as one of its bursts has come,
        for those that are to be offered next, each :data:`STREAM_GAP` cycles after one of its bursts has come.

        Each of ``bursts`` is an offset from address ``base`` and beats, and ``served`` is what the client passes with
        all its bursts. Returns how many were offered, before each of which but the first one more has come without
        ``served`` being called, and when the last was accepted. 0 if there is anything to decide.
        """
        (reads, writes), waiting, current = self._queues, self._waiting, self._current
        if current is None or writes or waiting[0] or waiting[1] or len(reads) > DRAM_QUEUE_BURSTS:
            return 0, 0
        accept, last_beat, end = self._accept, self._last_beat, self._end
        quiet, log, ends = self._agenda.quiet_until(), self.log, self.served
        offered = at = 0
        self._last[False] = client.port
        for offset, beats in bursts:
            if offered:
                # The burst that moves is one of the client's, the next may follow at once, and the client may offer.
                if end > quiet or current[3] is not served or reads[0][0] > end + 1 or at > end + STREAM_GAP:
                    break
                time = end
                if ends is not None:
                    ends.append((time, False))
                current = reads.popleft()
                end = last_beat(time + 1, current[1])
            at = accept(time + STREAM_GAP, False, base + offset, beats, served, subject)
            if log is not None:
                self._note(time + STREAM_GAP, at, client, False, base + offset, beats, subject)
            offered += 1
        self._current, self._end, self._free = current, end, time + 1
        return offered, at

    def _accept(self, time: int, write: bool, address: int, beats: int, served: Served, subject: Any) -> int:
        """Queue a burst with the cycle in which it is due; returns when its address is at the memory."""
        taken = self._taken
        at = time + AXI_STAGE
        if at <= taken[write]:
            at = taken[write] + 1
        if at == taken[not write]:
            at += 1
        taken[write] = at
        # Reserve the bank: when is its row open for the burst?
        line = address >> self._row_shift
        bank = line & self._bank_mask
        epoch = (at + self._closed) // self._interval
        begin = epoch * self._interval  # when the last refresh was over
        if begin < at:
            begin = at
        open_line, free, opened = self._banks[bank]
        if opened != epoch:
            begin += self._miss
        else:
            if free > begin:
                begin = free
            if open_line != line:
                begin += self._miss
        self._banks[bank] = (line, begin + beats, epoch)
        due = at + DRAM_QUEUED
        if not write:
            if begin + self._latency > due:
                due = begin + self._latency - 1
        else:
            if begin > due:
                due = begin
            if time + WRITE_BUFFERED > due:
                due = time + WRITE_BUFFERED
        self._queues[write].append((due, beats, write, served, subject))
        return at

    def _serve(self, time: int) -> None:
        """The bus is free from ``time`` on: begin a burst, or wait for the first that becomes due."""
        reads, writes = self._queues
        if reads:
            queue, burst = reads, reads[0]
            if writes:
                read = burst[0] if burst[0] > time else time
                write = writes[0][0] if writes[0][0] > time else time
                if write < read or (write == read and self._write_next):
                    queue, burst = writes, writes[0]
        elif writes:
            queue, burst = writes, writes[0]
        else:
            return
        self._plan += 1
        if burst[0] > time:
            self._agenda.at(burst[0], self._due, self._plan)
            return
        self._current = queue.popleft()
        self._end = self._last_beat(time, burst[1])

    def _last_beat(self, time: int, beats: int) -> int:
        """The cycle of the last of ``beats`` that may move from ``time`` on: not amid a refresh, nor too fast."""
        refreshed = (time + self._closed) // self._interval * self._interval
        if time < refreshed:
            time = refreshed
        end = time + beats - 1 if self._bandwidth == FULL else self._pace(time, beats)
        closing = refreshed + self._interval - self._closed
        if end >= closing:
            end += self._closed * (1 + (end - closing) // (self._interval - self._closed))
        return end

    def _due(self, time: int, plan: int) -> None:
        if plan == self._plan and self._current is None:
            self._serve(time)
            self._go_on()

    def _pace(self, time: int, beats: int) -> int:
        """The cycle of the last of ``beats`` from ``time`` on at less than full bandwidth."""
        begun, count = self._paced
        first = begun + FULL * count // self._bandwidth
        if time > first:
            begun, count = time, 0
        self._paced = (begun, count + beats)
        return begun + FULL * (count + beats - 1) // self._bandwidth

    def _go_on(self) -> None:
        """The burst that moves will end: at once if nothing else happens before."""
        burst = self._current
        if burst is not None:
            if self._agenda.before_others(self._end):
                self._ended(self._end, burst)
            else:
                self._agenda.at(self._end, self._ended, burst)

    def _ended(self, time: int, burst: _Burst) -> None:
        """The last beat of ``burst`` moved at ``time``; goes on with bursts that end before anything else happens."""
        agenda = self._agenda
        while True:
            _, _, write, served, subject = burst
            self._write_next = not write
            self._free = time + 1
            if self.served is not None:
                self.served.append((time, write))
            if self._waiting[write]:
                self._admit(time, write)
            self._current = None
            self._serve(time + 1)
            served(time, subject)
            following = self._current
            if following is None:
                return
            time, burst = self._end, following
            if not agenda.before_others(time):
                agenda.at(time, self._ended, burst)
                return

    def _admit(self, time: int, write: bool) -> None:
        """The queue has room again: accept a request that waits, round robin."""
        waiting = self._waiting[write]
        place = 0
        if len(waiting) > 1:
            # The first port behind the last that was served, and around.
            last, nearest = self._last[write], _PORTS
            for number, held in enumerate(waiting):
                distance = (held[0].port - last - 1) % _PORTS
                if distance < nearest:
                    nearest, place = distance, number
        client, offered, address, beats, served, subject = waiting.pop(place)
        self._last[write] = client.port
        at = self._accept(time, write, address, beats, served, subject)
        if self.log is not None:
            self._note(offered, at, client, write, address, beats, subject)
        client.accepted(at)

    def _note(self, offered: int, at: int, client: Client, write: bool, address: int, beats: int, subject: Any) -> None:
        """Keep that a burst was accepted."""
        assert self.log is not None
        line = address >> self._row_shift
        self.log.append((client, subject, offered, at, line & self._bank_mask, line >> self._bank_bits, beats, write))
