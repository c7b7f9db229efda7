"""Networks of signals and point clouds: convolutions of one dimension."""

import numpy as np

from benchmarks.workloads.exported.graph import ExportedGraph

HEADS = 6


def whisper_tiny_encoder(net: ExportedGraph, width: int = 384, layers: int = 4) -> tuple[str, ...]:
    """An encoder of the shape of Whisper-tiny's: spectrogram [1, 80, frames] → [1, frames / 2, width]."""
    x = net.conv("input", width, 3, act="gelu", norm=False)
    x = net.transpose(net.conv(x, width, 3, stride=2, act="gelu", norm=False), 0, 2, 1)
    x = net.add(x, net.constant(net.drawn(net.shapes[x][1:], 0.5)))
    for _ in range(layers):
        x = net.add(x, _self_attention(net, net.layer_norm(x)))
        inner = net.linear(net.layer_norm(x), 4 * width, "gelu")
        x = net.add(x, net.linear(inner, width))
    return (net.layer_norm(x),)


def _self_attention(net: ExportedGraph, x: str) -> str:
    _, length, width = net.shapes[x]
    query, key, value = (net.linear(x, width, bias=bias) for bias in (True, False, True))
    scale = (width // HEADS) ** -0.25
    turned = (_heads(net, query, 0, 2, 1, 3), _heads(net, key, 0, 2, 3, 1))
    scores = net.matmul(*(net.mul(one, net.constant(scale)) for one in turned))
    mixed = net.matmul(net.softmax(scores), _heads(net, value, 0, 2, 1, 3))
    return net.linear(net.reshape(net.transpose(mixed, 0, 2, 1, 3), 1, length, width), width)


def _heads(net: ExportedGraph, x: str, *perm: int) -> str:
    _, length, width = net.shapes[x]
    return net.transpose(net.reshape(x, 1, length, HEADS, width // HEADS), *perm)


def tcn(net: ExportedGraph, channels: int, blocks: int = 6) -> tuple[str, ...]:
    """Temporal convolutional network: pairs of causal convolutions, dilated twice as much from block to block, beside
    a shortcut; each reads zeros in front. One score a class from the last time step."""
    x = net.conv("input", channels, norm=False)
    for block in range(blocks):
        y = x
        for _ in range(2):
            dilation = 1 << block
            y = net.pad(y, 0, 0, 2 * dilation, 0, 0, 0)
            y = net.conv(y, channels, 3, pad=0, dilation=dilation, act="relu")
        x = net.relu(net.add(y, x))
    return (net.linear(net.gather(x, -1, 2), 10),)


def pointnet(net: ExportedGraph, classes: int = 40) -> tuple[str, ...]:
    """PointNet's classifier without softmax: [1, 3, points], turned by a matrix that a small PointNet computes."""
    turn = _dense(net, _maxima(net, "input", last="relu"), 9)
    turn = net.reshape(net.add(turn, net.constant(np.eye(3).reshape(1, 9))), -1, 3, 3)
    x = net.transpose(net.matmul(net.transpose("input", 0, 2, 1), turn), 0, 2, 1)
    return (_dense(net, _maxima(net, x, last=""), classes),)


def _maxima(net: ExportedGraph, x: str, last: str) -> str:
    """[1, 1024]: the maximum over all points."""
    x = net.conv(net.conv(x, 64, act="relu"), 128, act="relu")
    x = net.conv(x, 1024, act=last)
    return net.reshape(net.reduced("ReduceMax", x, [2], keepdims=True), -1, 1024)


def _dense(net: ExportedGraph, x: str, features: int) -> str:
    """Two fully connected layers with normalisations that are not folded, and one without."""
    for hidden in (512, 256):
        x = net.batch_norm(net.linear(x, hidden), "relu")
    return net.linear(x, features)
