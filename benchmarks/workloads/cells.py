"""Cells as searches for networks have published them: graphs of few operators whose order decides how much memory they
take.

Genotypes are those of the normal cells: by node two pairs of an operation and the number of what it reads, 0 and 1 for
the results of the two cells before, then the nodes. NASNet-A, AmoebaNet-A and DARTS (second order) as the authors of
DARTS list them (github.com/quark0/darts, ``cnn/genotypes.py``), PNASNet-5 as its authors draw it (Liu and others, 2018,
figure 1). Where a cell averages over windows these take the maximum, and dilated convolutions are dense, as only the
shape matters.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from benchmarks.workloads.branchy import classified, densenet, inception, random_wired, separable
from benchmarks.workloads.layers import Network

SEP3, SEP5, SEP7, POOL, SKIP = "sep3", "sep5", "sep7", "pool", "skip"
Pair = tuple[tuple[str, int], tuple[str, int]]


@dataclass(frozen=True)
class Genotype:
    """Is a cell: ``nodes`` add two operations each, and the ``joined`` of them are its result."""

    nodes: tuple[Pair, ...]
    joined: tuple[int, ...]


GENOTYPES = {
    "nasnet_a": Genotype(
        (
            ((SEP5, 1), (SEP3, 0)), ((SEP5, 0), (SEP3, 0)), ((POOL, 1), (SKIP, 0)), ((POOL, 0), (POOL, 0)),
            ((SEP3, 1), (SKIP, 1)),
        ),
        (2, 3, 4, 5, 6),
    ),
    "amoebanet_a": Genotype(
        (
            ((POOL, 0), (POOL, 1)), ((SEP3, 0), (SEP5, 2)), ((SEP3, 0), (POOL, 3)), ((SEP3, 1), (SKIP, 1)),
            ((SKIP, 0), (POOL, 1)),
        ),
        (4, 5, 6),
    ),
    "darts": Genotype(
        (((SEP3, 0), (SEP3, 1)), ((SEP3, 0), (SEP3, 1)), ((SEP3, 1), (SKIP, 0)), ((SKIP, 0), (SEP3, 2))),
        (2, 3, 4, 5),
    ),
    "pnasnet_5": Genotype(
        (
            ((SEP5, 0), (POOL, 0)), ((SEP7, 1), (POOL, 1)), ((SEP5, 1), (SEP3, 1)), ((SEP3, 4), (POOL, 1)),
            ((SEP3, 0), (SKIP, 1)),
        ),
        (2, 3, 4, 5, 6),
    ),
}  # fmt: skip


def searched(name: str, cells: int = 2, channels: int = 32, size: int = 32) -> Network:
    """Return a network of ``cells`` normal cells of a genotype, each of which reads the two before it."""
    genotype = GENOTYPES[name]
    net = Network(f"cell_{name}", (3, size, size))
    before = net.conv("stem1", net.input, channels, 3, pad=1)
    x = net.conv("stem2", before, channels, 3, pad=1)
    for number in range(1, cells + 1):
        before, x = x, _cell(net, f"cell{number}", genotype, before, x, channels)
    return classified(net, x, 10)


def _cell(net: Network, name: str, genotype: Genotype, before: str, last: str, channels: int) -> str:
    made = [net.conv(f"{name}.before", before, channels), net.conv(f"{name}.last", last, channels)]
    for number, pair in enumerate(genotype.nodes, start=2):
        a, b = (
            _operation(net, f"{name}.{number}{side}", what, made[source], channels)
            for side, (what, source) in zip("ab", pair, strict=True)
        )
        made.append(net.add(f"{name}.{number}", a, b))
    return net.concat(f"{name}.concat", *(made[number] for number in genotype.joined))


def _operation(net: Network, name: str, what: str, source: str, channels: int) -> str:
    if what == SKIP:
        return source
    if what == POOL:
        return net.max_pool(name, source, 3, stride=1, pad=1)
    return separable(net, name, source, channels, int(what[-1]))


#: Seeds of wired cells; those of the second half were never looked at while anything was tuned.
WIRED_SEEDS = (1, 2, 3, 4)
NETWORKS: dict[str, Callable[[], Network]] = {
    **{f"cell_{name}": partial(searched, name) for name in GENOTYPES},
    **{
        f"cell_wired_{seed}": partial(random_wired, 16, 32, nodes=32, stages=1, seed=seed, classes=10)
        for seed in WIRED_SEEDS
    },
    "cell_inception": lambda: inception(1 / 4, 64, modules=2, classes=10),
    "cell_dense": lambda: densenet(16, 32, blocks=(6,), classes=10),
}
