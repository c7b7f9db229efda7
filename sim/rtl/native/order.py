"""Orders the bundles within a cycle, and finds the registers that can change in place.

A bundle comes after those whose results it uses. Beyond that, readers of a register should come before the bundle that
writes it: then it takes its new value at once, and nobody sees it too early. Other registers change at the end.
"""

import heapq
from collections import defaultdict
from dataclasses import dataclass

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
    after: dict[int, set[int]] = defaultdict(set)
    waits = [0] * len(bundles)
    for number, needs in enumerate(reads):
        sources = {home[node] for node in needs if design.nodes[node].op not in SOURCES}
        for source in sources:
            after[source].add(number)
        waits[number] = len(sources)
    state_readers: dict[int, list[int]] = defaultdict(list)
    for number, needs in enumerate(reads):
        for node in needs:
            if design.nodes[node].op in ("reg", "rdata"):
                state_readers[node].append(number)
    # How many bits of registers would change too early if the bundle came next.
    early = [0] * len(bundles)
    watched: dict[int, list[tuple[int, int]]] = defaultdict(list)  # reader -> (writer, bits)
    for number, bundle in enumerate(bundles):
        for sink in bundle.sinks:
            for node in written(sink):
                for reader in state_readers[node]:
                    if reader != number:
                        early[number] += design.nodes[node].width
                        watched[reader].append((number, design.nodes[node].width))
    ready = [(early[number], number) for number in range(len(bundles)) if not waits[number]]
    heapq.heapify(ready)
    done: set[int] = set()
    order: list[int] = []
    while ready:
        cost, number = heapq.heappop(ready)
        if number in done or cost != early[number]:
            continue
        done.add(number)
        order.append(number)
        changed = set()
        for writer, bits in watched[number]:
            early[writer] -= bits
            changed.add(writer)
        for other in after[number]:
            waits[other] -= 1
            changed.add(other)
        for other in changed:
            if not waits[other] and other not in done:
                heapq.heappush(ready, (early[other], other))
    if len(order) < len(bundles):
        stuck = next(number for number in range(len(bundles)) if number not in done)
        where = design.modules[bundles[stuck].module] or "top"
        raise NetlistError(f"module {where}: bundles of logic depend on each other in a circle")
    return order
