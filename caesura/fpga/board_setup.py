"""Decides what a board's top is made with: its clock, the line to the host, its memory."""

from dataclasses import dataclass

from caesura import api
from caesura.fpga.boards import Part, cycles_per_bit
from caesura.fpga.pll import Pll, pll
from hw.contract.sdram import SIZE, SdramTiming

#: What the memory of a board can be; the first that has room is taken.
MEMORIES = BLOCK_RAM, SDRAM = ("block", "sdram")


@dataclass(frozen=True)
class BoardSetup:
    """Is what a board's top is made with: its ``clock`` in MHz, made by a ``pll`` where it is not the oscillator's, a
    line of ``baud``, and one of ``MEMORIES``."""

    clock: float
    baud: int
    memory: str = BLOCK_RAM
    pll: Pll | None = None

    @property
    def divisor(self) -> int:
        """Return the cycles per bit of the line; errors as of :func:`caesura.fpga.boards.cycles_per_bit`."""
        return cycles_per_bit(self.clock, self.baud)

    @property
    def sdram(self) -> SdramTiming | None:
        """Return the times of the memory's chip, None for block RAM. Raises :class:`caesura.api.UsageError` for a clock
        that no chip works at."""
        try:
            return SdramTiming.at(self.clock) if self.memory == SDRAM else None
        except ValueError as error:
            raise api.UsageError(str(error)) from None


def board_setup(
    name: str, part: Part, dram_bytes: int, baud: int, memory: str | None = None, clock: float | None = None
) -> BoardSetup:
    """Return the setup of a machine with ``dram_bytes`` on the board ``name``, whose part is ``part``: with ``memory``
    and ``clock`` where they are asked for. Raises :class:`caesura.api.UsageError` for what there cannot be."""
    made = part.oscillator if clock is None else clock
    source = None if made == part.oscillator else pll(part.oscillator, made)
    setup = BoardSetup(made, baud, _memory(name, part, dram_bytes, memory), source)
    _ = setup.divisor, setup.sdram  # they raise here what there cannot be
    return setup


def _memory(name: str, part: Part, dram_bytes: int, asked: str | None) -> str:
    """Return which memory holds ``dram_bytes``: the one that is ``asked`` for, else the first that has room."""
    if asked is not None and asked not in MEMORIES:
        raise api.UsageError(f"--memory {asked}: must be {' or '.join(MEMORIES)}")
    if asked == SDRAM and not part.sdram:
        raise api.UsageError(f"no SDRAM is known of {name}: leave out --memory, or choose a board as ulx3s-85f")
    rooms = {BLOCK_RAM: part.block_ram, SDRAM: SIZE if part.sdram else 0}
    usable = {kind: room for kind, room in rooms.items() if asked in (None, kind)}
    for kind, room in usable.items():
        if dram_bytes <= room:
            return kind
    raise api.UsageError(
        f"the memory of {name} ({part.device}) has at most {max(usable.values()):,} bytes: dram_bytes is "
        f"{dram_bytes:,}; choose less, such as --set dram_bytes=256KiB"
    )
