"""Turns a netlist into a design: its registers, ports and memories, and the operations between them."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from amaranth.hdl import _nir as nir

from sim.rtl.native.bits import Piece, Word, constant_of, sliced, width_of
from sim.rtl.native.cells import TOP, Cells, NetlistError
from sim.rtl.native.combinational import Combinational
from sim.rtl.native.nodes import Builder, Design, Flop, MemoryNode, MemoryReadPort, MemoryWritePort, Register
from sim.rtl.native.slices import slices


def lower(cells: Cells, kept: list[int]) -> Design:
    """Return the design of ``cells``; the memories ``kept`` (cell numbers) are looked at from outside."""
    return _Lowering(cells, kept).design()


@contextmanager
def _deep_recursion() -> Iterator[None]:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(1_000_000)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


class _Lowering:
    def __init__(self, cells: Cells, kept: list[int]) -> None:
        self._cells = cells
        self._slices = slices(cells, cells.outputs.values(), kept)
        self._words = Combinational(cells, self._slices)

    def design(self) -> Design:
        cells, words = self._cells, self._words
        inputs = {name: words.input(name, port) for name, port in cells.inputs.items()}
        for index in [*self._live(nir.FlipFlop), *self._live(nir.SyncReadPort)]:
            words.state(index)
        with _deep_recursion():
            registers = [one for index in self._live(nir.FlipFlop) for one in self._registers(index)]
            reads = [self._read_port(index) for index in self._live(nir.SyncReadPort)]
            writes = [self._write_port(cells.cells[index]) for index in self._live(nir.SyncWritePort)]
            outputs = {name: words.resolve(value) for name, value in cells.outputs.items()}
        memories = {index: self._memory(cells.cells[index]) for index in self._live(nir.Memory)}
        flops = list(self._flops())
        return Design(words.builder.nodes, cells.modules, inputs, outputs, registers, reads, writes, memories, flops)

    def _live(self, kind: type) -> list[int]:
        return sorted(index for index in self._slices.need if isinstance(self._cells.cells[index], kind))

    def _clocked(self, cell: nir.FlipFlop | nir.SyncReadPort | nir.SyncWritePort) -> None:
        if int(cell.clk) != self._cells.clock or cell.clk_edge != "pos":
            raise NetlistError(f"{self._cells.where(cell)}: only the rising edge of one clock can be simulated")

    def _registers(self, index: int) -> Iterator[Register]:
        cell = self._cells.cells[index]
        self._clocked(cell)
        if int(cell.arst) != 0:
            raise NetlistError(f"{self._cells.where(cell)}: asynchronous resets cannot be simulated")
        data = self._cells.word(cell.data)
        for start, width in self._words.words(index):
            node = self._words.node(index, start)
            pairs, default = self._next(sliced(data, start, width), width)
            pairs, default = Builder.pruned(pairs, default)
            initial = cell.init >> start & ((1 << width) - 1)
            kept = None if default == (Piece(node, 0, width),) else default
            yield Register(node, initial, tuple(pairs), kept, cell.module_idx)

    def _next(self, data: Word, width: int) -> tuple[list[tuple[Word, Word]], Word]:
        """Return the input of a register as a choice, where an assignment list drives it."""
        if len(data) == 1 and data[0].node > TOP and not data[0].repeat:
            cell = self._cells.cells[data[0].node]
            if isinstance(cell, nir.AssignmentList) and (data[0].low, width) in self._words.words(data[0].node):
                return self._words.pairs(cell, data[0].low, width)
        return [], self._words.resolve(data)

    def _read_port(self, index: int) -> MemoryReadPort:
        cell = self._cells.cells[index]
        self._clocked(cell)
        if cell.transparent_for:
            raise NetlistError(f"{self._cells.where(cell)}: transparent read ports cannot be simulated")
        words = tuple((self._words.node(index, start), start, width) for start, width in self._words.words(index))
        address, enable = self._words.resolve(self._cells.word(cell.addr)), self._words.net(cell.en)
        return MemoryReadPort(cell.memory, address, enable, words, cell.module_idx)

    def _write_port(self, cell: nir.SyncWritePort) -> MemoryWritePort:
        self._clocked(cell)
        enable = self._words.resolve(self._cells.word(cell.en))
        parts: list[tuple[int, int, Word]] = []
        for at in range(width_of(enable)):
            bit = sliced(enable, at, 1)
            if parts and parts[-1][2] == bit:
                parts[-1] = (parts[-1][0], parts[-1][1] + 1, bit)
            else:
                parts.append((at, 1, bit))
        enables = tuple(part for part in parts if constant_of(part[2]) != 0)
        address, data = (
            self._words.resolve(self._cells.word(cell.addr)),
            self._words.resolve(self._cells.word(cell.data)),
        )
        return MemoryWritePort(cell.memory, address, data, enables, cell.module_idx)

    def _memory(self, cell: nir.Memory) -> MemoryNode:
        # A DRAM has millions of rows, all zero.
        initial = tuple((row, value) for row, value in enumerate(cell.init) if value) if any(cell.init) else ()
        name = ".".join(part for part in (self._cells.modules[cell.module_idx], cell.name) if part)
        return MemoryNode(name, cell.width, cell.depth, initial)

    def _flops(self) -> Iterator[Flop]:
        for index in self._live(nir.FlipFlop):
            name = self._cells.names.get(index)
            if name and self._slices.need[index] == len(self._cells.cells[index].data):
                yield Flop(name, tuple((self._words.node(index, at), width) for at, width in self._words.words(index)))
