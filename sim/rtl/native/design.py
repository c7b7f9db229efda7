"""Describes what is simulated: operations, and the state between clock edges."""

from collections.abc import Mapping
from dataclasses import dataclass

from sim.rtl.native.bits import Word
from sim.rtl.native.nodes import Node

Pairs = tuple[tuple[Word, Word], ...]


@dataclass(frozen=True)
class Register:
    """Describes a word of a flip-flop. At the edge it takes the value of the first of ``pairs`` (condition, value)
    whose condition is set, else ``default``, which is None where it keeps its value."""

    node: int
    initial: int
    pairs: Pairs
    default: Word | None
    module: int


@dataclass(frozen=True)
class MemoryReadPort:
    """Describes a synchronous read port: where ``enable`` is set, the edge brings the row at ``address`` into its
    words. ``words``: (node, first bit, width)."""

    memory: int
    address: Word
    enable: Word
    words: tuple[tuple[int, int, int], ...]
    module: int


@dataclass(frozen=True)
class MemoryWritePort:
    """Describes a write port. ``enables``: (first bit, width, condition) of every part that can be written alone."""

    memory: int
    address: Word
    data: Word
    enables: tuple[tuple[int, int, Word], ...]
    module: int


@dataclass(frozen=True)
class MemoryNode:
    """Describes a memory of ``depth`` rows of ``width`` bits. ``initial``: (row, value) of the rows that are not
    zero."""

    name: str
    width: int
    depth: int
    initial: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Flop:
    """Describes a flip-flop as the design names it, made of words: (node, width) from the least significant on."""

    name: str
    words: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Design:
    """Holds a netlist ready to be scheduled. ``modules``: hierarchical names; ``inputs``: node by port."""

    nodes: list[Node]
    modules: list[str]
    inputs: Mapping[str, int]
    outputs: Mapping[str, Word]
    registers: list[Register]
    reads: list[MemoryReadPort]
    writes: list[MemoryWritePort]
    memories: dict[int, MemoryNode]
    flops: list[Flop]
