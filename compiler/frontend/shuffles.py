"""Shuffles of channels in the form that costs least.

A shuffle deals the groups of channels of a pixel out in turn. The same bytes are an image in which each pixel is as
many columns as it has groups, of the channels of a group each. A 1x1 convolution behind the shuffle is one over so many
columns of that image, with the columns of its weights in another order: then nothing is shuffled. Where others read the
result, a shuffle remains. What nobody reads of it is not computed: a part of its channels comes from a part of those of
each column. A depthwise convolution in between works on the channels as they lie, and what it makes is shuffled: by its
readers.
"""

from dataclasses import replace

import numpy as np

from compiler.frontend.source import free_name
from compiler.ir import Conv, Graph, Operation, Permute, Reshape, Shuffle, Slice, Tensor

_TILE, _WORD = 32, 8  #: channels of the result, and those of the input in a cycle, of the arrays of most machines
_GROUP = 16  #: channels of a column that a group of a convolution must read, so that few cycles have fewer than a word


def deal_channels(graph: Graph) -> None:
    """Make shuffles of permutations, equal ones once, and bring them next to those readers that cannot do without. What
    nothing reads any more stays for the importer to drop."""
    _name_columns(graph)
    for rewrite in (_parts, _behind_depthwise, _convolutions):
        for op in list(graph.ops):
            if isinstance(op, Shuffle):
                rewrite(graph, op)


def _name_columns(graph: Graph) -> None:
    """Replace permutations that deal out channels by shuffles of columns."""
    known: dict[tuple[str, int], str] = {}
    for op in list(graph.ops):
        rank = len(op.perm) if isinstance(op, Permute) else 0
        if not isinstance(op, Permute) or op.perm != (*range(rank - 2), rank - 1, rank - 2):
            continue
        groups, depth = graph.tensors[op.inputs[0]].shape[-2:]
        image = _image(graph, op.inputs[0], groups * depth)
        if image is None or not _pays(groups, depth):
            continue
        images, height, width, _ = image
        key, made = (graph.roots()[op.inputs[0]], groups), list[Operation]()
        if key not in known:
            columns = _like(graph, op.inputs[0], f"{op.output}:columns", (images, height, width * groups, depth))
            known[key] = _like(graph, op.inputs[0], f"{op.output}:dealt", (images, height, width, depth * groups))
            made = [
                Reshape(columns, [op.inputs[0]], columns),
                Shuffle(op.name, [columns], known[key], nodes=op.nodes, groups=groups),
            ]
        _replace(graph, op, [*made, Reshape(f"{op.output}:groups", [known[key]], op.output)])


def _image(graph: Graph, name: str, channels: int) -> tuple[int, ...] | None:
    """Return the shape of the image of so many channels whose bytes ``name`` has; None if they are of none."""
    roots = graph.roots()
    same = (tensor.shape for other, tensor in graph.tensors.items() if roots[other] == roots[name])
    return next((shape for shape in same if len(shape) == 4 and shape[3] == channels), None)


def _pays(groups: int, depth: int) -> bool:
    """Return whether a tile of a shuffle of ``groups`` with ``depth`` channels each takes fewer cycles for a pixel if
    it reads its part of each group than if it reads all channels."""
    return groups * -(-_TILE // (groups * _WORD)) < -(-groups * depth // _WORD)


def _parts(graph: Graph, op: Shuffle) -> None:
    """Where only parts of the result of ``op`` are read, let each be a shuffle of a part of the columns."""
    found = _readers(graph, op)
    slices = [reader for reader in found or () if isinstance(reader, Slice) and _whole_groups(graph, reader, op.groups)]
    if not slices or len(slices) != len(found or ()):
        return
    images, height, width, _ = graph.tensors[op.inputs[0]].shape
    for part in slices:
        depth = graph.tensors[part.output].shape[3] // op.groups
        taken = _like(graph, op.inputs[0], f"{part.output}:columns", (images, height, width, depth))
        dealt = Shuffle(f"{op.name}/{part.name}", [taken], part.output, nodes=op.nodes, groups=op.groups)
        cut = Slice(part.name, op.inputs, taken, nodes=part.nodes, axis=3, first=part.first // op.groups)
        _replace(graph, part, [cut, dealt])


def _whole_groups(graph: Graph, part: Slice, groups: int) -> bool:
    bounds = part.first, graph.tensors[part.output].shape[3]
    return part.axis == 3 and part.step == 1 and not any(bound % groups for bound in bounds)


def _behind_depthwise(graph: Graph, op: Shuffle) -> None:
    """Where only 1x1 convolutions and depthwise ones in front of such read the result of ``op``, shuffle what the
    depthwise ones make instead."""
    found = _readers(graph, op) or []
    convs = [reader for reader in found if isinstance(reader, Conv) and _takes_any_order(graph, op, reader)]
    between = [reader for reader in found if isinstance(reader, Conv) and _is_depthwise(reader)]
    if not isinstance(graph.producer(op.inputs[0]), Reshape) or len(convs) + len(between) != len(found):
        return
    behind = [_readers(graph, conv) or [conv] for conv in between]
    if not all(isinstance(one, Conv) and _takes_any_order(graph, op, one) for readers in behind for one in readers):
        return
    for conv in between:
        images, height, width, channels = graph.tensors[conv.output].shape
        depth, source = channels // op.groups, graph.tensors[op.output].shape
        order = np.arange(channels).reshape(depth, op.groups).T.reshape(-1)
        whole = _like(graph, op.inputs[0], f"{conv.output}:whole", source)
        made = _like(graph, conv.output, f"{conv.output}:made", (images, height, width, channels))
        columns = _like(graph, conv.output, f"{conv.output}:columns", (images, height, width * op.groups, depth))
        how = conv.requantise
        scale = how.scale if np.size(how.scale) == 1 else np.asarray(how.scale)[order]
        moved = replace(
            conv, inputs=[whole], output=made, weights=conv.weights[order], bias=conv.bias[order],
            requantise=replace(how, scale=scale),
        )  # fmt: skip
        _replace(graph, conv, [
            Reshape(whole, op.inputs, whole), moved, Reshape(columns, [made], columns),
            Shuffle(f"{conv.name}/{op.name}", [columns], conv.output, nodes=op.nodes, groups=op.groups),
        ])  # fmt: skip


def _is_depthwise(conv: Conv) -> bool:
    return conv.groups == conv.weights.shape[0] and conv.weights.shape[3] == 1


def _convolutions(graph: Graph, op: Shuffle) -> None:
    """Where only 1x1 convolutions read the result of ``op``, let them read the columns."""
    found = _readers(graph, op) or []
    convs = [reader for reader in found if isinstance(reader, Conv) and _takes_any_order(graph, op, reader)]
    if len(convs) != len(found):
        return
    for conv in convs:
        outs, _, _, channels = conv.weights.shape
        turned = conv.weights.reshape(outs, 1, channels // op.groups, op.groups).transpose(0, 1, 3, 2)
        strides, nodes = (conv.strides[0], conv.strides[1] * op.groups), [*op.nodes, *conv.nodes]
        weights = np.ascontiguousarray(turned)
        _replace(graph, conv, [replace(conv, inputs=op.inputs, weights=weights, strides=strides, nodes=nodes)])


def _takes_any_order(graph: Graph, op: Shuffle, conv: Conv) -> bool:
    """Return whether ``conv`` costs about the same if it reads the columns that ``op`` deals out: each of its groups
    reads some channels of all of them."""
    depth = graph.tensors[op.inputs[0]].shape[3]
    grouped = conv.groups > 1 and (depth % conv.groups or depth // conv.groups < _GROUP)
    return conv.weights.shape[1:3] == (1, 1) and not any(conv.pads) and not grouped


def _readers(graph: Graph, op: Operation) -> list[Operation] | None:
    """Return those that read the result of ``op``; None if not all read it in its own shape, or an output holds it."""
    roots, shape = graph.roots(), graph.tensors[op.output].shape
    names = {name for name, root in roots.items() if root == op.output}
    found = [reader for reader in graph.ops if names.intersection(reader.inputs) and not reader.renames]
    whole = all(graph.tensors[name].shape == shape for one in found for name in one.inputs if name in names)
    return found if whole and not any(port.tensor in names for port in graph.outputs) else None


def _like(graph: Graph, name: str, wanted: str, shape: tuple[int, ...]) -> str:
    """Return the name of a tensor of ``shape``, quantised like ``name``, which it adds."""
    tensor, free = graph.tensors[name], free_name(wanted, graph.tensors)
    graph.tensors[free] = Tensor(free, shape, tensor.dtype, tensor.scale, tensor.zero_point)
    return free


def _replace(graph: Graph, op: Operation, made: list[Operation]) -> None:
    place = next(i for i, other in enumerate(graph.ops) if other is op)
    graph.ops[place : place + 1] = made
