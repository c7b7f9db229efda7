"""Permutations that undo each other in part: what an exporter writes as reshape, transpose, reshape.

A shuffle of channels, seen in ONNX, moves the channels of an image that lies channels first. Memory has channels last,
so the importer makes it two permutations with a reshape between them: into the order of ONNX, and back. Together they
only move channels within each pixel.
"""

import math

from compiler.ir import Graph, Permute, Reshape, Tensor


def merge_permutes(graph: Graph) -> None:
    """Replace each permutation of a (reshaped) permutation by one of the first one's input, where the reshape only
    joins axes that stay neighbours. What nothing reads any more stays for the importer to drop."""
    makers = {op.output: op for op in graph.ops}
    for second in list(graph.ops):
        middle = makers.get(second.inputs[0]) if isinstance(second, Permute) else None
        first = makers.get(middle.inputs[0]) if isinstance(middle, Reshape) else middle
        if not (isinstance(second, Permute) and isinstance(first, Permute)):
            continue
        made, read = graph.tensors[first.output], graph.tensors[second.inputs[0]]
        groups = _joined_axes(made.shape, read.shape)
        if groups is None:
            continue
        source = graph.tensors[first.inputs[0]]
        perm = tuple(first.perm[axis] for group in second.perm for axis in groups[group])
        joined = f"{second.output}:joined"
        while joined in graph.tensors:
            joined += "'"
        shape = tuple(source.shape[axis] for axis in perm)
        graph.tensors[joined] = Tensor(joined, shape, source.dtype, source.scale, source.zero_point)
        move = Permute(second.name, [source.name], joined, nodes=[*first.nodes, *second.nodes], perm=perm)
        back = Reshape(f"{second.name}:joined", [joined], second.output)
        place = next(i for i, op in enumerate(graph.ops) if op is second)
        graph.ops[place : place + 1] = [move, back]
        makers |= {joined: move, second.output: back}


def _joined_axes(fine: tuple[int, ...], coarse: tuple[int, ...]) -> list[tuple[int, ...]] | None:
    """For each axis of ``coarse`` the neighbouring axes of ``fine`` that it joins; None if it splits one."""
    groups, axis = [], 0
    for extent in coarse:
        first = axis
        if extent == 1 and axis < len(fine) and fine[axis] == 1:
            axis += 1
        while math.prod(fine[first:axis]) < extent and axis < len(fine):
            axis += 1
        if math.prod(fine[first:axis]) != extent:
            return None
        groups.append(tuple(range(first, axis)))
    if math.prod(fine[axis:]) != 1 or not groups:
        return None
    groups[-1] = (*groups[-1], *range(axis, len(fine)))
    return groups
