"""A board's top on its pins: what constraints say of them, and its reset."""

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

from caesura.fpga import board_pins
from caesura.fpga.board_pins import BoardPins
from caesura.fpga.boards import cycles_per_bit, part
from caesura.fpga.routing import constraints
from hw.contract.params import preset
from tests.system.command import caesura_command

pytest.importorskip("amaranth_boards")


class Board(wiring.Component):
    """Sends what it hears, but for the cycles of its reset; counts the others."""

    def __init__(self, params, divisor):
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


def test_bits_are_whole_cycles():
    assert cycles_per_bit(25, 1_000_000) == 25 and cycles_per_bit(12, 115_200) == 104


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (("--serial", "--block", "lane"), "--serial is of a whole machine: leave out --block"),
        (("--serial", "--board", "orangecrab-85f"), "no serial line is known of orangecrab-85f"),
        (("--serial", "--board", "ulx3s-85f"), "LFE5U-85F has 425,984 bytes: dram_bytes is 4,194,304; choose less"),
        (("--serial", "--board", "ulx3s-85f", "--set", "dram_bytes=64KiB", "--baud", "7000000"), "no whole number of"),
        (("--serial", "--vivado", "arty-a7-100"), "leave out --serial"),
    ],
)
def test_what_cannot_be_on_a_board_is_refused(flags, told):
    code, _, err = caesura_command("fpga", "--preset", "nano", *flags)
    assert code and told in " ".join(err.split())
