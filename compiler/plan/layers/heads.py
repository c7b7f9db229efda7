"""Attention in groups of heads, so that scores of a group stay on chip whatever the length.

Scores take the square of the length for each head. A group's are made, turned into weights of a mean and used while
those of the next group are being made: softmax keeps the vector unit busy beside the arrays.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

from compiler import ir
from compiler.plan.plan import HeadGroups
from compiler.plan.plan_error import PlanError
from hw.contract.params import SocParams

_SHARE = 16  #: part of LV2 that the scores of a group may take
_LEAST_GROUPS = 3  #: of heads, where there are as many: while one is multiplied, the vector unit works on another


def head_groups(graph: ir.Graph, params: SocParams) -> list[HeadGroups]:
    """Return the chains of product, functions of scores, product that should be in groups of heads."""
    found = []
    for last in graph.ops:
        if isinstance(last, ir.Product) and last.joined == (False, True, True) and not last.transposed:
            chain = _chain(graph, last)
            if chain:
                scores = graph.tensors[chain[0].output].size
                found.append(HeadGroups(last.name, tuple(_groups(last.heads, scores, params))))
    return found


def with_head_groups(graph: ir.Graph, wanted: Sequence[HeadGroups]) -> ir.Graph:
    """Return ``graph`` with chains in groups of heads, which a concatenation joins. Raises :class:`PlanError` if an
    operator ends no such chain."""
    split = replace(graph, tensors=dict(graph.tensors), ops=list(graph.ops))
    last = {op.name: op for op in graph.ops if isinstance(op, ir.Product)}
    for one in wanted:
        chain = _chain(graph, last[one.operator]) if one.operator in last else []
        if not chain:
            raise PlanError(f"operator {one.operator!r} ends no chain that could be in groups of heads")
        _split(split, chain, one.groups)
    return split


def _chain(graph: ir.Graph, last: ir.Product) -> list[ir.Operation]:
    """Return the operators from the product of scores to ``last``, in order; none if something else reads what is
    between."""
    chain: list[ir.Operation] = [last]
    outside = {port.tensor for port in graph.outputs}
    while True:
        name = chain[0].inputs[0]
        maker = graph.producer(name)
        readers = [op for op in graph.ops if name in op.inputs]
        if maker is None or name in outside or readers != [chain[0]] or not _apart(graph, name, last.heads):
            return []
        chain.insert(0, maker)
        if isinstance(maker, ir.Product):
            first = maker.joined == (True, True, False) and maker.heads == last.heads and not maker.of
            return chain if first else []
        mask = isinstance(maker, ir.Eltwise) and graph.tensors[maker.inputs[1]].nhwc[:3] == (1, 1, 1)
        if not mask and not isinstance(maker, ir.Softmax | ir.Table | ir.Reshape):
            return []


def _apart(graph: ir.Graph, name: str, heads: int) -> bool:
    """Return whether a tensor is one image of a matrix for each head."""
    *lead, _, _ = graph.tensors[name].shape
    return lead.count(heads) >= 1 and math.prod(lead) == heads


def _groups(heads: int, scores: int, params: SocParams) -> list[tuple[int, int]]:
    """Return the first head and number of heads of each group, if all scores take ``scores`` bytes."""
    most = max(1, params.lv2_bytes // _SHARE * heads // scores)
    count = max(-(-heads // most), min(_LEAST_GROUPS, heads))
    bounds = [heads * number // count for number in range(count + 1)]
    return [(low, high - low) for low, high in itertools.pairwise(bounds)]


def _split(graph: ir.Graph, chain: Sequence[ir.Operation], groups: Sequence[tuple[int, int]]) -> None:
    """Replace ``chain`` in ``graph``."""
    last = chain[-1]
    assert isinstance(last, ir.Product)
    made, parts = list[list[ir.Operation]](), []
    for first, count in groups:
        names: dict[str, str] = {}
        group = []
        for op in chain:
            tensor = graph.tensors[op.output]
            name = f"{op.output}/heads{first}"
            shape = _part_of(tensor.shape, last.heads, count, joined=op is last)
            graph.tensors[name] = replace(tensor, name=name, shape=shape, onnx_name="", view=(), perm=())
            inputs = [names.get(one, one) for one in op.inputs]
            part = replace(op, name=f"{op.name}/heads{first}", inputs=inputs, output=name)
            if isinstance(part, ir.Product):
                part = replace(part, heads=count, first=first, of=last.heads)
            names[op.output] = name
            group.append(part)
        made.append(group)
        parts.append(group[-1].output)
    whole = graph.tensors[last.output]
    joined = ir.Concat(f"{last.name}/joined", parts, last.output, axis=len(whole.shape) - 1)
    place = graph.ops.index(chain[0])
    graph.ops = [op for op in graph.ops if op not in chain]
    graph.ops[place:place] = [*_in_turn(made), joined]
    for op in chain[:-1]:
        del graph.tensors[op.output]


def _part_of(shape: tuple[int, ...], heads: int, count: int, *, joined: bool) -> tuple[int, ...]:
    """Return the shape of ``count`` of ``heads`` heads: side by side, or along the only axis of more than one before
    the matrix."""
    if joined:
        return (*shape[:-1], shape[-1] // heads * count)
    axis = next(i for i, extent in enumerate(shape) if extent == heads)
    return (*shape[:axis], count, *shape[axis + 1 :])


def _in_turn(groups: Sequence[Sequence[ir.Operation]]) -> list[ir.Operation]:
    """Return the operators of all groups, each product of scores before the last product of the group ahead."""
    ops = list(groups[0][:-1])
    for group, following in itertools.pairwise(groups):
        ops += [*following[:-1], group[-1]]
    return [*ops, groups[-1][-1]]
