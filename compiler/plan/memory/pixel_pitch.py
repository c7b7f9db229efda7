"""Pixels of tensors in LV2 at word boundaries, where that makes loading faster.

A depthwise or packed convolution loads the channels of one tile at a time: from every pixel a run as long as a word of
LV2, or the few channels that are left. If the pitch of the pixels is not a multiple of the word, some of these runs lie
in two words and take twice as long. Layers that load all channels of a pixel prefer pixels without gaps, which are one
run.
"""

import math
from collections.abc import Sequence

from compiler import ir
from compiler.plan.layers.flow import layer_flow
from compiler.plan.layers.layer import ConvLayer, Layer
from hw.contract.params import SocParams

_GAIN = 1.1  #: the factor by which loads must get shorter to be worth the bytes


def words_per_run(pitch: int, channels: int, word: int) -> float:
    """Return the words of ``word`` bytes that the ``channels`` bytes of a pixel lie in, on average over pixels
    ``pitch`` bytes apart: LD1 takes a cycle for each."""
    places = range(0, word, math.gcd(pitch, word))
    return sum(-(-(place + channels) // word) for place in places) / len(places)


def padded_pitches(graph: ir.Graph, layers: Sequence[Layer], params: SocParams) -> dict[str, int]:
    """Return pitches in bytes by tensor, for those that convolutions write, and that are only read by such as take the
    channels of a tile at a time."""
    word, pitches, flow = params.lv1_word, {}, layer_flow(graph, layers)
    for maker in layers:
        name, readers = maker.output, list(flow.successors(maker))
        outside = any(port.tensor == name for port in graph.outputs)
        if outside or not isinstance(maker, ConvLayer) or not all(_by_tiles(layer) for layer in readers):
            continue
        channels = graph.tensors[name].nhwc[3]
        pitch = -(-channels // word) * word
        now, then = (words_per_run(step, min(channels, word), word) for step in (channels, pitch))
        if readers and now >= _GAIN * then:
            pitches[name] = pitch
    return pitches


def _by_tiles(layer: Layer) -> bool:
    return isinstance(layer, ConvLayer) and layer.by_channels and not layer.addition
