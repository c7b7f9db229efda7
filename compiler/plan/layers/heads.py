"""Attention in groups of heads, so that scores of a group stay on chip whatever the length.

Scores take the square of the length for each head. A group's are made, turned into weights of a mean and used while
those of the next group are being made: softmax keeps the vector unit busy beside the arrays. Where the scores of one
head are too many, its rows are cut into stripes, which follow each other like groups: each row stands for itself.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from compiler import ir
from compiler.plan.layers.origin import even_pieces
from compiler.plan.plan import HeadGroups
from compiler.plan.plan_error import PlanError
from hw.contract.params import SocParams

T = TypeVar("T")

_SHARE = 16  #: part of LV2 that the scores of a group may take
_STRIPE = 6  #: part of LV2 that those of a stripe may take: three of them, of which one is made, and more
_LEAST_GROUPS = 3  #: of heads, where there are as many: while one is multiplied, the vector unit works on another


def head_groups(graph: ir.Graph, params: SocParams) -> list[HeadGroups]:
    """Return the chains of product, functions of scores, product that should be in groups of heads."""
    found = []
    for last in graph.ops:
        if isinstance(last, ir.Product) and last.joined == (False, True, True) and not last.transposed:
            chain = _chain(graph, last)
            if chain:
                scores = graph.tensors[chain[0].output]
                stripes = _stripes(scores.size // last.heads, scores.shape[-2], params)
                found.append(HeadGroups(last.name, tuple(_groups(last.heads, scores.size, params)), stripes))
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
        _split(split, chain, one)
    return split


def in_turn(graph: ir.Graph, wanted: Sequence[HeadGroups]) -> list[list[str]]:
    """Return the names of the operators that each chain of ``graph`` becomes which is cut into stripes, in the order in
    which they should run: that of no other keeps fewer scores on chip, and none keeps the units busier."""
    last, found = {op.name: op for op in graph.ops if isinstance(op, ir.Product)}, []
    for one in wanted:
        if one.stripes > 1:
            chain = _chain(graph, last[one.operator])
            stripes = even_pieces(graph.tensors[chain[0].inputs[0]].shape[-2], one.stripes)
            parts = [_suffix(first, stripe) for first, _ in one.groups for stripe in stripes]
            found.append(_in_turn([[op.name + part for op in chain] for part in parts]))
    return found


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
        mask = isinstance(maker, ir.Eltwise) and (
            graph.tensors[maker.inputs[1]].nhwc[:3] == (1, 1, 1) or _is_mask_of_all(graph, maker)
        )
        if not mask and not isinstance(maker, ir.Softmax | ir.Table | ir.Reshape):
            return []


def _is_mask_of_all(graph: ir.Graph, op: ir.Operation) -> bool:
    """Return whether the second operand of ``op`` is a constant for each element of the first: a causal mask, say."""
    if not isinstance(op, ir.Eltwise):
        return False
    mask = graph.tensors[op.inputs[1]]
    return mask.data is not None and mask.shape == graph.tensors[op.output].shape


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


def _stripes(scores: int, rows: int, params: SocParams) -> int:
    """Return into how many stripes the ``rows`` of a head are cut, whose scores take ``scores`` bytes."""
    return min(-(-scores // (params.lv2_bytes // _STRIPE)), rows)


def _split(graph: ir.Graph, chain: Sequence[ir.Operation], wanted: HeadGroups) -> None:
    """Replace ``chain`` in ``graph``."""
    last, queries = chain[-1], graph.tensors[chain[0].inputs[0]]
    assert isinstance(last, ir.Product)
    stripes = even_pieces(queries.shape[-2], wanted.stripes)
    made, taken = list[list[ir.Operation]](), list[ir.Operation]()
    parts: dict[tuple[int, int], list[str]] = {stripe: [] for stripe in stripes}
    read: dict[tuple[int, int], str] = {}
    for low, high in stripes:
        read[low, high] = queries.name
        if len(stripes) > 1:
            read[low, high] = _added(graph, queries, f"/rows{low}of:{last.name}", (1, high - low, queries.shape[-1]))
            name = read[low, high]
            taken.append(ir.Slice(name, [queries.name], name, axis=len(queries.shape) - 2, first=low))
    for first, count in wanted.groups:
        for stripe in stripes:
            group = _group(graph, chain, first, count, stripe if len(stripes) > 1 else None, read[stripe])
            made.append(group)
            parts[stripe].append(group[-1].output)
    joined = _joined(graph, last, parts)
    place = graph.ops.index(chain[0])
    graph.ops = [op for op in graph.ops if op not in chain]
    graph.ops[place:place] = [*taken, *_in_turn(made), *joined]
    for op in chain[:-1]:
        del graph.tensors[op.output]


def _group(
    graph: ir.Graph, chain: Sequence[ir.Operation], first: int, count: int, stripe: tuple[int, int] | None, source: str
) -> list[ir.Operation]:  # fmt: skip
    """Return ``chain`` for ``count`` heads from ``first`` on, and a stripe of the rows: those of ``source``."""
    last, group = chain[-1], list[ir.Operation]()
    assert isinstance(last, ir.Product)
    names: dict[str, str] = {}
    suffix = _suffix(first, stripe)
    for op in chain:
        tensor = graph.tensors[op.output]
        shape = _part_of(tensor.shape, last.heads, count, joined=op is last)
        if stripe:
            shape = (*shape[:-2], stripe[1] - stripe[0], shape[-1])
        inputs = [source if op is chain[0] and i == 0 else names.get(one, one) for i, one in enumerate(op.inputs)]
        if _is_mask_of_all(graph, op):
            inputs[1] = _mask_of(graph, graph.tensors[op.inputs[1]], last.heads, (first, count), stripe)
        names[op.output] = _added(graph, tensor, suffix, shape)
        part = replace(op, name=op.name + suffix, inputs=inputs, output=names[op.output])
        if isinstance(part, ir.Product):
            part = replace(part, heads=count, first=first, of=last.heads)
        group.append(part)
    return group


def _mask_of(
    graph: ir.Graph, mask: ir.Tensor, heads: int, group: tuple[int, int], stripe: tuple[int, int] | None
) -> str:  # fmt: skip
    """Return a constant with what ``mask`` has for a group of heads and a stripe of the rows; groups that have the same
    share it."""
    assert mask.data is not None
    axis, data = _axis_of(mask.shape, heads), mask.data.reshape(mask.shape)
    alike = bool((data == data.take([0], axis)).all())
    part = data.take(range(group[1]) if alike else range(group[0], sum(group)), axis)
    if stripe:
        part = part[..., slice(*stripe), :]
    name = f"{mask.name}/{group[1]}" + _suffix(0 if alike else group[0], stripe)
    graph.tensors[name] = replace(mask, name=name, shape=part.shape, data=part.copy(), onnx_name="", view=(), perm=())
    return name


def _suffix(first: int, stripe: tuple[int, int] | None) -> str:
    return f"/heads{first}" + (f"/rows{stripe[0]}" if stripe else "")


def _added(graph: ir.Graph, tensor: ir.Tensor, suffix: str, shape: tuple[int, ...]) -> str:
    """Add a tensor like ``tensor`` with another shape, and return its name."""
    name = tensor.name + suffix
    graph.tensors[name] = replace(tensor, name=name, shape=shape, onnx_name="", view=(), perm=())
    return name


def _joined(graph: ir.Graph, last: ir.Product, parts: dict[tuple[int, int], list[str]]) -> list[ir.Operation]:
    """Return what makes one tensor of ``parts``: of each stripe heads side by side, and stripes one after the other."""
    whole = graph.tensors[last.output]
    rows, columns = len(whole.shape) - 2, len(whole.shape) - 1
    if len(parts) == 1:
        return [ir.Concat(f"{last.name}/joined", one, last.output, axis=columns) for one in parts.values()]
    made, stripes = list[ir.Operation](), list[str]()
    for (low, high), heads in parts.items():
        if len(heads) == 1:
            stripes += heads
            continue
        stripes.append(_added(graph, whole, f"/rows{low}", (*whole.shape[:-2], high - low, whole.shape[-1])))
        made.append(ir.Concat(f"{last.name}/rows{low}/joined", heads, stripes[-1], axis=columns))
    return [*made, ir.Concat(f"{last.name}/joined", stripes, last.output, axis=rows)]


def _part_of(shape: tuple[int, ...], heads: int, count: int, *, joined: bool) -> tuple[int, ...]:
    """Return the shape of ``count`` of ``heads`` heads: side by side, or along the only axis of more than one before
    the matrix."""
    if joined:
        return (*shape[:-1], shape[-1] // heads * count)
    axis = _axis_of(shape, heads)
    return (*shape[:axis], count, *shape[axis + 1 :])


def _axis_of(shape: tuple[int, ...], heads: int) -> int:
    return next(i for i, extent in enumerate(shape) if extent == heads)


def _in_turn(groups: Sequence[Sequence[T]]) -> list[T]:
    """Return the operators of all groups, each product of scores before the last product of the group ahead."""
    ops = list(groups[0][:-1])
    for group, following in itertools.pairwise(groups):
        ops += [*following[:-1], group[-1]]
    return [*ops, groups[-1][-1]]
