"""Puts operations and state in bundles, each of which is evaluated as a whole when something that it reads has changed.

Registers of one module form sinks. An operation that one bundle alone uses belongs to it; what several use is gathered
by who uses it. Nothing that is made so can close a loop: a sink is used by nobody within the cycle, and the users of a
shared bundle all come after it.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from sim.rtl.native.bits import CONSTANT, Word
from sim.rtl.native.nodes import SOURCES, Design, MemoryReadPort, MemoryWritePort, Node, Register

SINK_COST = 120  #: sinks of a module are joined up to this many operations
CHEAP = ("not", "and", "or", "xor", "mux", "eq", "ne", "ult", "ule", "any", "all")  #: repeated rather than handed over

Sink = Register | MemoryReadPort | MemoryWritePort | str  #: str: an output


@dataclass
class Bundle:
    """Holds operations that are evaluated together. ``nodes`` are in the order of their numbers, in which they can be
    computed; ``copies`` are those among them that are also computed elsewhere, for others."""

    module: int
    sinks: list[Sink] = field(default_factory=list)
    nodes: list[int] = field(default_factory=list)
    copies: set[int] = field(default_factory=set)


def nodes_of(words: Iterable[Word]) -> set[int]:
    """Return all nodes that the words name."""
    return {piece.node for word in words for piece in word if piece.node != CONSTANT}


def depends_on(design: Design, own: set[int], words: Iterable[Word]) -> set[int]:
    """Return all nodes that the words name, and what those of them that are in ``own`` depend on."""
    result: set[int] = set()
    work = list(nodes_of(words))
    while work:
        node = work.pop()
        if node not in result:
            result.add(node)
            if node in own:
                work.extend(nodes_of(design.nodes[node].args))
    return result


def sink_words(design: Design, sink: Sink) -> list[Word]:
    """Return what a sink reads."""
    match sink:
        case Register():
            words = [word for pair in sink.pairs for word in pair]
            return words if sink.default is None else [*words, sink.default]
        case MemoryReadPort():
            return [sink.address, sink.enable]
        case MemoryWritePort():
            return [sink.address, sink.data, *(enable for _, _, enable in sink.enables)]
        case str():
            return [design.outputs[sink]]


def make_bundles(design: Design) -> list[Bundle]:
    """Return bundles with every operation that something needs; some cheap ones are in several."""
    bundles = _sinks(design)
    homes = _assign(design, bundles)
    _repeat_cheap(design, bundles, homes)
    for bundle in bundles:
        bundle.nodes.sort()
    return [bundle for bundle in bundles if bundle.sinks or bundle.nodes]


# -- sinks -----------------------------------------------------------------------------------------------------
def _sinks(design: Design) -> list[Bundle]:
    seeds: dict[tuple, list[Sink]] = defaultdict(list)
    for register in design.registers:
        conditions = tuple(condition for condition, _ in register.pairs)
        seeds[register.module, "reg", conditions].append(register)
    for n, port in enumerate(design.reads):
        seeds[port.module, "read", port.enable, n].append(port)
    for n, write in enumerate(design.writes):
        seeds[write.module, "write", n].append(write)
    seeds[0, "outputs"].extend(design.outputs)
    return _joined_sinks(design, seeds)


def _joined_sinks(design: Design, seeds: dict[tuple, list[Sink]]) -> list[Bundle]:
    """Join small seeds of a module where they read much of the same."""
    modules: dict[int, list[tuple[set[int], list[Sink]]]] = defaultdict(list)
    for key, sinks in seeds.items():
        reads = nodes_of(word for sink in sinks for word in sink_words(design, sink))
        modules[key[0]].append((_cone(design.nodes, reads, key[0]), sinks))
    result: list[Bundle] = []
    for module, members in modules.items():
        bundles: list[tuple[set[int], Bundle]] = []
        for cone, sinks in sorted(members, key=lambda one: -len(one[0])):
            best, most = None, 0
            for known in bundles:
                shared = len(known[0] & cone)
                if shared > most and len(known[0] | cone) + len(known[1].sinks) + len(sinks) <= SINK_COST:
                    best, most = known, shared
            if best is None:
                bundles.append((set(cone), Bundle(module, list(sinks))))
            else:
                best[0].update(cone)
                best[1].sinks.extend(sinks)
        result.extend(bundle for _, bundle in bundles)
    return result


def _cone(nodes: list[Node], start: set[int], module: int) -> set[int]:
    """Return what ``start`` depends on within ``module``."""
    result, work = set(start), list(start)
    while work:
        node = nodes[work.pop()]
        if node.op in SOURCES or node.module != module:
            continue
        for other in nodes_of(node.args):
            if other not in result:
                result.add(other)
                work.append(other)
    return result


# -- operations ------------------------------------------------------------------------------------------------
def _assign(design: Design, bundles: list[Bundle]) -> dict[int, int]:
    """Put every operation in a bundle, from the last to the first; return the bundle by node."""
    users: dict[int, set[int]] = defaultdict(set)
    for number, bundle in enumerate(bundles):
        for node in nodes_of(word for sink in bundle.sinks for word in sink_words(design, sink)):
            users[node].add(number)
    homes: dict[int, int] = {}
    shared: dict[tuple, int] = {}
    for node in range(len(design.nodes) - 1, -1, -1):
        operation = design.nodes[node]
        if operation.op in SOURCES or not users[node]:
            continue
        by = users[node]
        if len(by) == 1:
            (home,) = by
        else:
            key = (operation.module, frozenset(by))
            if key not in shared:
                shared[key] = len(bundles)
                bundles.append(Bundle(operation.module))
            home = shared[key]
        homes[node] = home
        bundles[home].nodes.append(node)
        for other in nodes_of(operation.args):
            users[other].add(home)
    return homes


def _repeat_cheap(design: Design, bundles: list[Bundle], homes: dict[int, int]) -> None:
    """Do a cheap operation again in a bundle that reads its operands anyway, instead of waiting for it."""
    reads: list[set[int]] = []
    for bundle in bundles:
        own = set(bundle.nodes)
        needs = nodes_of(word for sink in bundle.sinks for word in sink_words(design, sink))
        needs |= nodes_of(word for node in own for word in design.nodes[node].args)
        reads.append(needs)
    crossing: dict[int, set[int]] = defaultdict(set)
    for number, needs in enumerate(reads):
        for node in needs:
            if homes.get(node, number) != number:
                crossing[node].add(number)
    for node in sorted(crossing):
        operation = design.nodes[node]
        if operation.op not in CHEAP or len(operation.args) > 3:
            continue
        operands = nodes_of(operation.args)
        for number in list(crossing[node]):
            have = reads[number] | set(bundles[number].nodes)
            if operands <= have:
                bundles[number].nodes.append(node)
                bundles[number].copies.add(node)
                crossing[node].discard(number)
    _drop_unused(design, bundles, homes)


def _drop_unused(design: Design, bundles: list[Bundle], homes: dict[int, int]) -> None:
    """Drop what no bundle reads any more: readers of an operation may do it themselves, or were dropped for that."""
    members = [set(bundle.nodes) for bundle in bundles]
    needs = [nodes_of(word for sink in bundle.sinks for word in sink_words(design, sink)) for bundle in bundles]
    handed = set[int]().union(*(need - own for need, own in zip(needs, members, strict=True)))
    order = sorted(((node, number) for number, own in enumerate(members) for node in own), reverse=True)
    for node, number in order:
        if node in needs[number] or (homes[node] == number and node in handed):
            reads = nodes_of(design.nodes[node].args)
            needs[number] |= reads
            handed |= reads - members[number]
        else:
            bundles[number].nodes.remove(node)
            bundles[number].copies.discard(node)
