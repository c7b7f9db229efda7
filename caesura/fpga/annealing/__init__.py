"""Moves the cells of a placed design about until its long paths are short, and its wires are fewer.

nextpnr has a placer that places a large design so that it can be routed, and knows no clock; the other one knows it,
and what it places is not routed. So a placement of the first is annealed: cells are moved to where those lie that they
are joined to, each by itself or with what it must stay with, always if that makes things better, and while it is hot
now and then if it makes them worse. What counts are the lengths of wires; the time of wires on long paths, by the
delays that the router will reach (nextpnr's own estimate, less for wires that are long); and wires and joined cells
where there are more than the part has room for. Moves keep what nextpnr asks of a tile of logic:

* eight halves hold a look-up table and a register each; a register that takes what a table gives stays with it;
* the two registers of a slice (two halves) have one enable; those of a tile have one clock and one reset;
* carry chains, RAM and tables of six inputs and more move with their tiles, chains from tile to tile along a row. Or
  they are moved alone, and other cells make room for them.

Blocks of memory, multipliers and pins stay where they are, and so does what keeps rows empty.
"""

from pathlib import Path

from caesura.fpga.annealing.schedule import annealed as annealed

#: All that an annealed placement depends on, beside the placement.
DEPENDS_ON = tuple(path.read_text() for path in sorted(Path(__file__).parent.glob("*.*")) if path.is_file())
