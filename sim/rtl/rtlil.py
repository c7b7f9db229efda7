"""Hands netlists over from Amaranth to Yosys, as RTLIL text. Only cross-checks, waveforms, Verilog and the way to an
FPGA need it."""

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import amaranth
from amaranth.back import rtlil
from amaranth.hdl import Format, Fragment, IOPort, Signal, Value, _ir as ir, _nir as nir
from amaranth.hdl._ast import Operator, Slice
from amaranth.lib import wiring

_OURS = Path(__file__).parents[2]
_SELDOM = 1_000_000  #: objects more, until garbage is collected while a netlist is made, which is hardly any


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


class _DescriptiveEmitter(_SparseModuleEmitter):
    """Tells the fields of a signal in an attribute of its wire, where Amaranth makes a wire of each field."""

    def emit_signal_fields(self) -> None:
        for signal, name in self.module.signal_names.items():
            ranges = ((path, f"{high}:{low}" if high > low else high) for path, high, low in fields_of(signal))
            fields = ", ".join(f"{path}[{bits}]" for path, bits in ranges)
            if fields:
                self.sigport_wires[name][0].attribute("fields", fields)


def fields_of(signal: Signal) -> list[tuple[str, int, int]]:
    """Return the fields of ``signal`` that have bits, with those of structures inside: path, highest and lowest bit."""
    found: list[tuple[str, int, int]] = []

    def collect(path: str, shape: Format | Format.Struct | Format.Array | Format.Enum) -> None:
        if isinstance(shape, Format.Struct):
            for name, inner in shape._fields.items():
                collect(f"{path}.{name}" if path else name, inner)
        elif isinstance(shape, Format.Array):
            for index, inner in enumerate(shape._fields):
                collect(f"{path}[{index}]", inner)
        elif path:
            values = [shape._value] if isinstance(shape, Format.Enum) else _formatted(shape)
            start = _start(values[0], signal) if len(values) == 1 else None
            if start is not None and len(values[0]):
                found.append((path, start + len(values[0]) - 1, start))

    collect("", signal._format)
    return found


def _formatted(shape: Format) -> list[Value]:
    return [chunk[0] for chunk in shape._chunks if not isinstance(chunk, str)]


def _start(value: Value, signal: Signal) -> int | None:
    """Return where in ``signal`` the part ``value`` of it begins, or None if it is no such part."""
    if value is signal:
        return 0
    if isinstance(value, Slice):
        outer = _start(value.value, signal)
        return None if outer is None else outer + value.start
    if isinstance(value, Operator) and value.operator in ("u", "s"):
        return _start(value.operands[0], signal)
    return None


def to_rtlil(
    component: wiring.Component,
    *,
    name: str,
    clock: Signal | None = None,
    pads: Mapping[str, IOPort] | None = None,
    separator: str = "__",
    sources: bool = False,
    described: bool = False,
) -> str:
    """Return the RTLIL of ``component`` with its members as ports (``a__b`` for member ``b`` of interface ``a``).

    ``clock`` becomes the input ``clk``, for a component that defines its own domain; otherwise ``clk`` and ``rst``
    are added. ``pads`` are ports of both directions, by name. The component must not have been elaborated before.

    The text depends on the design alone, the same in every process; with ``sources`` it says which lines of the source
    each part comes from. A field of a signal is a wire of its own, or with ``described`` part of what an attribute of
    the signal says. Memory rows beyond the last initial value that is not zero are left undefined; CXXRTL makes them
    zero.
    """
    ports: dict = {}
    if clock is not None:
        ports["clk"] = (clock, ir.PortDirection.Input)
    for path, member, value in component.signature.flatten(component):
        direction = ir.PortDirection.Input if member.flow == wiring.In else ir.PortDirection.Output
        ports[separator.join(map(str, path))] = (Value.cast(value), direction)
    ports |= {name: (pad, ir.PortDirection.Inout) for name, pad in (pads or {}).items()}
    with _seldom_collected():
        text = _text(ir.build_netlist(Fragment.get(component, None), ports=ports, name=name), sources, described)
    if sources:
        for folder in (Path(amaranth.__file__).parents[1], _OURS):  # one may lie in the other
            text = text.replace(f'"{folder}/', '"').replace(f"|{folder}/", "|")
    return text


def _text(netlist: nir.Netlist, sources: bool, described: bool) -> str:
    empty = rtlil.EmptyModuleChecker(netlist)
    design = rtlil.Design(emit_src=sources)
    names = ir._ast.SignalDict()
    emitter = _DescriptiveEmitter if described else _SparseModuleEmitter
    for index, module in enumerate(netlist.modules):
        if empty.is_empty(index):
            continue
        builder = design.module(".".join(module.name), src_loc=module.src_loc)
        if index == 0:
            builder.attribute("top", 1)
        emitter(builder, netlist, module, names, empty_checker=empty).emit()
    return str(design)


@contextmanager
def _seldom_collected() -> Iterator[None]:
    """Let everything inside make many objects that stay: to look through them again and again takes a third of the
    time."""
    thresholds = gc.get_threshold()
    gc.set_threshold(_SELDOM, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
