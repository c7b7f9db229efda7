"""A convolution and what follows it channel by channel, as depthwise convolutions do, in groups of channels.

A group of the channels of the first convolution stays on chip until the last operator has read it. Nothing is computed
twice, and what the last ones make is joined in place.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from compiler import ir
from compiler.plan.layers.origin import even_pieces

UNIT = 16  #: channels that stay together, so that the arrays are full


def can_be_cut_by_channels(graph: ir.Graph, run: Sequence[ir.Operation]) -> bool:
    """Return whether ``run`` is a convolution over all channels and depthwise ones behind it, each of which reads what
    the one ahead makes."""
    first = run[0]
    if len(run) < 2 or not all(type(op) is ir.Conv for op in run) or graph.tensors[first.inputs[0]].nhwc[0] != 1:
        return False
    joined = all(one.output == other.inputs[0] for one, other in pairwise(run))
    return joined and first.groups == 1 and all(op.groups == op.weights.shape[0] for op in run[1:])  # type: ignore


def channel_groups(channels: int, pieces: int) -> list[tuple[int, int]]:
    """Return (first, end) of ``pieces`` groups of ``channels``, of whole units but for the last."""
    units = even_pieces(-(-channels // UNIT), pieces)
    return [(first * UNIT, min(end * UNIT, channels)) for first, end in units]


def cut_by_channels(graph: ir.Graph, run: Sequence[ir.Operation], pieces: int) -> ir.Graph:
    """``graph`` with ``run`` in ``pieces`` groups of channels."""
    split, last = replace(graph, tensors=dict(graph.tensors)), run[-1]
    made, parts = list[ir.Operation](), list[str]()
    for number, (low, high) in enumerate(channel_groups(graph.tensors[last.output].shape[-1], pieces)):
        name = run[0].inputs[0]
        for op in run:
            assert isinstance(op, ir.Conv)
            whole, source, scale = graph.tensors[op.output], name, op.requantise.scale
            name = f"{whole.name}/part{number}"
            shape = (*whole.shape[:-1], high - low)
            split.tensors[name] = replace(whole, name=name, shape=shape, onnx_name="", view=(), perm=())
            made.append(
                replace(
                    op, name=f"{op.name}/part{number}", inputs=[source], output=name, weights=op.weights[low:high],
                    bias=op.bias[low:high], groups=1 if op is run[0] else high - low,
                    requantise=replace(op.requantise, scale=scale[low:high] if scale.size > 1 else scale),
                )
            )  # fmt: skip
        parts.append(name)
    joined = ir.Concat(f"{last.name}/joined", parts, last.output, axis=len(graph.tensors[last.output].shape) - 1)
    place = graph.ops.index(last)
    ahead, behind = ([op for op in ops if op not in run] for ops in (graph.ops[:place], graph.ops[place:]))
    split.ops = [*ahead, *made, joined, *behind]
    for op in run[:-1]:
        del split.tensors[op.output]
    return split
