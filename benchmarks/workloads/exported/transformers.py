"""Vision networks with attention, or of that shape: ViT and ConvNeXt of torchvision, and one shaped like MobileViT."""

from benchmarks.workloads.exported.graph import ExportedGraph
from benchmarks.workloads.exported.mobile import inverted_residual

EPSILON = 1e-6
CONVNEXT_TINY = [(96, 3), (192, 3), (384, 9), (768, 3)]
# stride and channels of the inverted residuals of each stage; width and layers of the transformer behind them
MOBILEVIT_S = [
    ([(1, 32)], 0, 0), ([(2, 64), (1, 64), (1, 64)], 0, 0), ([(2, 96)], 144, 2), ([(2, 128)], 192, 4),
    ([(2, 160)], 240, 3),
]  # fmt: skip
PATCH = 2  #: pixels of a patch of MobileViT in height and in width


def vit_b_16(net: ExportedGraph, width: int = 768, layers: int = 12) -> tuple[str, ...]:
    """ViT-B/16 without softmax."""
    x = net.conv("input", width, 16, 16, pad=0, norm=False)
    x = net.transpose(net.reshape(x, 1, width, -1), 0, 2, 1)
    x = net.concat(net.constant(net.drawn((1, 1, width))), x, axis=1)
    x = net.add(x, net.constant(net.drawn(net.shapes[x], 0.5)))
    for _ in range(layers):
        x = net.add(_multi_head(net, net.layer_norm(x, EPSILON), width // 64), x)
        inner = net.linear(net.layer_norm(x, EPSILON), 4 * width, "gelu")
        x = net.add(x, net.linear(inner, width))
    return (net.linear(net.gather(net.layer_norm(x, EPSILON), 0, 1), 1000),)


def _multi_head(net: ExportedGraph, x: str, heads: int) -> str:
    """Attention as ``torch.nn.MultiheadAttention`` is written: the batch is the second dimension in between."""
    _, length, width = net.shapes[x]
    x = net.linear(net.transpose(x, 1, 0, 2), 3 * width)
    x = net.unsqueeze(net.reshape(x, length, 1, 3, width), 0)
    x = net.squeeze(net.transpose(x, 3, 1, 2, 0, 4), 3)
    parts = []
    for part in range(3):
        one = net.reshape(net.gather(x, part, 0), length, heads, width // heads)
        parts.append(net.reshape(net.transpose(one, 1, 0, 2), 1, heads, length, width // heads))
    x = net.reshape(net.transpose(net.attend(*parts), 2, 0, 1, 3), length, width)
    return net.transpose(net.reshape(net.linear(x, width), length, 1, width), 1, 0, 2)


def convnext_tiny(net: ExportedGraph) -> tuple[str, ...]:
    """ConvNeXt-tiny without softmax."""
    x = "input"
    for stage, (channels, blocks) in enumerate(CONVNEXT_TINY):
        if stage:
            x = net.conv(net.channel_norm(x, EPSILON), channels, 2, 2, pad=0, norm=False)
        else:
            x = net.channel_norm(net.conv(x, channels, 4, 4, pad=0, norm=False), EPSILON)
        for _ in range(blocks):
            x = _convnext_block(net, x)
    x = net.channel_norm(net.global_average_pool(x), EPSILON)
    return (net.linear(net.flatten(x), 1000),)


def _convnext_block(net: ExportedGraph, source: str) -> str:
    channels = net.channels(source)
    x = net.conv(source, channels, 7, groups=channels, norm=False)
    x = net.layer_norm(net.transpose(x, 0, 2, 3, 1), EPSILON)
    x = net.linear(net.linear(x, 4 * channels, "gelu"), channels)
    scale = net.constant(net.drawn((channels, 1, 1), 0.1, 0.3))
    return net.add(net.mul(scale, net.transpose(x, 0, 3, 1, 2)), source)


def mobilevit_s(net: ExportedGraph) -> tuple[str, ...]:
    """A network of the shape of MobileViT-S, without softmax."""
    x = net.conv("input", 16, 3, 2, act="silu")
    for residuals, width, layers in MOBILEVIT_S:
        for stride, channels in residuals:
            x = inverted_residual(net, x, 4, 3, stride, channels, "silu")
        if layers:
            x = _mobilevit_block(net, x, width, layers)
    return net.classified(net.conv(x, 640, act="silu"))


def _mobilevit_block(net: ExportedGraph, source: str, width: int, layers: int) -> str:
    _, channels, high, wide = net.shapes[source]
    pixels, patches = PATCH**2, high * wide // PATCH**2
    x = net.conv(net.conv(source, channels, 3, act="silu"), width, norm=False, bias=False)
    x = net.transpose(net.reshape(x, width * high // PATCH, PATCH, wide // PATCH, PATCH), 0, 2, 1, 3)
    x = net.transpose(net.reshape(x, 1, width, patches, pixels), 0, 3, 2, 1)
    x = net.reshape(x, pixels, patches, width)
    for _ in range(layers):
        x = net.add(x, _packed(net, net.layer_norm(x), 4))
        x = net.add(x, net.linear(net.linear(net.layer_norm(x), 2 * width, "silu"), width))
    x = net.transpose(net.reshape(net.layer_norm(x), 1, pixels, patches, width), 0, 3, 2, 1)
    x = net.reshape(x, width * high // PATCH, wide // PATCH, PATCH, PATCH)
    x = net.reshape(net.transpose(x, 0, 2, 1, 3), 1, width, high, wide)
    x = net.conv(x, channels, act="silu")
    return net.conv(net.concat(source, x), channels, 3, act="silu")


def _packed(net: ExportedGraph, x: str, heads: int) -> str:
    """Attention with one product for queries, keys and values: [batch, length, width]."""
    batch, length, width = net.shapes[x]
    packed = net.reshape(net.linear(x, 3 * width), batch, length, 3, heads, width // heads)
    parts = net.split(net.transpose(packed, 2, 0, 3, 1, 4), 1, 1, 1, axis=0)
    mixed = net.attend(*(net.squeeze(part, 0) for part in parts))
    return net.linear(net.reshape(net.transpose(mixed, 0, 2, 1, 3), batch, length, width), width)
