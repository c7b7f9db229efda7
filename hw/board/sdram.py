"""Defines the controller of an SDRAM chip: it makes commands of reads and writes of single words."""

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.contract.sdram import (
    ALL_BANKS,
    BANK_BITS,
    BURST,
    CAS_LATENCY,
    COLUMN_BITS,
    DATA_BYTES,
    FIRST_REFRESHES,
    MODE,
    ROW_BITS,
    SdramCommand,
    SdramTiming,
)

WORD_BYTES = BURST * DATA_BYTES
_DATA = 8 * DATA_BYTES
#: Of registers that lie at the pins themselves, so that how long the way to the chip takes does not depend on where
#: tools put them.
_AT_PINS = {"syn_useioff": 1}
_BURST_BITS = (BURST - 1).bit_length()
#: Cycles from a read to a write: the data pins are silent for one in between.
_TURN = CAS_LATENCY + BURST + 1
#: Cycles from deciding to read to having the last data: two registers, at the pins and before them.
_FLIGHT = CAS_LATENCY + BURST
#: Where a word is. Rows of the four banks lie one behind the other.
ADDRESS = data.StructLayout({"column": COLUMN_BITS - _BURST_BITS, "bank": BANK_BITS, "row": ROW_BITS})
#: What is asked for; ``tag`` comes back with what was read.
REQUEST = data.StructLayout({"write": 1, "addr": ADDRESS, "data": 8 * WORD_BYTES, "en": WORD_BYTES, "tag": 1})


class SdramPins(wiring.Signature):
    """Carries what the pins of the chip carry, seen from the controller, at their polarity. ``dq_o`` goes out while
    ``drive`` is high. The chip's clock is the machine's, inverted: it looks at the pins in the middle of a cycle, and
    what a read of cycle ``c`` finds first is on ``dq_i`` at the end of cycle ``c + 1``."""

    def __init__(self) -> None:
        super().__init__(
            {
                "ras_n": Out(1, init=1), "cas_n": Out(1, init=1), "we_n": Out(1, init=1), "ba": Out(BANK_BITS),
                "a": Out(ROW_BITS), "dqm": Out(DATA_BYTES), "drive": Out(1), "dq_o": Out(_DATA), "dq_i": In(_DATA),
            }
        )  # fmt: skip


class SdramController(wiring.Component):
    """Keeps a row of each bank open until another is asked for. When it is time it refreshes, between two words.

    Parameters
    ----------
    timing : SdramTiming

    Members
    -------
    request : In(stream of REQUEST)
        Done in order; what is taken has landed for all that come later.
    read_valid, read_data, read_tag : Out(1), Out(64), Out(1)
        What a read found, in order; it cannot wait.
    pins : Out(SdramPins)
    """

    def __init__(self, timing: SdramTiming) -> None:
        self._timing = timing
        super().__init__(
            {
                "request": In(stream.Signature(REQUEST)),
                "read_valid": Out(1),
                "read_data": Out(8 * WORD_BYTES),
                "read_tag": Out(1),
                "pins": Out(SdramPins()),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        timing, pins = self._timing, self.pins
        request, addr = self.request.payload, self.request.payload.addr
        command, bank, address = Signal(SdramCommand), Signal(BANK_BITS), Signal(ROW_BITS)
        m.d.comb += [command.eq(SdramCommand.NOP), bank.eq(addr.bank)]
        said = Signal(SdramCommand, init=SdramCommand.NOP, attrs=_AT_PINS)
        bank_said, address_said = Signal.like(bank, attrs=_AT_PINS), Signal.like(address, attrs=_AT_PINS)
        m.d.sync += [said.eq(command), bank_said.eq(bank), address_said.eq(address)]
        m.d.comb += [
            Cat(pins.we_n, pins.cas_n, pins.ras_n).eq(said), pins.ba.eq(bank_said), pins.a.eq(address_said)
        ]  # fmt: skip

        # Cycles that have to pass: before any command, before a row is closed, before a write.
        pause = _countdown(m, "pause", max(timing.after_refresh, timing.after_precharge, timing.to_column, BURST))
        closing = _countdown(m, "closing", max(timing.row_open, BURST + timing.after_write - 1))
        turning = _countdown(m, "turning", _TURN)

        def say(what: SdramCommand, cycles: int) -> None:
            """Say it, and nothing else for so many ``cycles``, this one among them."""
            m.d.comb += command.eq(what)
            m.d.sync += pause.eq(cycles - 1)

        waited, refreshes, running = Signal(range(timing.start + 1)), Signal(range(FIRST_REFRESHES + 1)), Signal()
        until_refresh, due = Signal(range(timing.refresh)), Signal()
        m.d.sync += until_refresh.eq(Mux(until_refresh == 0, timing.refresh - 1, until_refresh - 1))
        with m.If(until_refresh == 0):
            m.d.sync += due.eq(1)
        active = Signal(1 << BANK_BITS)  # banks that have a row open
        rows = Array(Signal(ROW_BITS, name=f"row{number}") for number in range(1 << BANK_BITS))
        is_active, reads, writes = active.bit_select(addr.bank, 1), Signal(), Signal()
        m.d.comb += self.request.ready.eq(reads | writes)

        with m.If(waited != timing.start):
            m.d.sync += waited.eq(waited + 1)
            with m.If(waited == timing.start - 1):
                say(SdramCommand.PRECHARGE, timing.after_precharge)
                m.d.comb += address[ALL_BANKS].eq(1)
        with m.Elif(pause != 0):
            pass
        with m.Elif(refreshes != FIRST_REFRESHES):
            say(SdramCommand.REFRESH, timing.after_refresh)
            m.d.sync += refreshes.eq(refreshes + 1)
        with m.Elif(~running):
            say(SdramCommand.MODE, timing.after_mode)
            m.d.comb += [address.eq(MODE), bank.eq(0)]
            m.d.sync += running.eq(1)
        with m.Elif(due & ~active.any()):
            say(SdramCommand.REFRESH, timing.after_refresh)
            m.d.sync += due.eq(0)
        with m.Elif(due):
            with m.If(closing == 0):
                say(SdramCommand.PRECHARGE, timing.after_precharge)
                m.d.comb += address[ALL_BANKS].eq(1)
                m.d.sync += active.eq(0)
        with m.Elif(~self.request.valid):
            pass
        with m.Elif(~is_active):
            say(SdramCommand.ACTIVATE, timing.to_column)
            m.d.comb += address.eq(addr.row)
            m.d.sync += [is_active.eq(1), rows[addr.bank].eq(addr.row)]
            with m.If(closing < timing.row_open):
                m.d.sync += closing.eq(timing.row_open - 1)
        with m.Elif(rows[addr.bank] != addr.row):
            with m.If(closing == 0):
                say(SdramCommand.PRECHARGE, timing.after_precharge)
                m.d.sync += is_active.eq(0)
        with m.Elif(~request.write):
            say(SdramCommand.READ, BURST)
            m.d.comb += [reads.eq(1), address.eq(addr.column << _BURST_BITS)]
            m.d.sync += turning.eq(_TURN - 1)
        with m.Elif(turning == 0):
            say(SdramCommand.WRITE, BURST)
            m.d.comb += [writes.eq(1), address.eq(addr.column << _BURST_BITS)]
            m.d.sync += closing.eq(BURST + timing.after_write - 2)  # its last data come with the fourth cycle
        self._put(m, writes)
        self._take(m, reads)
        return m

    def _put(self, m: Module, writes: Signal) -> None:
        """Put what is written on the pins, from the cycle of its command on."""
        pins, request = self.pins, self.request.payload
        rest, rest_masked = Signal(8 * WORD_BYTES - _DATA), Signal(WORD_BYTES - DATA_BYTES)
        put, masked = Signal(_DATA, attrs=_AT_PINS), Signal(DATA_BYTES, attrs=_AT_PINS)
        left = _countdown(m, "left", BURST - 1)
        m.d.sync += [
            pins.drive.eq(writes | (left != 0)),
            Cat(put, rest).eq(Mux(writes, request.data, rest)),
            Cat(masked, rest_masked).eq(Mux(writes, ~request.en, rest_masked)),
        ]
        m.d.comb += [pins.dq_o.eq(put), pins.dqm.eq(masked)]
        with m.If(writes):
            m.d.sync += left.eq(BURST - 1)

    def _take(self, m: Module, reads: Signal) -> None:
        """Take what a read finds from the pins."""
        came, before = Signal(_DATA, attrs=_AT_PINS), Signal(8 * WORD_BYTES - _DATA)
        flight, tags = Signal(_FLIGHT), Signal(_FLIGHT)
        m.d.sync += [
            came.eq(self.pins.dq_i),
            before.eq(Cat(before, came) >> _DATA),
            flight.eq(Cat(reads, flight)),
            tags.eq(Cat(self.request.payload.tag, tags)),
        ]
        m.d.comb += [self.read_valid.eq(flight[-1]), self.read_data.eq(Cat(before, came)), self.read_tag.eq(tags[-1])]


def _countdown(m: Module, name: str, most: int) -> Signal:
    """Return how many cycles are left of at most ``most``."""
    left = Signal(range(most + 1), name=name)
    with m.If(left != 0):
        m.d.sync += left.eq(left - 1)
    return left
