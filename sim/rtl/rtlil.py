"""Writes netlists as RTLIL text: the hand-over from Amaranth to Yosys."""

from amaranth.back import rtlil
from amaranth.hdl import Fragment, Signal, Value, _ir as ir, _nir as nir
from amaranth.lib import wiring


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


def to_rtlil(component: wiring.Component, *, name: str, clock: Signal | None = None, separator: str = "__") -> str:
    """Return the RTLIL of ``component`` with its members as ports (``a__b`` for member ``b`` of interface ``a``).

    ``clock`` becomes the input ``clk``, for a component that defines its own domain; otherwise ``clk`` and ``rst``
    are added. The component must not have been elaborated before.

    The text depends on the design alone: no source locations, the same in every process. Memory rows beyond the
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
    design = rtlil.Design(emit_src=False)
    names = ir._ast.SignalDict()
    for index, module in enumerate(netlist.modules):
        if empty.is_empty(index):
            continue
        builder = design.module(".".join(module.name), src_loc=module.src_loc)
        if index == 0:
            builder.attribute("top", 1)
        _SparseModuleEmitter(builder, netlist, module, names, empty_checker=empty).emit()
    return str(design)
