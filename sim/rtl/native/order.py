"""Orders the groups within a cycle, and finds the registers that can change in place.

A group comes after those whose results it uses. Beyond that, readers of a register should come before the group that
writes it: then it takes its new value at once, and nobody sees it too early. Other registers change at the end.
"""

import heapq
from collections import defaultdict
from dataclasses import dataclass

from sim.rtl.native.cells import NetlistError
from sim.rtl.native.groups import Group, depends_on, nodes_of, sink_words
from sim.rtl.native.nodes import SOURCES, Design, MemoryReadPort, MemoryWritePort, Register


@dataclass(frozen=True)
class Schedule:
    """Holds ``groups`` in order. Numbers of groups are places in it; ``readers`` and ``home`` are by node."""

    groups: list[Group]  #: in order
    readers: dict[int, set[int]]  #: groups that are evaluated when the node has changed
    home: dict[int, int]  #: the group that computes it
    memory_readers: dict[int, set[int]]  #: groups that read a memory
    in_place: set[int]  #: registers that change at once
    written_at_once: set[int]  #: memories that do
    #: For each group, registers that it reads without being evaluated when they change: only under some condition. It
    #: has itself evaluated again for as long as that holds.
    unwatched: list[set[int]]


def group_reads(design: Design, group: Group) -> set[int]:
    """Return the nodes that a group reads from the state: registers, inputs, and results of other groups."""
    own = set(group.nodes)
    words = [word for sink in group.sinks for word in sink_words(design, sink)]
    words += [word for node in group.nodes for word in design.nodes[node].args]
    reads = nodes_of(words) - own
    # A register that keeps its value does not read itself: whoever changes it has the group evaluated.
    return reads


def memories_read(design: Design, group: Group) -> set[int]:
    """Return the memories that a group looks into."""
    result = {sink.memory for sink in group.sinks if isinstance(sink, MemoryReadPort)}
    return result | {design.nodes[node].info[0] for node in group.nodes if design.nodes[node].op == "aread"}


def written(sink: object) -> list[int]:
    """Return the register nodes that a sink writes."""
    if isinstance(sink, Register):
        return [sink.node]
    return [node for node, _, _ in sink.words] if isinstance(sink, MemoryReadPort) else []


def make_schedule(design: Design, groups: list[Group]) -> Schedule:
    """Order ``groups``. Raises :class:`NetlistError` where they depend on each other in a circle."""
    home = {node: number for number, group in enumerate(groups) for node in group.nodes if node not in group.copies}
    reads = [group_reads(design, group) for group in groups]
    order = _order(design, groups, reads, home)
    position = {number: place for place, number in enumerate(order)}
    ordered = [groups[number] for number in order]

    everybody = set().union(*reads)
    restless = _restless(design)
    unwatched = [
        needs & restless - _always_read(design, group, everybody) for group, needs in zip(groups, reads, strict=True)
    ]
    readers: dict[int, set[int]] = defaultdict(set)
    lookers: dict[int, set[int]] = defaultdict(set)
    memory_readers: dict[int, set[int]] = defaultdict(set)
    for number, needs in enumerate(reads):
        for node in needs:
            lookers[node].add(position[number])
            if node not in unwatched[number]:
                readers[node].add(position[number])
        for memory in memories_read(design, groups[number]):
            memory_readers[memory].add(position[number])
    in_place: set[int] = set()
    at_once: set[int] = set()
    for place, group in enumerate(ordered):
        for sink in group.sinks:
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


def _always_read(design: Design, group: Group, published: set[int]) -> set[int]:
    """Return what a group reads whatever conditions hold in it."""
    own = set(group.nodes)
    words = []
    for sink in group.sinks:
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


def _order(design: Design, groups: list[Group], reads: list[set[int]], home: dict[int, int]) -> list[int]:
    after: dict[int, set[int]] = defaultdict(set)
    waits = [0] * len(groups)
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
    # How many bits of registers would change too early if the group came next.
    early = [0] * len(groups)
    watched: dict[int, list[tuple[int, int]]] = defaultdict(list)  # reader -> (writer, bits)
    for number, group in enumerate(groups):
        for sink in group.sinks:
            for node in written(sink):
                for reader in state_readers[node]:
                    if reader != number:
                        early[number] += design.nodes[node].width
                        watched[reader].append((number, design.nodes[node].width))
    ready = [(early[number], number) for number in range(len(groups)) if not waits[number]]
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
    if len(order) < len(groups):
        stuck = next(number for number in range(len(groups)) if number not in done)
        where = design.modules[groups[stuck].module] or "top"
        raise NetlistError(f"module {where}: groups of logic depend on each other in a circle")
    return order
