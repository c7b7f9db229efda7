"""Topology of Inception v3: towers of square and of flat kernels that meet in concatenations."""

from benchmarks.workloads.layers import Network, Window
from benchmarks.workloads.published import classified, scaled


def inception_v3(width: float = 1.0, size: int = 299, classes: int = 1000) -> Network:
    """Inception v3 without softmax, and without the classifier that only training uses."""
    net = Network("inception_v3", (3, size, size))
    build = _Builder(net, width)
    x = build.conv("stem1", net.input, 32, 3, stride=2)
    x = build.conv("stem2", x, 32, 3)
    x = build.conv("stem3", x, 64, 3, pad=1)
    x = net.max_pool("stem.pool1", x, 3, stride=2)
    x = build.conv("stem4", x, 80)
    x = build.conv("stem5", x, 192, 3)
    x = net.max_pool("stem.pool2", x, 3, stride=2)
    for number, pooled in enumerate((32, 64, 64), start=1):
        x = build.square(f"square{number}", x, pooled)
    x = build.halved("halved1", x)
    for number, channels in enumerate((128, 160, 160, 192), start=1):
        x = build.flat(f"flat{number}", x, channels)
    x = build.halved_again("halved2", x)
    for number in (1, 2):
        x = build.split(f"split{number}", x)
    return classified(net, x, classes)


class _Builder:
    """Appends modules to a network; methods return the name of their result."""

    def __init__(self, net: Network, width: float) -> None:
        self.net, self.width = net, width

    def conv(self, name: str, source: str, channels: int, kernel: Window = 1, stride: int = 1, pad: Window = 0) -> str:
        return self.net.conv(name, source, scaled(channels, self.width), kernel, stride, pad)

    def pooled(self, name: str, x: str, channels: int) -> str:
        return self.conv(f"{name}.project", self.net.average_pool(f"{name}.pool", x, 3, 1, pad=1), channels)

    def square(self, name: str, x: str, pooled: int) -> str:
        """Return 1×1, 5×5, two 3×3 and a pool side by side."""
        five = self.conv(f"{name}.five", self.conv(f"{name}.squeeze5", x, 48), 64, 5, pad=2)
        three = self._two_threes(name, x, 1, 1)
        return self.net.concat(
            f"{name}.concat", self.conv(f"{name}.one", x, 64), five, three, self.pooled(name, x, pooled)
        )

    def halved(self, name: str, x: str) -> str:
        """Return a 3×3, two 3×3 and a pool side by side, of half the image."""
        direct = self.conv(f"{name}.direct", x, 384, 3, stride=2)
        pool = self.net.max_pool(f"{name}.pool", x, 3, stride=2)
        return self.net.concat(f"{name}.concat", direct, self._two_threes(name, x, 2, 0), pool)

    def _two_threes(self, name: str, x: str, stride: int, pad: int) -> str:
        x = self.conv(f"{name}.three1", self.conv(f"{name}.squeeze3", x, 64), 96, 3, pad=1)
        return self.conv(f"{name}.three2", x, 96, 3, stride, pad)

    def flat(self, name: str, x: str, channels: int) -> str:
        """Return 1×1, one and two pairs of 1×7 and 7×1, and a pool side by side. ``channels``: between them."""
        one = self.conv(f"{name}.one", x, 192)
        pair = self._flats(f"{name}.pair", self.conv(f"{name}.squeeze1", x, channels), (channels, 192), wide_first=True)
        pairs = self.conv(f"{name}.squeeze2", x, channels)
        pairs = self._flats(f"{name}.pairs", pairs, (channels, channels, channels, 192), wide_first=False)
        return self.net.concat(f"{name}.concat", one, pair, pairs, self.pooled(name, x, 192))

    def _flats(self, name: str, x: str, channels: tuple[int, ...], wide_first: bool) -> str:
        """Apply 1×7 and 7×1 in turns."""
        for number, count in enumerate(channels):
            wide = (number % 2 == 0) == wide_first
            kernel, pad = ((1, 7), (0, 3)) if wide else ((7, 1), (3, 0))
            x = self.conv(f"{name}{number + 1}", x, count, kernel, pad=pad)
        return x

    def halved_again(self, name: str, x: str) -> str:
        """Return a 3×3, a 7×7 in two with a 3×3, and a pool side by side, of half the image."""
        three = self.conv(f"{name}.three", self.conv(f"{name}.squeeze3", x, 192), 320, 3, stride=2)
        seven = self._flats(f"{name}.seven", self.conv(f"{name}.squeeze7", x, 192), (192, 192), wide_first=True)
        seven = self.conv(f"{name}.last", seven, 192, 3, stride=2)
        return self.net.concat(f"{name}.concat", three, seven, self.net.max_pool(f"{name}.pool", x, 3, stride=2))

    def split(self, name: str, x: str) -> str:
        """Return 1×1, twice 1×3 beside 3×1, and a pool side by side."""
        one = self.conv(f"{name}.one", x, 320)
        three = self._beside(f"{name}.three", self.conv(f"{name}.squeeze3", x, 384))
        deep = self.conv(f"{name}.deep", self.conv(f"{name}.squeeze", x, 448), 384, 3, pad=1)
        deep = self._beside(f"{name}.deep", deep)
        return self.net.concat(f"{name}.concat", one, three, deep, self.pooled(name, x, 192))

    def _beside(self, name: str, x: str) -> str:
        wide = self.conv(f"{name}.wide", x, 384, (1, 3), pad=(0, 1))
        return self.net.concat(f"{name}.both", wide, self.conv(f"{name}.high", x, 384, (3, 1), pad=(1, 0)))
