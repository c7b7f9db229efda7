"""Fetches job descriptors from the job ring into the local slots, by a port that the loader has a share of."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hw.block_ram import BLOCK_RAM, NO_COLLISION
from hw.contract.isa import INSN_BYTES, LV2_SEGMENTS, SEGMENTS
from hw.contract.job import JOB, JOB_MAGIC, SEMAPHORES, Fault, JobFlag
from hw.contract.params import SocParams
from hw.control.fetch import burst_words
from hw.control.signatures import (
    HEADER_BITS,
    HEADER_WORDS,
    SEGMENT,
    JobRingControl,
    Slots,
    StoredJobs,
    member,
    word_of,
)
from hw.interfaces import ADDR, PC, BusReadPort

BURSTS = 32  #: bursts in flight


class ReadShare(wiring.Component):
    """Merges two :class:`~hw.interfaces.BusReadPort` clients; the first has priority. Data returns in request order.

    Members
    -------
    client : In(BusReadPort).array(2)
    bus : Out(BusReadPort)
    """

    def __init__(self, params: SocParams) -> None:
        port = BusReadPort(params)
        super().__init__({"client": In(port).array(2), "bus": Out(port)})

    def elaborate(self, platform) -> Module:
        m = Module()
        first, second = self.client[0], self.client[1]
        m.submodules.owners = owners = SyncFIFOBuffered(width=1, depth=BURSTS)

        # A request that was offered stays offered until the bus takes it.
        held, held_choice, choice = Signal(), Signal(), Signal()
        request = self.bus.req
        m.d.comb += [
            choice.eq(Mux(held, held_choice, ~first.req.valid)),
            request.valid.eq((first.req.valid | second.req.valid) & owners.w_rdy),
            request.payload.eq(Mux(choice, second.req.payload, first.req.payload)),
            first.req.ready.eq(request.ready & owners.w_rdy & ~choice),
            second.req.ready.eq(request.ready & owners.w_rdy & choice),
            owners.w_en.eq(request.valid & request.ready),
            owners.w_data.eq(choice),
        ]
        m.d.sync += [held.eq(request.valid & ~request.ready), held_choice.eq(choice)]

        beat = self.bus.data
        m.d.comb += [
            first.data.payload.eq(beat.payload),
            second.data.payload.eq(beat.payload),
            first.data.valid.eq(beat.valid & owners.r_rdy & ~owners.r_data),
            second.data.valid.eq(beat.valid & owners.r_rdy & owners.r_data),
            beat.ready.eq(owners.r_rdy & Mux(owners.r_data, second.data.ready, first.data.ready)),
            owners.r_en.eq(beat.valid & beat.ready & beat.payload.last),
        ]
        return m


_WORDS = JOB.size // 8
_KNOWN_FLAGS = sum(JobFlag)


class JobRing(wiring.Component):
    """Keeps up to ``job_slots`` descriptors, fetched in ring order, until they are released.

    Every descriptor is checked once, here. The first that is bad (or could not be read) stops the ring: jobs before
    it are unaffected.

    Members
    -------
    bus : Out(BusReadPort)
    enable, halt : In(1)
        Fetching starts only with ``enable`` and without ``halt``.
    control : In(JobRingControl)
        A tail before ``fetched`` becomes ``fetched``: what was fetched cannot be revoked.
    stored : Out(StoredJobs)
        ``bad_code``: DESCRIPTOR or BUS.
    released : In(32)
        Jobs whose slot is free again.
    load_slots, run_slots : In(Slots)
        Read ports for the loader and the executor.
    quiet : Out(1)
        No transaction is outstanding.
    """

    def __init__(self, params: SocParams) -> None:
        self.params = params
        super().__init__(
            {
                "bus": Out(BusReadPort(params)),
                "enable": In(1),
                "halt": In(1),
                "control": In(JobRingControl()),
                "stored": Out(StoredJobs()),
                "released": In(32),
                "load_slots": In(Slots(params)),
                "run_slots": In(Slots(params)),
                "quiet": Out(1),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        begin = Signal()
        self._doorbell(m, begin)
        word, valid, error, taken = self._transfer(m, begin)

        # 64-bit words arrive in order: store what is needed, check on the way.
        number = Signal(range(_WORDS))
        flaw, base = Signal(), Signal(64)
        wrong, last = Signal(), Signal()
        slot = self.stored.count[: self.params.job_slot_bits]
        m.submodules.headers = headers = Memory(
            shape=64, depth=self.params.job_slots * HEADER_WORDS, init=[], attrs=NO_COLLISION
        )
        rows = self.params.job_slots * SEGMENTS
        m.submodules.segments = segments = Memory(shape=SEGMENT, depth=rows, init=[], attrs=BLOCK_RAM | NO_COLLISION)
        readers = (self.load_slots, self.run_slots)
        for memory, ports in (
            (headers, [slots.header for slots in readers]),
            (segments, [port for slots in readers for port in (slots.src, slots.dst)]),
        ):
            for port in ports:
                read = memory.read_port()
                m.d.comb += [read.addr.eq(port.addr), port.data.eq(read.data)]
        header_write, segment_write = headers.write_port(), segments.write_port()
        m.d.comb += [
            taken.eq(valid),
            wrong.eq(self._wrong(number, word, base)),
            last.eq(number == _WORDS - 1),
            header_write.addr.eq(Cat(number[:HEADER_BITS], slot)),
            header_write.data.eq(word),
            header_write.en.eq(valid & (number < HEADER_WORDS)),
            segment_write.addr.eq(Cat(number[1:4], slot)),
            segment_write.data.base.eq(base),
            segment_write.data.limit.eq(word),
            segment_write.en.eq(valid & number[0] & (number >= word_of("base0"))),
        ]
        with m.If(valid):
            m.d.sync += [number.eq(number + 1), base.eq(word), flaw.eq((flaw | wrong) & ~last)]
            with m.If(error):
                m.d.sync += [self.stored.bad.eq(1), self.stored.bad_code.eq(Fault.BUS)]
            with m.Elif(last & ~self.stored.bad):
                with m.If(flaw | wrong):
                    m.d.sync += [self.stored.bad.eq(1), self.stored.bad_code.eq(Fault.DESCRIPTOR)]
                with m.Else():
                    m.d.sync += self.stored.count.eq(self.stored.count + 1)

        fetching = Signal()
        m.d.comb += self.quiet.eq(~fetching)
        with m.If(begin):
            m.d.sync += fetching.eq(1)
        with m.Elif(valid & last):
            m.d.sync += fetching.eq(0)
        m.d.comb += begin.eq(
            self.enable & ~self.halt & ~self.stored.bad & ~fetching & (self.control.fetched != self.control.tail)
            & (self.control.fetched - self.released != self.params.job_slots)
        )  # fmt: skip
        return m

    def _doorbell(self, m: Module, begin: Signal) -> None:
        fetched = Signal(32)
        m.d.comb += fetched.eq(self.control.fetched + begin)
        m.d.sync += self.control.fetched.eq(fetched)
        with m.If(self.control.tail_stb):
            revoked_too_late = (self.control.tail_data - fetched)[31]
            m.d.sync += self.control.tail.eq(Mux(revoked_too_late, fetched, self.control.tail_data))

    def _transfer(self, m: Module, begin: Signal):
        """Bursts that read one descriptor, cut into 64-bit words: returns (word, valid, error, taken)."""
        beat_bytes = self.params.dram_word
        beats = JOB.size // beat_bytes
        chunk = burst_words(self.params, JOB.size)
        request = self.bus.req
        bursts_left = Signal(range(beats // chunk + 1))
        place = self.control.fetched[:15] & ~((~0 << self.control.size_log2)[:15])
        with m.If(begin):
            m.d.sync += [
                request.valid.eq(1),
                request.payload.addr.eq(self.control.base + (place << 8)),
                request.payload.beats.eq(chunk),
                bursts_left.eq(beats // chunk - 1),
            ]
        with m.Elif(request.valid & request.ready):
            m.d.sync += [
                request.valid.eq(bursts_left != 0),
                request.payload.addr.eq(request.payload.addr + chunk * beat_bytes),
                bursts_left.eq(bursts_left - 1),
            ]

        # A buffer for a whole descriptor, so that the bus never waits for it.
        m.submodules.buffer = buffer = SyncFIFOBuffered(width=8 * beat_bytes + 1, depth=beats)
        part = Signal(range(beat_bytes // 8)) if beat_bytes > 8 else Signal(0)
        taken = Signal()
        m.d.comb += [
            self.bus.data.ready.eq(buffer.w_rdy),
            buffer.w_en.eq(self.bus.data.valid),
            buffer.w_data.eq(Cat(self.bus.data.payload.data, self.bus.data.payload.error)),
            buffer.r_en.eq(taken & (part == beat_bytes // 8 - 1)),
        ]
        with m.If(taken):
            m.d.sync += part.eq(part + 1)
        word = Signal(64)
        m.d.comb += word.eq(buffer.r_data[:-1].word_select(part, 64))
        return word, buffer.r_rdy, buffer.r_data[-1], taken

    def _wrong(self, number: Signal, word, base: Signal):
        """Whether 64-bit word ``number`` of a descriptor is invalid; ``base`` is the word before it."""
        flags = member(word, "flags")
        checks: dict[int, list] = {n: [] for n in range(_WORDS)}
        checks[word_of("magic")] += [member(word, "magic") != JOB_MAGIC, (flags & ~_KNOWN_FLAGS & 0xFFFF) != 0]
        for name in ("body_pc", "prologue_pc"):
            checks[word_of(name)].append(member(word, name)[PC:].any())
        for name in ("wait0_id", "wait1_id", "signal_id"):
            checks[word_of(name)].append(member(word, name) >= self.params.events)
        checks[word_of("base0")].append((word % INSN_BYTES) != 0)
        for i in range(SEGMENTS):
            end = base[:ADDR] + member(word, f"limit{i}")
            size = self.params.lv2_bytes if i in LV2_SEGMENTS else 1 << ADDR
            checks[word_of(f"base{i}")].append(word[ADDR:].any())
            checks[word_of(f"limit{i}")].append(end > size)
        for i in range(SEMAPHORES):
            largest = self.params.semaphore_max if i < self.params.semaphores else 0
            checks[word_of(f"sem{i}")].append(member(word, f"sem{i}") > largest)
        result = 0
        for n, problems in checks.items():
            if problems:
                result |= (number == n) & Cat(problems).any()
        return result
