"""Puts a board's top on its pins: oscillator, serial line, an SDRAM chip, and a reset of its own."""

from amaranth.hdl import ClockDomain, ClockSignal, Instance, IOPort, Module, ResetSignal, Signal
from amaranth.lib import wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out

from caesura.fpga.board_setup import BoardSetup
from hw.board import BoardTop, SdramPins
from hw.contract.params import SocParams
from hw.contract.sdram import DATA_BYTES

#: Ports to an SDRAM chip as :mod:`caesura.fpga.boards` calls them, beside its data, by the member of ``SdramPins``;
#: those that are always the same.
_SDRAM = {"ras": "ras_n", "cas": "cas_n", "we": "we_n", "ba": "ba", "a": "a", "dqm": "dqm"}
_SDRAM_FIXED = {"cs": 0, "clk_en": 1}
_RESET = 16  #: cycles of reset after the part was configured


class BoardPins(wiring.Component):
    """Is what a bitstream holds that is used on a board: machine, memory and serial line of
    :class:`hw.board.top.BoardTop`, at the clock of the oscillator or of a PLL, as ``setup`` says. Nothing resets it
    from outside: it resets itself in its first cycles, which a register counts that configuration sets to zero, and
    while a PLL has not found its clock, or has lost it.

    Errors are those of ``setup``, and of :class:`hw.board.top.BoardTop`.

    Members: ``rx``: In(1), ``tx``: Out(1), and with an SDRAM chip ``sdram_clk``, ``sdram_ras`` and so on: Out.
    ``clock`` is the oscillator's, ``pads`` are the ports that are neither inputs nor outputs, by name.
    """

    def __init__(self, params: SocParams, setup: BoardSetup) -> None:
        self._board, self._pll = BoardTop(params, setup.divisor, setup.sdram), setup.pll
        self.clock = Signal(name="clk")
        self.pads: dict[str, IOPort] = {}
        chip = {}
        if setup.sdram is not None:
            self.pads["sdram_dq"] = IOPort(8 * DATA_BYTES, name="sdram_dq")
            chip = {f"sdram_{name}": Out(1) for name in ("clk", *_SDRAM_FIXED)}
            chip |= {f"sdram_{name}": SdramPins().members[member] for name, member in _SDRAM.items()}
        super().__init__({"rx": In(1, init=1), "tx": Out(1, init=1), **chip})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.domains.sync = ClockDomain()
        m.domains.power = ClockDomain(reset_less=True)
        m.submodules.machine = board = self._board
        cycles = Signal(range(_RESET + 1))
        clock, locked = self.clock, None
        if self._pll is not None:
            clock, locked = Signal(name="made"), Signal()
            m.submodules.pll = self._pll.instance(self.clock, clock, locked)
        m.d.comb += [
            ClockSignal().eq(clock), ClockSignal("power").eq(clock), ResetSignal().eq(cycles != _RESET),
            board.rx.eq(self.rx), self.tx.eq(board.tx),
        ]  # fmt: skip
        with m.If(cycles != _RESET):
            m.d.power += cycles.eq(cycles + 1)
        if locked is not None:
            steady = Signal()
            m.submodules.synchroniser = FFSynchronizer(locked, steady, o_domain="power")
            with m.If(~steady):
                m.d.power += cycles.eq(0)
        if self.pads:
            self._join_sdram(m, board.sdram)
        return m

    def _join_sdram(self, m: Module, chip: SdramPins) -> None:
        """Join the pins of the chip, whose clock is the inverted one: a pin that is low, then high in each cycle."""
        m.submodules.sdram_clk = Instance(
            "ODDRX1F", i_D0=0, i_D1=1, i_SCLK=ClockSignal(), i_RST=0, o_Q=self.sdram_clk
        )  # fmt: skip
        m.d.comb += [getattr(self, f"sdram_{name}").eq(getattr(chip, member)) for name, member in _SDRAM.items()]
        m.d.comb += [getattr(self, f"sdram_{name}").eq(value) for name, value in _SDRAM_FIXED.items()]
        for bit, pad in enumerate(self.pads["sdram_dq"]):
            m.submodules[f"sdram_dq{bit}"] = Instance(
                "TRELLIS_IO", p_DIR="BIDIR", io_B=pad, i_I=chip.dq_o[bit], i_T=~chip.drive, o_O=chip.dq_i[bit]
            )
