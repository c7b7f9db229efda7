"""Orders the bundles within a cycle, and finds the registers that can change in place.

A bundle comes after those whose results it uses. Beyond that, readers of a register should come before the bundle that
writes it: then it takes its new value at once, and nobody sees it too early. Other registers change at the end.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass

import networkx as nx

from sim.rtl.native.bundles import Bundle, depends_on, nodes_of, sink_words
from sim.rtl.native.cells import NetlistError
from sim.rtl.native.nodes import SOURCES, Design, MemoryReadPort, MemoryWritePort, Register


@dataclass(frozen=True)
class Schedule:
    """Holds ``bundles`` in order. Numbers of bundles are places in it; ``readers`` and ``home`` are by node."""

    bundles: list[Bundle]  #: in order
    readers: dict[int, set[int]]  #: bundles that are evaluated when the node has changed
    home: dict[int, int]  #: the bundle that computes it
    memory_readers: dict[int, set[int]]  #: bundles that read a memory
    in_place: set[int]  #: registers that change at once
    written_at_once: set[int]  #: memories that do
    #: For each bundle, registers that it reads without being evaluated when they change: only under some condition. It
    #: has itself evaluated again for as long as that holds.
    unwatched: list[set[int]]


def bundle_reads(design: Design, bundle: Bundle) -> set[int]:
    """Return the nodes that a bundle reads from the state: registers, inputs, and results of other bundles."""
    own = set(bundle.nodes)
    words = [word for sink in bundle.sinks for word in sink_words(design, sink)]
    words += [word for node in bundle.nodes for word in design.nodes[node].args]
    reads = nodes_of(words) - own
    # A register that keeps its value does not read itself: whoever changes it has the bundle evaluated.
    return reads


def memories_read(design: Design, bundle: Bundle) -> set[int]:
    """Return the memories that a bundle looks into."""
    result = {sink.memory for sink in bundle.sinks if isinstance(sink, MemoryReadPort)}
    return result | {design.nodes[node].info[0] for node in bundle.nodes if design.nodes[node].op == "aread"}


def written(sink: object) -> list[int]:
    """Return the register nodes that a sink writes."""
    if isinstance(sink, Register):
        return [sink.node]
    return [node for node, _, _ in sink.words] if isinstance(sink, MemoryReadPort) else []


def make_schedule(design: Design, bundles: list[Bundle]) -> Schedule:
    """Order ``bundles``. Raises :class:`NetlistError` where they depend on each other in a circle."""
    home = {node: number for number, bundle in enumerate(bundles) for node in bundle.nodes if node not in bundle.copies}
    reads = [bundle_reads(design, bundle) for bundle in bundles]
    order = _order(design, bundles, reads, home)
    position = {number: place for place, number in enumerate(order)}
    ordered = [bundles[number] for number in order]

    everybody = set().union(*reads)
    restless = _restless(design)
    unwatched = [
        needs & restless - _always_read(design, bundle, everybody) for bundle, needs in zip(bundles, reads, strict=True)
    ]
    readers: dict[int, set[int]] = defaultdict(set)
    lookers: dict[int, set[int]] = defaultdict(set)
    memory_readers: dict[int, set[int]] = defaultdict(set)
    for number, needs in enumerate(reads):
        for node in needs:
            lookers[node].add(position[number])
            if node not in unwatched[number]:
                readers[node].add(position[number])
        for memory in memories_read(design, bundles[number]):
            memory_readers[memory].add(position[number])
    in_place: set[int] = set()
    at_once: set[int] = set()
    for place, bundle in enumerate(ordered):
        for sink in bundle.sinks:
            in_place.update(node for node in written(sink) if max(lookers[node], default=-1) <= place)
            if isinstance(sink, MemoryWritePort) and max(memory_readers[sink.memory], default=-1) < place:
                at_once.add(sink.memory)
    homes = {node: position[number] for node, number in home.items()}
    return Schedule(ordered, readers, homes, memory_readers, in_place, at_once, [unwatched[number] for number in order])


def _restless(design: Design) -> set[int]:
    """Return the registers that change in nearly every cycle: counters that nothing holds."""
    result = set()
    for register in design.registers:
        near = nodes_of([register.default]) if register.default is not None else set()
        near |= nodes_of(word for node in near for word in design.nodes[node].args)
        counts = any(design.nodes[node].op == "add" for node in near)
        if counts and register.node in near:
            result.add(register.node)
    # A counter of more than one word: its upper words come with its lowest.
    cells = {design.nodes[node].info[1] for node in result}
    return {register.node for register in design.registers if design.nodes[register.node].info[1] in cells}


def _always_read(design: Design, bundle: Bundle, published: set[int]) -> set[int]:
    """Return what a bundle reads whatever conditions hold in it."""
    own = set(bundle.nodes)
    words = []
    for sink in bundle.sinks:
        match sink:
            case Register():
                words += [condition for condition, _ in sink.pairs]
                if not sink.pairs or sink.default is not None:
                    words += sink_words(design, sink)
            case MemoryReadPort():
                words.append(sink.enable)
            case MemoryWritePort():
                words += [enable for _, _, enable in sink.enables]
            case str():
                words += sink_words(design, sink)
    words += [word for node in own & published for word in design.nodes[node].args]
    return depends_on(design, own, words)


def _order(design: Design, bundles: list[Bundle], reads: list[set[int]], home: dict[int, int]) -> list[int]:
    graph = _precedence(design, bundles, reads, home)
    order: list[int] = []
    work = [graph]
    while work:
        # What depends on itself in no circle comes in an order that satisfies all; the last comes first here.
        for group in list(nx.strongly_connected_components(part := work.pop())):
            work.append(part.subgraph(group).copy())
        while work and len(work[-1]) == 1:
            order.extend(work.pop())
        if work:  # in a circle: whoever changes the fewest registers too early
            work[-1].remove_node(first := _first(design, bundles, work[-1]))
            order.append(first)
    return order


def _precedence(design: Design, bundles: list[Bundle], reads: list[set[int]], home: dict[int, int]) -> nx.DiGraph:
    """Return which bundle comes before which: it must where the edge says ``must``, and otherwise should, for the sake
    of as many registers and memories as it says ``early``."""
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(bundles)))
    registers: dict[int, int] = {}
    memories: dict[int, list[int]] = defaultdict(list)
    for number, bundle in enumerate(bundles):
        for sink in bundle.sinks:
            registers |= dict.fromkeys(written(sink), number)
            if isinstance(sink, MemoryWritePort):
                memories[sink.memory].append(number)
    for number, bundle in enumerate(bundles):
        writers = [registers[node] for node in sorted(reads[number]) if node in registers]
        writers += [writer for memory in sorted(memories_read(design, bundle)) for writer in memories[memory]]
        for writer, count in Counter(writers).items():
            if writer != number:
                graph.add_edge(number, writer, early=count)
        for node in sorted(reads[number]):
            if design.nodes[node].op not in SOURCES:
                graph.add_edge(home[node], number, must=True)
    return graph


def _first(design: Design, bundles: list[Bundle], circle: nx.DiGraph) -> int:
    """Return the bundle of a circle that waits for none of the others, and for which the fewest registers change too
    early if it comes first."""
    early = {}
    for number in sorted(circle):
        edges = [given for _, _, given in circle.in_edges(number, data=True)]
        if not any("must" in given for given in edges):
            early[number] = sum(given["early"] for given in edges)
    if not early:
        where = design.modules[bundles[min(circle)].module] or "top"
        raise NetlistError(f"module {where}: bundles of logic depend on each other in a circle")
    return min(early, key=lambda number: early[number])
