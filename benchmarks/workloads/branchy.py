"""Topologies with branches: networks whose operators can run in many orders.

Each follows the shape of a published family in fewer blocks. ``width`` scales the channels; ``size`` is the image.
Where a family averages over windows these take the maximum, which does not round: whole outputs can be compared bit for
bit.
"""

from collections.abc import Callable

import networkx as nx

from benchmarks.workloads.layers import Activation, Network

# 1×1; 1×1 and 3×3; 1×1 and 5×5; 1×1 behind the pool: output channels of modules 3a to 4e of Inception v1
INCEPTION_MODULES = [
    (64, (96, 128), (16, 32), 32),
    (128, (128, 192), (32, 96), 64),
    (192, (96, 208), (16, 48), 64),
    (160, (112, 224), (24, 64), 64),
    (128, (128, 256), (24, 64), 64),
    (112, (144, 288), (32, 64), 64),
    (256, (160, 320), (32, 128), 128),
]
INCEPTION_POOL_AFTER = 2  #: modules at the larger resolution

DENSENET_BOTTLENECK = 4  #: channels of the 1×1 convolution, in growths
SHUFFLE_BOTTLENECK = 4  #: output channels of a unit, in those of its depthwise convolution

WIRED_NEIGHBOURS = 4
WIRED_REWIRING = 0.75  #: probabilities of the published small regime


def inception(
    width: float = 0.5, size: int = 112, modules: int = len(INCEPTION_MODULES), classes: int = 100
) -> Network:
    """Inception v1-shaped: modules of four branches that meet in a concatenation."""
    net = Network("inception", (3, size, size))
    x = net.conv("stem1", net.input, _channels(64, width), 3, stride=2, pad=1)
    x = net.conv("stem2", x, _channels(64, width))
    x = net.max_pool("stem.pool", net.conv("stem3", x, _channels(192, width), 3, pad=1), 3, stride=2, pad=1)
    for number, module in enumerate(INCEPTION_MODULES[:modules], start=1):
        x = _inception_module(net, f"module{number}", x, module, width)
        if number == INCEPTION_POOL_AFTER:
            x = net.max_pool("pool", x, 3, stride=2, pad=1)
    return classified(net, x, classes)


def _inception_module(net: Network, name: str, x: str, module: tuple, width: float) -> str:
    direct, (squeeze3, expand3), (squeeze5, expand5), pooled = module
    one = net.conv(f"{name}.one", x, _channels(direct, width))
    three = net.conv(f"{name}.squeeze3", x, _channels(squeeze3, width))
    three = net.conv(f"{name}.three", three, _channels(expand3, width), 3, pad=1)
    five = net.conv(f"{name}.squeeze5", x, _channels(squeeze5, width))
    five = net.conv(f"{name}.five", five, _channels(expand5, width), 5, pad=2)
    pool = net.max_pool(f"{name}.pool", x, 3, stride=1, pad=1)
    pool = net.conv(f"{name}.project", pool, _channels(pooled, width))
    return net.concat(f"{name}.concat", one, three, five, pool)


def densenet(growth: int = 24, size: int = 64, blocks: tuple[int, ...] = (4, 6, 6), classes: int = 100) -> Network:
    """DenseNet-shaped: every layer of a block reads the results of all before it."""
    net = Network("densenet", (3, size, size))
    x = net.conv("stem", net.input, 2 * growth, 3, stride=2, pad=1)
    for block, layers in enumerate(blocks, start=1):
        for layer in range(1, layers + 1):
            name = f"block{block}.{layer}"
            made = net.conv(f"{name}.bottleneck", x, DENSENET_BOTTLENECK * growth)
            x = net.concat(f"{name}.concat", x, net.conv(f"{name}.conv", made, growth, 3, pad=1))
        if block < len(blocks):
            x = net.conv(f"transition{block}", x, net.channels(x) // 2)
            x = net.max_pool(f"transition{block}.pool", x, 2, stride=2)
    return classified(net, x, classes)


def shufflenet(
    channels: int = 192, size: int = 112, stages: tuple[int, ...] = (4, 4), groups: int = 4, classes: int = 100
) -> Network:
    """ShuffleNet v1-shaped: units of grouped convolutions and a channel shuffle beside a shortcut, which is a pool and
    joined by a concatenation where the unit halves the image. ``channels`` are those of the first stage."""
    net = Network("shufflenet", (3, size, size))
    x = net.conv("stem", net.input, channels // 4, 3, stride=2, pad=1)
    for stage, units in enumerate(stages, start=1):
        for unit in range(1, units + 1):
            x = _shuffle_unit(net, f"stage{stage}.{unit}", x, channels << (stage - 1), groups, unit == 1)
    return classified(net, x, classes)


def _shuffle_unit(net: Network, name: str, source: str, channels: int, groups: int, halves: bool) -> str:
    hidden = channels // SHUFFLE_BOTTLENECK
    made = channels - net.channels(source) if halves else channels
    x = net.conv(f"{name}.squeeze", source, hidden, groups=groups)
    x = net.shuffle(f"{name}.shuffle", x, groups)
    stride = 2 if halves else 1
    x = net.conv(f"{name}.depthwise", x, hidden, 3, stride, 1, hidden, Activation.NONE)
    if halves:
        x = net.conv(f"{name}.expand", x, made, groups=groups)
        return net.concat(f"{name}.concat", net.max_pool(f"{name}.pool", source, 3, stride=2, pad=1), x)
    x = net.conv(f"{name}.expand", x, made, groups=groups, activation=Activation.NONE, residual=True)
    return net.add(f"{name}.add", source, x, Activation.RELU)


def nasnet(channels: int = 32, size: int = 32, cells: int = 4, classes: int = 100) -> Network:
    """Return a network of cells like the normal cell of NASNet-A: each reads the results of the two before it, adds
    pairs of separable convolutions, pools and shortcuts, and joins the five sums."""
    net = Network("nasnet", (3, size, size))
    before = net.conv("stem1", net.input, channels, 3, pad=1)
    x = net.conv("stem2", before, channels, 3, pad=1)
    for number in range(1, cells + 1):
        before, x = x, _nasnet_cell(net, f"cell{number}", before, x, channels)
    return classified(net, x, classes)


def _nasnet_cell(net: Network, name: str, before: str, last: str, channels: int) -> str:
    p = net.conv(f"{name}.before", before, channels)
    h = net.conv(f"{name}.last", last, channels)
    pairs = [
        (separable(net, f"{name}.1a", h, channels, 3), h),
        (separable(net, f"{name}.2a", p, channels, 3), separable(net, f"{name}.2b", h, channels, 5)),
        (net.max_pool(f"{name}.3a", h, 3, stride=1, pad=1), p),
        (net.max_pool(f"{name}.4a", p, 3, 1, pad=1), net.max_pool(f"{name}.4b", p, 5, stride=1, pad=2)),
        (separable(net, f"{name}.5a", p, channels, 5), separable(net, f"{name}.5b", p, channels, 3)),
    ]
    sums = [net.add(f"{name}.{number}", *pair) for number, pair in enumerate(pairs, start=1)]
    return net.concat(f"{name}.concat", *sums)


def random_wired(
    channels: int = 48, size: int = 64, nodes: int = 12, stages: int = 2, seed: int = 1, classes: int = 100
) -> Network:
    """Random-wired: each stage is a Watts-Strogatz graph with edges from lower to higher numbers. A node is a separable
    convolution of the sum of what it reads; those that read nothing read the stage's input at half of its size, and
    the sum of those that nobody reads is the stage's result."""
    net = Network("random_wired", (3, size, size))
    x = net.conv("stem", net.input, channels // 2, 3, pad=1)
    for stage in range(1, stages + 1):
        wiring = nx.watts_strogatz_graph(nodes, WIRED_NEIGHBOURS, WIRED_REWIRING, seed=seed + stage)
        x = _wired_stage(net, f"stage{stage}", x, channels << (stage - 1), wiring)
    return classified(net, x, classes)


def _wired_stage(net: Network, name: str, source: str, channels: int, wiring: nx.Graph) -> str:
    entry = net.conv(f"{name}.entry", source, channels, 3, stride=2, pad=1)
    results: dict[int, str] = {}
    for node in sorted(wiring):
        read = [results[other] for other in sorted(wiring[node]) if other < node]
        x = _sum(net, f"{name}.{node}.sum", read or [entry])
        results[node] = separable(net, f"{name}.{node}", x, channels, 3)
    unread = [results[node] for node in sorted(wiring) if all(other < node for other in wiring[node])]
    return _sum(net, f"{name}.exit", unread)


def _sum(net: Network, name: str, sources: list[str]) -> str:
    x = sources[0]
    for number, source in enumerate(sources[1:], start=1):
        x = net.add(f"{name}{number}", x, source)
    return x


def separable(net: Network, name: str, source: str, channels: int, kernel: int) -> str:
    """Add a depthwise convolution and a pointwise one; return their result."""
    depth = net.channels(source)
    x = net.conv(f"{name}.depthwise", source, depth, kernel, 1, kernel // 2, depth, Activation.NONE)
    return net.conv(f"{name}.pointwise", x, channels)


def classified(net: Network, x: str, classes: int) -> Network:
    """Return ``net`` with an average over all pixels of ``x`` and a fully connected layer at its end."""
    net.gemm("logits", net.flatten("flat", net.global_average_pool("last.pool", x)), classes)
    return net


def _channels(channels: int, width: float) -> int:
    return max(4, round(channels * width / 4) * 4)


NETWORKS: dict[str, Callable[[], Network]] = {
    "inception": inception,
    "densenet": densenet,
    "shufflenet": shufflenet,
    "nasnet": nasnet,
    "random_wired": random_wired,
    "inception_small": lambda: inception(1 / 16, 32, modules=2, classes=10),
    "densenet_small": lambda: densenet(4, 16, (2, 3), classes=10),
    "shufflenet_small": lambda: shufflenet(32, 16, (2,), 2, classes=10),
    "nasnet_small": lambda: nasnet(8, 8, cells=1, classes=10),
    "random_wired_small": lambda: random_wired(8, 16, nodes=6, stages=1, classes=10),
}
