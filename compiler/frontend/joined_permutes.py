"""Permutations that follow each other, joined to one: what an exporter writes as reshape, transpose, reshape.

A shuffle of channels, seen in ONNX, moves the channels of an image that lies channels first. Memory has channels last,
so it becomes two permutations with a reshape between them: into the order of ONNX, and back. Together they only move
channels within each pixel. An image that is cut into patches becomes three or four, which together move whole pixels.
"""

import itertools
import math

from compiler.frontend.source import free_name
from compiler.ir import Graph, Operation, Permute, Reshape, Tensor

_Shape = tuple[int, ...]


def merge_permutes(graph: Graph) -> None:
    """Replace each permutation of a (reshaped) permutation by one of the first one's input, where all axes can be split
    so that the reshape between them only names them anew. What nothing reads any more stays for the importer to
    drop."""
    makers = {op.output: op for op in graph.ops}
    for second in list(graph.ops):
        first = _in_front(second, makers)
        if not (isinstance(second, Permute) and isinstance(first, Permute)):
            continue
        made, read = graph.tensors[first.output], graph.tensors[second.inputs[0]]
        parts = _common_parts(made.shape, read.shape)
        if parts is None:
            continue
        extents, fine, coarse = parts
        held = [part for axis in range(len(first.perm)) for part in fine[first.perm.index(axis)]]
        order = [held.index(part) for axis in second.perm for part in coarse[axis]]
        shape, perm = _least([extents[part] for part in held], order)
        place = next(i for i, op in enumerate(graph.ops) if op is second)
        moves = _permuted(graph, first.inputs[0], second, shape, perm, [*first.nodes, *second.nodes])
        graph.ops[place : place + 1] = moves
        makers |= {op.output: op for op in moves}


def _in_front(op: Operation, makers: dict[str, Operation]) -> Operation | None:
    """Return what makes the input of ``op``, reshapes left out."""
    found = makers.get(op.inputs[0]) if op.inputs else None
    while isinstance(found, Reshape):
        found = makers.get(found.inputs[0])
    return found


def _permuted(
    graph: Graph, name: str, second: Permute, shape: _Shape, perm: _Shape, nodes: list[str]
) -> list[Operation]:
    """Return the operators that make the result of ``second`` of tensor ``name``, taken as one of ``shape``."""
    source, moves = graph.tensors[name], list[Operation]()

    def another(wanted: str, extents: _Shape) -> str:
        made = free_name(wanted, graph.tensors)
        graph.tensors[made] = Tensor(made, extents, source.dtype, source.scale, source.zero_point)
        return made

    if len(shape) == 1:  # they undo each other
        return [Reshape(second.name, [name], second.output, nodes=nodes)]
    if source.shape != shape:
        split = another(f"{second.output}:split", shape)
        moves.append(Reshape(split, [name], split))
        name = split
    joined = another(f"{second.output}:joined", tuple(shape[axis] for axis in perm))
    moves.append(Permute(second.name, [name], joined, nodes=nodes, perm=perm))
    moves.append(Reshape(f"{second.name}:joined", [joined], second.output))
    return moves


def _common_parts(one: _Shape, other: _Shape) -> tuple[list[int], list[list[int]], list[list[int]]] | None:
    """Return extents of axes that those of both shapes are made of, and the numbers of those that make each axis of one
    and of the other; None if there are none."""
    bounds = sorted({math.prod(shape[:axis]) for shape in (one, other) for axis in range(len(shape) + 1)})
    if len(bounds) == 1 or any(high % low for low, high in itertools.pairwise(bounds)):
        return None
    extents = [high // low for low, high in itertools.pairwise(bounds)]

    def parts(shape: _Shape) -> list[list[int]]:
        ends = [(math.prod(shape[:axis]), math.prod(shape[: axis + 1])) for axis in range(len(shape))]
        return [list(range(bounds.index(low), bounds.index(high))) for low, high in ends]

    return extents, parts(one), parts(other)


def _least(extents: list[int], order: list[int]) -> tuple[_Shape, _Shape]:
    """Return the same permutation with axes that stay neighbours taken as one."""
    runs: list[list[int]] = []
    for axis in order:
        if runs and axis == runs[-1][-1] + 1:
            runs[-1].append(axis)
        else:
            runs.append([axis])
    held = sorted(runs)
    return tuple(math.prod(extents[axis] for axis in run) for run in held), tuple(held.index(run) for run in runs)
