"""DRAM and the way to it: ``sim/dram.py`` behind ``hw/axi/interconnect.py``, burst by burst."""

from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from hw.contract.params import SocParams
from hw.contract.timing import AXI_STAGE, DRAM_QUEUE_BURSTS, DRAM_QUEUED, WRITE_BUFFERED
from sim.model.agenda import Agenda

FULL = 100  #: percent of bandwidth at which the bus carries one beat per cycle

Served = Callable[[int, Any], None]  #: told the cycle in which the last beat moved
HELD = -1  #: the answer to a request that waits


class Client(Protocol):
    """Whoever asks for bursts, one at a time; ``port``: its number among those that read, or write."""

    port: int

    def accepted(self, time: int) -> None:
        """A request that had to wait was accepted: from cycle ``time`` on the next may be offered."""


class _Request:
    """A burst that was accepted. ``due``: first cycle in which its first beat may move."""

    __slots__ = ("beats", "due", "served", "subject", "write")

    def __init__(self, write: bool, beats: int, served: Served, subject: Any) -> None:
        self.write, self.beats, self.served, self.subject = write, beats, served, subject
        self.due = 0


class MemoryModel:
    """The memory port of the SoC: one address per cycle, reads in order, writes in order, turns between them.

    Bursts are whole: a read that becomes due amid the beats of a write waits for its end, which the hardware's does not
    always.
    """

    def __init__(self, params: SocParams, agenda: Agenda) -> None:
        self._agenda = agenda
        self.set_timing(params)
        self._word = params.dram_word
        self._row_shift = params.dram_row_bytes.bit_length() - 1
        self._bank_mask = params.dram_banks - 1
        self._bank_bits = params.dram_banks.bit_length() - 1
        self._interval, self._closed = params.dram_refresh_interval, params.dram_refresh_cycles
        self._banks = [(-1, 0, -1)] * params.dram_banks  # row, free, epoch
        self._taken = [-1, -1]  # last cycle in which a read and a write address was taken
        self._queues: tuple[deque[_Request], deque[_Request]] = (deque(), deque())
        self._waiting: tuple[list, list] = ([], [])  # requests that found the queue full, one of a client at most
        self._last = [-1, -1]  # whose request was accepted last
        self._busy = False
        self._free = 0  # first cycle in which the next beat may move
        self._paced = (0, 0)  # where pacing began, and beats since
        self._write_next = False
        self._plan = 0

    def set_timing(self, params: SocParams) -> None:
        """From now on the DRAM has the latency, the row miss and the bandwidth of ``params``."""
        self._latency, self._miss = params.dram_latency, params.dram_row_miss
        self._bandwidth = params.dram_bandwidth

    def request(
        self, time: int, client: Client, write: bool, address: int, beats: int, served: Served, subject: Any
    ) -> int:
        """``client`` offers a burst from cycle ``time`` on; the data of a write follows without a gap. Returns the
        cycle from which it may offer the next, or :data:`HELD`: it will be told."""
        if len(self._queues[write]) > DRAM_QUEUE_BURSTS or self._waiting[write]:
            self._waiting[write].append((client, address, beats, served, subject))
            return HELD
        self._last[write] = client.port
        return self._accept(time, write, address, beats, served, subject)

    def _accept(self, time: int, write: bool, address: int, beats: int, served: Served, subject: Any) -> int:
        taken = self._taken
        at = time + AXI_STAGE
        if at <= taken[write]:
            at = taken[write] + 1
        if at == taken[not write]:
            at += 1
        taken[write] = at
        request = _Request(write, beats, served, subject)
        begin = self._open(at, address, beats)
        soonest = at + DRAM_QUEUED
        if write:
            request.due = max(begin, soonest, time + WRITE_BUFFERED)
        else:
            request.due = max(begin + self._latency - 1, soonest)
        queue = self._queues[write]
        queue.append(request)
        if not self._busy and queue[0] is request:
            self._serve(max(at, self._free))
        return at

    def _open(self, now: int, address: int, beats: int) -> int:
        """Reserve the bank for ``beats``; when its row is open for them."""
        line = address >> self._row_shift
        bank, row = line & self._bank_mask, line >> self._bank_bits
        elapsed = now + self._closed
        epoch = elapsed // self._interval
        phase = elapsed - epoch * self._interval
        start = now + self._closed - phase if phase < self._closed else now
        open_row, free, opened = self._banks[bank]
        if opened != epoch:
            begin = start + self._miss
        else:
            begin = max(start, free)
            if open_row != row:
                begin += self._miss
        self._banks[bank] = (row, begin + beats, epoch)
        return begin

    def _serve(self, time: int) -> None:
        """The bus is free from ``time`` on: begin a burst, or wait for the first that becomes due."""
        reads, writes = self._queues
        if reads:
            if writes:
                read, write = max(time, reads[0].due), max(time, writes[0].due)
                request = writes[0] if write < read or (write == read and self._write_next) else reads[0]
            else:
                request = reads[0]
        elif writes:
            request = writes[0]
        else:
            return
        self._plan += 1
        if request.due > time:
            self._agenda.at(request.due, self._due, self._plan)
        else:
            self._begin(time, request)

    def _due(self, time: int, plan: int) -> None:
        if plan == self._plan and not self._busy:
            self._serve(time)

    def _begin(self, time: int, request: _Request) -> None:
        self._queues[request.write].popleft()
        self._busy = True
        phase = (time + self._closed) % self._interval
        if phase < self._closed:
            time += self._closed - phase
            phase = self._closed
        beats = request.beats
        if self._bandwidth == FULL:
            end = time + beats - 1
            spare = self._interval - phase
        else:
            end, spare = self._pace(time, beats), self._interval - phase
        if end - time >= spare:
            end += self._closed * (1 + (end - time - spare) // (self._interval - self._closed))
        self._agenda.at(end, self._ended, request)

    def _pace(self, time: int, beats: int) -> int:
        """The cycle of the last of ``beats`` from ``time`` on at less than full bandwidth."""
        begun, count = self._paced
        first = begun + FULL * count // self._bandwidth
        if time > first:
            begun, count, first = time, 0, time
        self._paced = (begun, count + beats)
        return begun + FULL * (count + beats - 1) // self._bandwidth

    def _ended(self, time: int, request: _Request) -> None:
        self._busy = False
        self._write_next = not request.write
        self._free = time + 1
        waiting = self._waiting[request.write]
        if waiting:
            last = self._last[request.write]
            held = min(waiting, key=lambda one: (one[0].port <= last, one[0].port))  # round robin
            waiting.remove(held)
            client, *burst = held
            self._last[request.write] = client.port
            self._busy = True  # a queue that has room again does not end the choice of what comes next
            at = self._accept(time, request.write, *burst)
            self._busy = False
            client.accepted(at)
        self._serve(time + 1)
        request.served(time, request.subject)
