"""**Split**: an operator whose data exceed on-chip memory becomes several of its type on parts of the data."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from compiler import (
    CHANNELS,
    ONE_PIXEL,
    RULES,
    Box4,
    Dimension,
    Extents,
    OperandNeed,
    OperatorNode,
    OrderGraph,
    SlidingWindow,
    SplitRule,
    even_pieces,
)


class SplitError(ValueError):
    """An operator fits on no terms; names it, its bytes, the limit and the way out."""


@dataclass(frozen=True)
class SplitOperator:
    """An operator with the extents of its data. ``kind`` is a key of ``dimensions.RULES``. ``node`` holds its times and
    bytes as a whole; ``operands`` name other operators, or inputs of the model. ``tiled``: tiling makes it fit as it
    is, so that splitting has to pay. Elements have ``element_bytes``."""

    node: OperatorNode
    kind: str
    result: Extents
    operands: tuple[tuple[str, Extents], ...]
    window: SlidingWindow = ONE_PIXEL
    groups: int = 1
    tiled: bool = False
    element_bytes: int = 1

    def __post_init__(self) -> None:
        if self.kind not in RULES:
            raise SplitError(f"operator {self.name!r}: no rule to split a {self.kind!r}; known are {', '.join(RULES)}")
        if min(self.result) < 1:
            raise SplitError(f"operator {self.name!r}: extents must be 1 or more, not {self.result}")

    @property
    def name(self) -> str:
        """Of the operator, and of its result."""
        return self.node.name

    @property
    def rule(self) -> SplitRule:
        """That of its type."""
        return RULES[self.kind]

    def needs(self, part: Box4) -> list[Box4]:
        """By operand the box of it that ``part`` of the result needs."""
        boxes, before = [], 0
        for number, (_, extents) in enumerate(self.operands):
            need = OperandNeed(extents, self.result, self.window, self.groups, number, before)
            boxes.append(self.rule.needs(need, part))
            before += extents[CHANNELS]
        return boxes

    def bytes_of(self, part: Box4) -> int:
        """Return input, parameters and output of a part of the result. Parameters belong to output channels."""
        data = sum(_volume(box) for box in (*self.needs(part), part)) * self.element_bytes
        return data + self.parameters_of(part)

    def parameters_of(self, part: Box4) -> int:
        """Return the bytes of the parameters that a part needs."""
        first, end = part[CHANNELS]
        return -(-self.node.param_bytes * (end - first) // self.result[CHANNELS])


@dataclass(frozen=True)
class SplitGraph:
    """Operators and their parts. ``parts[i]`` are the boxes of the result of ``operators[i]``: one, if it is whole."""

    name: str
    operators: tuple[SplitOperator, ...]
    parts: tuple[tuple[Box4, ...], ...]

    def order_graph(self, part_cycles: float = 0.0) -> OrderGraph:
        """Return what the search sees: a node for each part, which waits for the parts that hold what it needs. Times
        are shared out by results, loads by parameters; each part of a split operator costs ``part_cycles`` more."""
        nodes: list[OperatorNode] = []
        edges: set[tuple[int, int]] = set()
        made: dict[str, list[tuple[int, Box4]]] = {}
        for operator, parts in zip(self.operators, self.parts, strict=True):
            numbers = []
            for place, part in enumerate(parts):
                number = len(nodes)
                nodes.append(_part_node(operator, part, place, len(parts), part_cycles))
                for (operand, _), box in zip(operator.operands, operator.needs(part), strict=True):
                    edges |= {(maker, number) for maker, held in made.get(operand, []) if _overlap(held, box)}
                numbers.append((number, part))
            made[operator.name] = numbers
        return OrderGraph(self.name, tuple(nodes), frozenset(edges))


Pays = Callable[[OrderGraph, OrderGraph], bool]  #: whether the second graph, with splits, is worth more than the first


def split_operator(operator: SplitOperator, limit: int, along: Sequence[Dimension] | None = None) -> tuple[Box4, ...]:
    """Return the fewest, nearly equal parts of an operator's result whose data take at most ``limit`` bytes each.

    The first dimension of its type is cut along which that can succeed: what does not become smaller with it, such as
    the weights with the number of frames, must fit by itself. When it is cut to single elements, the next follows. If
    there is no such dimension, the one that helps most is cut. ``along``: only these, in this order. Raises
    :class:`SplitError`.
    """
    dimensions = operator.rule.dimensions if along is None else tuple(along)
    forbidden = [dimension.name.lower() for dimension in dimensions if dimension not in operator.rule.dimensions]
    if forbidden:
        raise SplitError(f"operator {operator.name!r}: a {operator.kind} cannot be split along {forbidden[0]}")
    pieces = dict.fromkeys(dimensions, 1)
    while (size := _largest(operator, pieces)) > limit:
        left = [d for d in dimensions if pieces[d] < operator.result[d]]
        if not left:
            raise SplitError(
                f"operator {operator.name!r}: its smallest part takes {size} bytes on chip, the limit is {limit}: "
                "choose a chip with more memory, or make the operator smaller in the model"
            )
        able = [d for d in left if _fixed(operator, pieces, d) < limit]
        chosen = able[0] if able else min(left, key=lambda d: _largest(operator, {**pieces, d: operator.result[d]}))
        pieces[chosen] = _more(operator.result[chosen], pieces[chosen], size / limit)
    return tuple(_boxes(operator.result, pieces))


def split(
    operators: Sequence[SplitOperator],
    limit: int,
    name: str = "model",
    pays: Pays | None = None,
    part_cycles: float = 0.0,
) -> SplitGraph:
    """Return all operators, each in parts of at most ``limit`` bytes. Those that tiling makes fit are split only where
    that ``pays``: all of them are tried at once, as a split pays by what a chain of operators keeps on chip, then each
    is left out in turn. Without ``pays`` they stay whole."""
    needed = {i: split_operator(op, limit) for i, op in enumerate(operators) if not op.tiled}
    best = _split_graph(name, operators, needed)
    extra = {i: split_operator(op, limit) for i, op in enumerate(operators) if pays and op.tiled}
    extra = {i: boxes for i, boxes in extra.items() if len(boxes) > 1}

    def better(graph: SplitGraph) -> bool:
        return pays is not None and pays(best.order_graph(part_cycles), graph.order_graph(part_cycles))

    cut = _split_graph(name, operators, needed | extra)
    if extra and better(cut):
        best = cut
        for number in sorted(extra):
            fewer = {i: boxes for i, boxes in extra.items() if i != number}
            cut = _split_graph(name, operators, needed | fewer)
            if better(cut):
                best, extra = cut, fewer
    return best


def pays_by_price(price: Callable[[OrderGraph], float]) -> Pays:
    """A split pays if ``price``, of a graph in a good order, becomes less."""
    return lambda whole, cut: price(cut) < price(whole)


def _split_graph(name: str, operators: Sequence[SplitOperator], cuts: Mapping[int, tuple[Box4, ...]]) -> SplitGraph:
    parts = (cuts.get(i, tuple(_boxes(op.result, {}))) for i, op in enumerate(operators))
    return SplitGraph(name, tuple(operators), tuple(parts))


def _boxes(extents: Extents, pieces: Mapping[Dimension, int]) -> Iterator[Box4]:
    """Yield the parts of ``extents`` in so many pieces along each dimension, larger ones first."""
    yield from product(*(even_pieces(extents[d], pieces.get(d, 1)) for d in Dimension))


def _largest(operator: SplitOperator, pieces: Mapping[Dimension, int]) -> int:
    return max(operator.bytes_of(box) for box in _boxes(operator.result, pieces))


def _fixed(operator: SplitOperator, pieces: Mapping[Dimension, int], dimension: Dimension) -> int:
    """Return the bytes of a part that do not become smaller along ``dimension``."""
    part = list(next(_boxes(operator.result, pieces)))
    middle = operator.result[dimension] // 2
    sizes = []
    for extent in (1, 2):
        first = max(0, middle - 1)
        part[dimension] = (first, min(first + extent, operator.result[dimension]))
        sizes.append(operator.bytes_of(tuple(part)))
    return 2 * sizes[0] - sizes[1]


def _more(extent: int, pieces: int, excess: float) -> int:
    """Return the next number of pieces that may do, when the largest of ``pieces`` is too large by the factor
    ``excess``: with fewer, even what shrinks in proportion would not fit."""
    longest = -(-extent // pieces)
    return min(extent, max(pieces + 1, -(-extent // max(1, int(longest / excess)))))


def _part_node(operator: SplitOperator, part: Box4, place: int, count: int, part_cycles: float) -> OperatorNode:
    if count == 1:
        return operator.node
    node, parameters = operator.node, operator.parameters_of(part)
    share = _volume(part) / math.prod(operator.result)
    loaded = parameters / node.param_bytes if node.param_bytes else share
    times = {"matrix": node.matrix * share, "vector": node.vector * share}
    busiest = max(times, key=lambda unit: times[unit])
    times[busiest] += part_cycles
    size = -(-node.out_bytes * _volume(part) // math.prod(operator.result))
    return OperatorNode(
        f"{node.name}[{place}]", node.kind, node.load * loaded, times["matrix"], times["vector"], size, parameters
    )


def _volume(box: Box4) -> int:
    return math.prod(end - first for first, end in box)


def _overlap(one: Box4, other: Box4) -> bool:
    return all(max(a[0], b[0]) < min(a[1], b[1]) for a, b in zip(one, other, strict=True))
