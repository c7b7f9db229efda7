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
    convs = [op for op in run if type(op) is ir.Conv]
    if len(run) < 2 or len(convs) < len(run) or graph.tensors[run[0].inputs[0]].nhwc[0] != 1:
        return False
    joined = all(one.output == other.inputs[0] for one, other in pairwise(run))
    depthwise = all(op.groups == op.weights.shape[0] and op.weights.shape[3] == 1 for op in convs[1:])
    return joined and convs[0].groups == 1 and depthwise


def channel_groups(channels: int, pieces: int) -> list[tuple[int, int]]:
    """Return (first, end) of ``pieces`` groups of ``channels``, of whole units but for the last."""
    units = even_pieces(-(-channels // UNIT), pieces)
    return [(first * UNIT, min(end * UNIT, channels)) for first, end in units]


def channel_parts(
    graph: ir.Graph, run: Sequence[ir.Operation], pieces: int
) -> tuple[list[ir.Operation], list[str]]:  # fmt: skip
    """Return ``run`` in ``pieces`` groups of channels, whose tensors are added to ``graph``, and what each part of the
    last operator makes."""
    made, parts = list[ir.Operation](), list[str]()
    for number, (low, high) in enumerate(channel_groups(graph.tensors[run[-1].output].shape[-1], pieces)):
        name = run[0].inputs[0]
        for op in run:
            assert isinstance(op, ir.Conv)
            whole, source, scale = graph.tensors[op.output], name, op.requantise.scale
            name = f"{whole.name}/part{number}"
            shape = (*whole.shape[:-1], high - low)
            graph.tensors[name] = replace(whole, name=name, shape=shape, onnx_name="", view=(), perm=())
            made.append(
                replace(
                    op, name=f"{op.name}/part{number}", inputs=[source], output=name, weights=op.weights[low:high],
                    bias=op.bias[low:high], groups=1 if op is run[0] else high - low,
                    requantise=replace(op.requantise, scale=scale[low:high] if scale.size > 1 else scale),
                )
            )  # fmt: skip
        parts.append(name)
    return made, parts
