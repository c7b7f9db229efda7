"""The board's netlist, in cells of the FPGA."""

from caesura.fpga import PARTS, BoardSetup, Flow, on_pins
from hw.contract.params import SocParams
from sim.gates import GateLine, GateNetlist, GateSimulator
from sim.toolchain import Stages

DIVISOR = 2  #: cycles per bit, the fewest that the UART takes
_MEGABAUD = 1_000_000  #: a line on which a cycle of a clock in MHz is a bit's part
_PART = "lfe5um5g-85f"
_SILENCE = 1000  #: cycles without a byte: longer than a response takes, and than the board waits within a request


def mapped_board(params: SocParams) -> bytes:
    """Return the board of ``params`` as a bitstream has it, after synthesis, as Yosys' JSON; it is made once and kept.
    Raises :class:`sim.toolchain.BuildError` where Yosys is not installed."""
    stages = Stages(subject="board", announcement="synthesis of the board, which is kept")
    return Flow(PARTS[_PART], 100.0, stages).mapped(on_pins(params, BoardSetup(clock=DIVISOR, baud=_MEGABAUD)))


def line_to_board(mapped: bytes) -> GateLine:
    """Return the host's end of the line to a board that has just been switched on."""
    return GateLine(GateSimulator(GateNetlist(mapped)), DIVISOR, _SILENCE)
