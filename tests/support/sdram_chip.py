"""An SDRAM chip in a simulation, which says what is done to it that no chip allows."""

import math

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hw.board.sdram import SdramPins
from hw.contract.sdram import BANK_BITS, COLUMN_BITS, DATA_BYTES, ROW_BITS, SdramCommand

_BURST = 4  #: columns, as the mode says
#: What chips ask for in nanoseconds, the slowest of their data sheets: from a command, or from the last word written.
_NANOSECONDS = {
    "close to open": 22.0, "open to access": 21.0, "open to close": 45.0, "open to open": 60.0,
    "open to another": 15.0, "written to close": 20.0, "refresh": 70.0,
}  # fmt: skip
_POWER_UP = 200_000.0  #: nanoseconds
_REFRESHED = 2 * 7812.5  #: nanoseconds, the longest without a refresh: one may come late, not two
_FIRST_REFRESHES = 8
_MODE = 0b0_00_010_0_010  #: bursts of writes, CAS latency 2, in order, four columns
_ALL = 10  #: the bit of the address with which all banks are closed
#: What is wrong, by the bit of ``wrong``.
WRONG = (
    "a command before power was up", "no precharge, too few refreshes or another mode at the start",
    "activated too early, or a row is open", "read or written too early, or no row is open", "an access cut short",
    "closed too early", "refreshed too early, or with a row open", "not refreshed for too long",
    "both sides drive the data pins", "nobody drives what is written", "what is read is masked", "an unknown command",
)  # fmt: skip
_POWER, _START, _ACTIVATED, _ACCESSED, _CUT, _CLOSED, _REFRESH, _FORGOTTEN, _BOTH, _NOBODY, _MASKED, _UNKNOWN = range(
    len(WRONG)
)


class SdramChip(wiring.Component):
    """Holds ``size`` bytes, a power of two; addresses wrap around.

    Parameters
    ----------
    clock : float
        In MHz.
    registers : int
        From a command to what it reads: 2 where its own clock is the inverted one of the controller, 1 where it is the
        same: half a cycle later in and half a cycle later out make a cycle.

    Members
    -------
    pins : In(SdramPins)
    wrong : Out(len(WRONG))
        What has ever been wrong.
    reads, refreshes, activates : Out(32)
        How often.
    """

    def __init__(self, size: int, clock: float, registers: int) -> None:
        self._size, self._clock, self._registers = size, clock, registers
        self._most = max(map(self._cycles, _NANOSECONDS.values())) + _BURST
        counts = {name: Out(32) for name in ("reads", "refreshes", "activates")}
        super().__init__({"pins": In(SdramPins()), "wrong": Out(len(WRONG)), **counts})

    def _cycles(self, nanoseconds: float) -> int:
        return math.ceil(nanoseconds * self._clock / 1000)

    def elaborate(self, platform) -> Module:
        m = Module()
        pins, banks = self.pins, range(1 << BANK_BITS)
        command = Signal(SdramCommand, init=SdramCommand.NOP)
        m.d.comb += command.eq(Cat(pins.we_n, pins.cas_n, pins.ras_n))
        says = {one: Signal(init=one == SdramCommand.NOP, name=f"says_{one.name}") for one in SdramCommand}
        m.d.comb += [says[one].eq(command == one) for one in SdramCommand]
        wrong = Signal.like(self.wrong)
        m.d.sync += self.wrong.eq(self.wrong | wrong)
        for count, one in (
            (self.reads, SdramCommand.READ),
            (self.refreshes, SdramCommand.REFRESH),
            (self.activates, SdramCommand.ACTIVATE),
        ):
            m.d.sync += count.eq(count + says[one])
        m.d.comb += wrong[_UNKNOWN].eq(~Cat(says.values()).any())
        ready = self._start(m, says, wrong)
        rows = Array(Signal(ROW_BITS, name=f"row{bank}") for bank in banks)
        written = self._data(m, says, rows, wrong)
        self._times(m, says, rows, written, ready, wrong)
        return m

    def _start(self, m: Module, says, wrong: Signal) -> Signal:
        """Watch what comes before the first access; returns whether it is over."""
        pins = self.pins
        time, precharged, refreshes, ready = Signal(32), Signal(), Signal(range(_FIRST_REFRESHES + 1)), Signal()
        m.d.sync += time.eq(time + 1)
        m.d.comb += wrong[_POWER].eq((time < self._cycles(_POWER_UP)) & ~says[SdramCommand.NOP])
        with m.If(says[SdramCommand.PRECHARGE] & pins.a[_ALL]):
            m.d.sync += precharged.eq(1)
        with m.If(says[SdramCommand.REFRESH] & (refreshes != _FIRST_REFRESHES)):
            m.d.sync += refreshes.eq(refreshes + 1)
        with m.If(says[SdramCommand.MODE]):
            m.d.sync += ready.eq(1)
            too_few = ~precharged | (refreshes != _FIRST_REFRESHES)
            m.d.comb += wrong[_START].eq(too_few | (pins.a != _MODE) | (pins.ba != 0) | ready)
        with m.Elif(says[SdramCommand.READ] | says[SdramCommand.WRITE] | says[SdramCommand.ACTIVATE]):
            m.d.comb += wrong[_START].eq(~ready)
        return ready

    def _since(self, m: Module, name: str, event) -> Signal:
        """Return the cycles since ``event``, 1 in the next one."""
        passed = Signal(range(self._most + 2), init=self._most + 1, name=f"since_{name}")
        with m.If(event):
            m.d.sync += passed.eq(1)
        with m.Elif(passed != self._most + 1):
            m.d.sync += passed.eq(passed + 1)
        return passed

    def _early(self, passed: Signal, name: str, cycles: int = 0) -> Value:
        return passed < max(cycles, self._cycles(_NANOSECONDS[name]))

    def _times(self, m: Module, says, rows, written, ready, wrong: Signal) -> None:
        """Keep the rows, and watch the times between commands."""
        pins, banks, early = self.pins, range(1 << BANK_BITS), self._early
        accesses = says[SdramCommand.READ] | says[SdramCommand.WRITE]
        here = [pins.ba == bank for bank in banks]
        closes = [says[SdramCommand.PRECHARGE] & (one | pins.a[_ALL]) for one in here]
        active = Signal(len(banks))
        closed = [self._since(m, f"closed{bank}", event) for bank, event in enumerate(closes)]
        opened = [self._since(m, f"opened{bank}", says[SdramCommand.ACTIVATE] & here[bank]) for bank in banks]
        landed = [self._since(m, f"landed{bank}", event) for bank, event in enumerate(written)]
        any_opened = self._since(m, "opened", says[SdramCommand.ACTIVATE])
        accessed = self._since(m, "accessed", accesses)
        settled = ~early(self._since(m, "refreshed", says[SdramCommand.REFRESH]), "refresh") & (
            self._since(m, "mode", says[SdramCommand.MODE]) >= 2
        )
        for bank in banks:
            with m.If(says[SdramCommand.ACTIVATE] & here[bank]):
                m.d.sync += [rows[bank].eq(pins.a), active[bank].eq(1)]
                m.d.comb += wrong[_ACTIVATED].eq(
                    active[bank] | early(closed[bank], "close to open") | early(opened[bank], "open to open")
                    | early(any_opened, "open to another") | ~settled
                )  # fmt: skip
            with m.If(accesses & here[bank]):
                m.d.comb += wrong[_ACCESSED].eq(~active[bank] | early(opened[bank], "open to access") | pins.a[_ALL])
            with m.If(closes[bank]):
                m.d.sync += active[bank].eq(0)
                too_early = early(opened[bank], "open to close") | early(landed[bank], "written to close", 2)
                with m.If(active[bank] & (too_early | (accessed < _BURST))):
                    m.d.comb += wrong[_CLOSED].eq(1)
        m.d.comb += wrong[_CUT].eq(accesses & (accessed < _BURST))
        with m.If(says[SdramCommand.REFRESH]):
            m.d.comb += wrong[_REFRESH].eq(
                active.any() | Cat(early(one, "close to open") for one in closed).any() | ~settled
            )
        longest = int(_REFRESHED * self._clock / 1000)
        waited = Signal(range(longest + 2))
        with m.If(says[SdramCommand.REFRESH] | ~ready):
            m.d.sync += waited.eq(0)
        with m.Elif(waited != longest + 1):
            m.d.sync += waited.eq(waited + 1)
        m.d.comb += wrong[_FORGOTTEN].eq(waited > longest)

    def _data(self, m: Module, says, rows, wrong: Signal) -> list[Signal]:
        """Read and write, beat after beat from the command on; returns for each bank whether it is written."""
        pins = self.pins
        m.submodules.words = words = Memory(shape=8 * DATA_BYTES, depth=self._size // DATA_BYTES, init=[])
        read, write = words.read_port(), words.write_port(granularity=8)
        accesses = says[SdramCommand.READ] | says[SdramCommand.WRITE]
        at, writing, left = Signal(COLUMN_BITS + BANK_BITS + ROW_BITS), Signal(), Signal(range(_BURST))
        place, runs, writes = Signal.like(at), Signal(), Signal()
        m.d.comb += [
            runs.eq(accesses | (left != 0)),
            writes.eq(runs & Mux(accesses, says[SdramCommand.WRITE], writing)),
            place.eq(
                Mux(accesses, Cat(pins.a[:COLUMN_BITS], pins.ba, rows[pins.ba]), Cat((at[:2] + 1)[:2], at[2:]))
            ),
            write.addr.eq(place), write.data.eq(pins.dq_o), write.en.eq(Mux(writes, ~pins.dqm, 0)),
        ]  # fmt: skip
        with m.If(runs):
            m.d.sync += at.eq(place)
        with m.If(accesses):
            m.d.sync += [writing.eq(says[SdramCommand.WRITE]), left.eq(_BURST - 1)]
        with m.Elif(left != 0):
            m.d.sync += left.eq(left - 1)
        m.d.comb += wrong[_MASKED].eq(runs & ~writes & pins.dqm.any())

        reads, driving = runs & ~writes, Signal()
        for number in range(self._registers - 1):
            next_place, next_reads = Signal.like(place, name=f"place{number}"), Signal(name=f"reads{number}")
            m.d.sync += [next_place.eq(place), next_reads.eq(reads)]
            place, reads = next_place, next_reads
        m.d.sync += driving.eq(reads)
        m.d.comb += [
            read.addr.eq(place), pins.dq_i.eq(Mux(driving, read.data, 0xDEAD)),
            wrong[_BOTH].eq(pins.drive & (driving | reads)), wrong[_NOBODY].eq(writes & ~pins.drive),
        ]  # fmt: skip
        bank = Mux(accesses, pins.ba, at[COLUMN_BITS : COLUMN_BITS + BANK_BITS])
        return [writes & (bank == one) for one in range(1 << BANK_BITS)]
