"""The native simulator is Amaranth's netlist as C that evaluates only what has changed."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from amaranth.hdl import _nir as nir

from sim.rtl.native.bundles import make_bundles
from sim.rtl.native.cells import Cells, NetlistError, read_cells
from sim.rtl.native.lower import lower
from sim.rtl.native.order import make_schedule
from sim.rtl.native.program import program
from sim.rtl.top import SimTop

__all__ = ["FLAGS", "GENERATOR_SOURCES", "NetlistError", "generate"]

#: Small code is fast code: what a cycle executes is larger than a cache of instructions. Functions begin where lines of
#: that cache do: otherwise two netlists that do the same differ by up to a sixth of the time.
FLAGS = ("-std=c11", "-Os", "-falign-functions=64", "-fPIC", "-fomit-frame-pointer", "-fno-stack-protector", "-w")
GENERATOR_SOURCES = tuple(
    sorted(path for path in Path(__file__).parent.iterdir() if path.suffix in (".py", ".c", ".h"))
)


def generate(top: SimTop) -> dict[str, str]:
    """Return C files (name to text) of a simulator of ``top``. Raises :class:`NetlistError` for what it cannot
    simulate."""
    with _uncollected():
        cells = read_cells(top)
        memory = _host_memory(cells)
        design = lower(cells, [memory])
        schedule = make_schedule(design, make_bundles(design))
        return program(design, schedule, memory)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Collect no garbage meanwhile: a netlist is millions of objects that all stay, and looking at them takes half of
    the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _host_memory(cells: Cells) -> int:
    """Return the cell of the DRAM's contents."""
    for index, cell in enumerate(cells.cells):
        if isinstance(cell, nir.Memory) and cells.modules[cell.module_idx] == "dram" and cell.name == "memory":
            return index
    raise NetlistError("there is no memory named 'memory' in the module 'dram'")
