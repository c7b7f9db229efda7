"""Lays out the state of a simulation as a C struct, and names its fields."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from sim.rtl.native.expr import storage
from sim.rtl.native.nodes import SOURCES, Design, MemoryNode, Node
from sim.rtl.native.order import Schedule, written
from sim.rtl.native.slices import WORD


@dataclass(frozen=True)
class RowStorage:
    """Says how the rows of a memory are kept: ``words`` elements of C type ``kind`` each."""

    kind: str
    words: int


def row_of(memory: MemoryNode) -> RowStorage:
    """Return how the rows of ``memory`` are kept: rows of up to 64 bits as one element, wider ones as 64-bit words."""
    if memory.width <= WORD:
        return RowStorage(storage(memory.width), 1)
    return RowStorage("u64", -(-memory.width // WORD))


def field_of(node: Node, number: int) -> str:
    """Return the field that holds the value of a node between evaluations."""
    return f"{ {'input': 'i', 'reg': 'r', 'rdata': 'r'}.get(node.op, 'w') }{number}"


class Layout:
    """Holds the fields of the struct ``State``.

    Registers that a bundle writes lie side by side, sorted by the numbers in their names, so that a C compiler finds
    vectors where the design has arrays.
    """

    def __init__(self, design: Design, schedule: Schedule) -> None:
        self._design, self._schedule = design, schedule
        self.words = -(-len(schedule.bundles) // WORD)  #: of a set of bundles
        self.deferred = {
            node for bundle in schedule.bundles for sink in bundle.sinks for node in written(sink)
            if node not in schedule.in_place
        }  # fmt: skip

    def struct(self) -> str:
        """Return the definition of ``State``."""
        # Flags are volatile, or a C compiler sets single bits by writing bytes, and words that are read soon after such
        # a write have to wait for it.
        lines = [f"volatile u64 now[{self.words}], next[{self.words}];", "u32 commits[BUNDLES], commit_count;"]
        lines += [f"{storage(self._design.nodes[node].width)} i{node};" for node in self._design.inputs.values()]
        lines += [f"{storage(_width(self._design, name))} o_{name};" for name in self._design.outputs]
        for place, bundle in enumerate(self._schedule.bundles):
            own = [node for sink in bundle.sinks for node in written(sink)]
            own.sort(key=self._natural)
            lines += [f"{storage(self._design.nodes[node].width)} r{node};" for node in own]
            lines += [f"{storage(self._design.nodes[node].width)} n{node};" for node in own if node in self.deferred]
            lines += self._wires(place)
        for index, port in enumerate(self._design.writes):
            if port.memory not in self._schedule.written_at_once:
                row = row_of(self._design.memories[port.memory])
                lines.append(f"u32 on{index}; u64 at{index}; u64 data{index}[{row.words}], mask{index}[{row.words}];")
        for index, memory in sorted(self._design.memories.items(), key=lambda one: one[1].depth * one[1].width):
            row = row_of(memory)
            lines.append(f"{row.kind} m{index}[{memory.depth * row.words}ull];")
        return "typedef struct State {\n" + "".join(f"  {line}\n" for line in lines) + "} State;\n"

    def _wires(self, place: int) -> Iterator[str]:
        for node in self._schedule.bundles[place].nodes:
            if self.published(node, place):
                width = self._design.nodes[node].width
                if width > WORD:
                    yield f"u64 w{node}[{-(-width // WORD) + 1}];"
                else:
                    yield f"{storage(width)} w{node};"

    def published(self, node: int, place: int) -> bool:
        """Return whether other bundles read ``node`` from the bundle at ``place``."""
        return self._schedule.home.get(node) == place and bool(self._schedule.readers.get(node))

    def _natural(self, node: int) -> tuple:
        """Return the name without numbers, then the numbers, then the bit, so that names sort by their numbers."""
        name, cell, start = self._design.nodes[node].info
        parts = re.split(r"(\d+)", name or "")
        return tuple(parts[::2]), tuple(map(int, parts[1::2])), cell if name is None else 0, start, node


def _width(design: Design, output: str) -> int:
    return sum(piece.width for piece in design.outputs[output])


def is_source(node: Node) -> bool:
    """Return whether a node is state rather than computed."""
    return node.op in SOURCES
