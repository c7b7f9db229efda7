"""DRAM and the way to it: ``sim/dram.py`` behind ``hw/axi/interconnect.py``, burst by burst."""

from collections import deque
from collections.abc import Sequence
from typing import Any

from hw.contract.params import SocParams
from hw.contract.timing import AXI_RETURN, AXI_STAGE, DRAM_QUEUE_BURSTS, DRAM_QUEUED, WRITE_BUFFERED
from sim.model.agenda import Agenda
from sim.model.dram_faults import FaultyMemory, R, W
from sim.model.lv2_writes import Lv2Writes
from sim.model.requests import HELD, READ_PORTS, Accepted, BurstLog, Client, Request, Served, ServedLog
from sim.timing.copies import Burst

FULL = 100  #: percent of bandwidth at which the bus carries one beat per cycle
STREAM_GAP = AXI_RETURN + 2  #: from the last beat of a burst until its client offers the next in its place

_PORTS = 1 << 20  #: more than there are
_NEVER = 1 << 60


class MemoryModel(FaultyMemory):
    """The memory port of the SoC: one address per cycle, reads in order, writes in order, turns between them.

    A request goes through the register of its address channel, for which requests of one cycle are chosen round robin,
    to a queue of ``DRAM_QUEUE_BURSTS`` behind the burst in service. While the queue is full, it stays in the register.

    Reads and writes take turns, burst by burst. So what becomes due amid a burst of the other kind interrupts it if
    the last to end was of that other kind, too.
    """

    def __init__(self, params: SocParams, agenda: Agenda) -> None:
        super().__init__()
        self._agenda, self._events = agenda, agenda.events
        self.set_timing(params)
        self._row_shift = params.dram_row_bytes.bit_length() - 1
        self._bank_mask = params.dram_banks - 1
        self._bank_bits = params.dram_banks.bit_length() - 1
        self._interval, self._closed = params.dram_refresh_interval, params.dram_refresh_cycles
        self._banks = [(-1, 0, -1)] * params.dram_banks  # row of which line, free, epoch
        self._taken = [-1, -1]  # last cycle in which a read and a write address was taken
        self._queues: tuple[deque[Accepted], deque[Accepted]] = (deque(), deque())
        self._registers: list[Request | None] = [None, None]  # of the address channels, while a queue is full
        self._waiting: tuple[list[Request], list[Request]] = ([], [])  # one of a client at most
        self._choosing = [_NEVER, _NEVER]  # when one of them will be chosen
        self._last = [-1, -1]  # whose request was accepted last
        self._current: Accepted | None = None  # what moves
        self._end = 0  # the cycle of its last beat
        #: What goes on behind it, the cycle of its last beat, and how many of its beats are left.
        self._interrupted: tuple[Accepted, int, int] | None = None
        self.resumed = 0  #: beats of the burst that has just ended that moved behind an interruption
        self._free = 0  # first cycle in which the next beat may move
        self._paced = (0, 0)  # where pacing began, and beats since
        self._write_next = False
        self._plan = 0
        self._set_epoch(0)
        self.lv2_writes = Lv2Writes(params)
        self._held_up = 0  # cycles by which LV2 holds the read that moves up
        self.log: BurstLog | None = None  #: of bursts, if somebody wants one
        self.served: ServedLog | None = None  #: of their ends, likewise

    def set_timing(self, params: SocParams) -> None:
        """From now on the DRAM has the latency, the row miss and the bandwidth of ``params``."""
        self._latency, self._miss = params.dram_latency, params.dram_row_miss
        self._bandwidth = params.dram_bandwidth

    def request(
        self, time: int, client: Client, write: bool, address: int, beats: int, served: Served, subject: Any,
        pause: int = 0, into: int = -1,
    ) -> int:  # fmt: skip
        """``client`` offers a burst from cycle ``time`` on; the data of a write follows without a gap. Returns the
        cycle from which it may offer the next, or :data:`HELD`: it will be told. It does not take the first word of a
        read before it has done ``pause`` steps since the last that it has taken. ``into``: the byte of LV2 for that
        word, if it goes there."""
        held = (client, time, address, beats, served, subject, pause, into)
        if self._registers[write] is not None:  # until a burst ends
            self._waiting[write].append(held)
            return HELD
        events = self._events
        if self._waiting[write] or (events and events[0][0] <= time):  # others may ask in the same cycle
            self._waiting[write].append(held)
            self._choose_at(time, write)
            return HELD
        return self._grant(time, write, held)

    def _choose_at(self, time: int, write: bool) -> None:
        """Choose among the requests that wait in cycle ``time``."""
        if time < self._choosing[write]:
            self._choosing[write] = time
            self._agenda.late(time, self._choose, write)

    def _choose(self, time: int, write: bool) -> None:
        """Grant one of the requests that wait."""
        if time != self._choosing[write]:
            return
        self._choosing[write] = _NEVER
        held = self._chosen(time, write)
        if held is not None:
            at = self._grant(time, write, held)
            if self._waiting[write] and self._registers[write] is None:
                self._choose_at(at, write)
            held[0].accepted(at)

    def _chosen(self, time: int, write: bool) -> Request | None:
        """Take one of the requests that wait in cycle ``time``, round robin."""
        waiting, last = self._waiting[write], self._last[write]
        nearest, place = _PORTS, -1
        for number, held in enumerate(waiting):
            if held[1] <= time:
                # The first port behind the last that was served, and around.
                distance = (held[0].port - last - 1) % _PORTS
                if distance < nearest:
                    nearest, place = distance, number
        if place < 0:
            self._choose_at(min(held[1] for held in waiting), write)
            return None
        return waiting.pop(place)

    def _grant(self, time: int, write: bool, held: Request) -> int:
        """A request enters the register in cycle ``time``; returns when it leaves it, or the next may be offered."""
        self._last[write] = held[0].port
        current, queue, interrupted = self._current, self._queues[write], self._interrupted
        served = (current and current[2] == write) or (interrupted and interrupted[0][2] == write)
        if len(queue) < DRAM_QUEUE_BURSTS + (not served) and not self._frozen:
            at = self._accept(time, write, held)
            if len(queue) == 1 and not interrupted:
                if current is None:
                    self._serve(at if at > self._free else self._free)
                elif not served and self._write_next == write:
                    self._interrupt(write)
                if self._current is not current:
                    self._agenda.early(self._end, self._ended, self._current)
        else:
            self._registers[write] = held
            at = time + AXI_STAGE
        if self.log is not None:
            self._note(at, held, write)
        return at

    def stream(
        self, time: int, client: Client, base: int, into: int, bursts: Sequence[Burst], served: Served, subject: Any,
    ) -> tuple[int, int]:  # fmt: skip
        """Go on with reads of ``client`` as long as nothing else can happen: called as one of its bursts has come,
        for those that are to be offered next, each :data:`STREAM_GAP` cycles after one of its bursts has come.

        ``bursts`` count from address ``base`` and byte ``into`` of LV2; ``served`` is what the client passes with all
        its bursts. Returns how many were offered, before each of which but the first one more has come without
        ``served`` being called, and when the last was accepted. 0 if there is anything to decide.
        """
        (reads, writes), waiting, current = self._queues, self._waiting, self._current
        if (
            current is None or current[2] or writes or self._interrupted or waiting[0] or waiting[1]
            or self._registers[0] or len(reads) > DRAM_QUEUE_BURSTS or self._awry
        ):  # fmt: skip
            return 0, 0
        accept, last_beat, end = self._accept, self._last_beat, self._end
        quiet, log, ends = self._agenda.quiet_until() - STREAM_GAP, self.log, self.served
        if time > quiet or (len(reads) == DRAM_QUEUE_BURSTS and end < time + STREAM_GAP):
            return 0, 0
        offered = at = 0
        self._last[False] = client.port
        writes_lv2 = self.lv2_writes
        for offset, beats, pause, landing in bursts:
            if offered:
                # The burst that moves is one of the client's, the next may follow at once, and the client may offer.
                if end > quiet or current[3] is not served or reads[0][0] > end + 1 or at > end + STREAM_GAP:
                    break
                before = self._registers[0]
                if before is not None and reads[0][1] < STREAM_GAP:
                    break
                time = end
                if ends is not None:
                    ends.append((time, False, self._held_up))
                current = reads.popleft()
                client.moved = time
                if before is not None:
                    self._registers[0] = None
                    accept(time, False, before)
                held_up = current[6] and current[5].moved + current[6] - time
                begin = time + 1 + held_up if held_up > 0 else time + 1
                end = last_beat(begin, current[1], False)
                self._held_up = 0
                if end >= writes_lv2.soonest and current[7] >= 0:
                    end = self._lv2_holds(begin, end, current)
            asked = time + STREAM_GAP
            held = (client, asked, base + offset, beats, served, subject, pause, into + landing)
            if len(reads) < DRAM_QUEUE_BURSTS:
                at = accept(asked, False, held)
            else:  # until the burst that moves ends, which is not before
                self._registers[0], at = held, asked + AXI_STAGE
            if log is not None:
                self._note(at, held, False)
            offered += 1
        self._current, self._end, self._free = current, end, time + 1
        return offered, at

    def _accept(self, time: int, write: bool, held: Request) -> int:
        """Queue a burst with the cycle in which it is due; returns when its address is at the memory."""
        client, _, address, beats, served, subject, pause, into = held
        taken = self._taken
        at = time + AXI_STAGE
        if at <= taken[write]:
            at = taken[write] + 1
        if at == taken[not write]:
            at += 1
        failed = False
        if self._awry:
            at = self._taken_at(at, write)
            failed = self._strikes(at, address)
        taken[write] = at
        # Reserve the bank: when is its row open for the burst?
        line = address >> self._row_shift
        bank = line & self._bank_mask
        if not self._shuts <= at < self._shuts_next:
            self._set_epoch(at)
        epoch, begin = self._epoch, self._opens
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
        self._queues[write].append((due, beats, write, served, subject, client, pause, into, failed))
        return at

    def _serve(self, time: int) -> None:
        """The bus is free from ``time`` on: begin a burst, or wait for the first that becomes due."""
        if self._frozen:
            return
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
        pause = burst[6]
        if pause and burst[5].moved + pause >= time:
            time = burst[5].moved + pause + 1
        end = time + burst[1] - 1
        # As `_last_beat`, in place.
        if self._opens <= time and end < self._shuts_next and self._bandwidth == FULL and not self._stalls:
            self._end = end
        else:
            self._end = end = self._last_beat(time, burst[1], burst[2])
        if not burst[2]:
            self._held_up = 0
            if end >= self.lv2_writes.soonest and burst[7] >= 0:
                self._end = self._lv2_holds(time, end, burst)
        if (writes if queue is reads else reads) and self._write_next != burst[2]:
            self._interrupt(not burst[2])

    def _lv2_holds(self, time: int, end: int, burst: Accepted) -> int:
        """The cycle of the last beat of a load that moves from ``time`` on, which were ``end`` if LV2 had no banks."""
        self._held_up = held = self.lv2_writes.held(burst[5].port // READ_PORTS, time, burst[7], burst[1])
        return end + held

    def _interrupt(self, write: bool) -> None:
        """Let the next burst of the other kind go first if it becomes due amid the one that moves."""
        queue, moving, end = self._queues[write], self._current, self._end
        due = queue[0][0]
        if due <= end and moving is not None:
            self._current = queue.popleft()
            if not write:
                self._held_up = 0
            last = self._last_beat(end + 1, self._current[1], write)
            left = end - due + 1  # cycles for the beats that are left
            self._interrupted = moving, last, left
            self._end = last - left

    def _last_beat(self, time: int, beats: int, write: bool) -> int:
        """The cycle of the last of ``beats`` that may move from ``time`` on: not amid a refresh, nor too fast."""
        if not self._shuts <= time < self._shuts_next:
            self._set_epoch(time)
        if time < self._opens:
            time = self._opens
        if self._stalls:
            end = self._stalls.last(W if write else R, time, beats)
        else:
            end = time + beats - 1 if self._bandwidth == FULL else self._pace(time, beats)
        closing = self._shuts_next
        if end >= closing:
            end += self._closed * (1 + (end - closing) // (self._interval - self._closed))
        return end

    def _set_epoch(self, time: int) -> None:
        """Note when the refresh before ``time`` began and ended, and when the next begins."""
        self._epoch = (time + self._closed) // self._interval
        self._opens = self._epoch * self._interval
        self._shuts, self._shuts_next = self._opens - self._closed, self._opens + self._interval - self._closed

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
            if self._agenda.first(self._end):
                self._ended(self._end, burst)
            else:
                self._agenda.early(self._end, self._ended, burst)

    def _ended(self, time: int, burst: Accepted) -> None:
        """The last beat of ``burst`` moved at ``time``; goes on with bursts that end before anything else happens."""
        agenda = self._agenda
        if burst is not self._current or time != self._end:
            return  # it was interrupted
        while True:
            _, _, write, served, subject, client, _, _, failed = burst
            client.moved = time
            self.failed = failed
            if failed:
                self._answered()
            self._write_next = not write
            self._free = time + 1
            if self.served is not None:
                self.served.append((time, write, 0 if write else self._held_up))
            held = self._registers[write]
            if held is not None:
                self._refill(self._accept(time, write, held), write)
            self._current = None
            if self._interrupted is None:
                self._serve(time + 1)
                served(time, subject)
                self.resumed = 0
            else:
                self._current, self._end, left = self._interrupted
                self._interrupted = None
                served(time, subject)
                self.resumed = left
            following = self._current
            if following is None:
                return
            time, burst = self._end, following
            if not agenda.first(time):
                agenda.early(time, self._ended, burst)
                return

    def _has_room(self, write: bool) -> bool:
        return len(self._queues[write]) < DRAM_QUEUE_BURSTS

    def _refill(self, time: int, write: bool) -> None:
        """What was in the register entered the queue at ``time``, and filled it: one that waits takes its place."""
        self._registers[write] = None
        waiting = self._waiting[write]
        if not waiting:
            return
        events = self._events
        if events and events[0][0] <= time:
            self._choose_at(time, write)
            return
        held = waiting.pop() if len(waiting) == 1 and waiting[0][1] <= time else self._chosen(time, write)
        if held is not None:
            self._registers[write] = held
            client = held[0]
            self._last[write] = client.port
            at = time + AXI_STAGE
            if self.log is not None:
                self._note(at, held, write)
            client.accepted(at)

    def _note(self, at: int, held: Request, write: bool) -> None:
        """Keep that a burst was accepted."""
        assert self.log is not None
        client, offered, address, beats, _, subject, pause, _ = held
        line = address >> self._row_shift
        bank, row = line & self._bank_mask, line >> self._bank_bits
        self.log.append((client, subject, offered, at, bank, row, beats, write, pause))
