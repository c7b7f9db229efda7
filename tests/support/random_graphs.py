"""Random quantised graphs: a few operators of every kind that the front end takes, with several readers and outputs."""

import numpy as np
import onnx

from tests.support.onnx_models import Net

_UNARY = ("Relu", "Sigmoid", "Tanh", "HardSwish", "LeakyRelu")


class _Graph:
    """A net under construction. ``tensors``: 8-bit images by name, with (channels, height, width), scale and zero
    point."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.dtype = str(self.rng.choice(["int8", "uint8"]))
        self.net = Net(opset=14, seed=seed)
        shape = (int(self.rng.integers(1, 9)), int(self.rng.integers(3, 10)), int(self.rng.integers(3, 10)))
        name = self.net.input((1, *shape), self.dtype)
        self.tensors = {name: (shape, *self.parameters())}
        self.read: set[str] = set()

    def parameters(self) -> tuple[float, int]:
        """A scale and a zero point."""
        low = 0 if self.dtype == "int8" else 100
        return float(np.float32(self.rng.uniform(0.02, 0.2))), low + int(self.rng.integers(-20, 21))

    def pick(self, shape=None) -> str:
        """A tensor, of ``shape`` if there are several."""
        names = [name for name, (own, *_) in self.tensors.items() if shape in (None, own)]
        return str(self.rng.choice(names[-4:]))

    def real(self, name: str) -> str:
        """The tensor dequantised."""
        self.read.add(name)
        _, scale, zero = self.tensors[name]
        return self.net.dq(name, scale, zero, self.dtype)

    def store(self, real: str, shape, like: str | None = None) -> str:
        """A real result quantised, sometimes as ``like`` is."""
        same = like is not None and self.rng.random() < 0.5
        scale, zero = self.tensors[like][1:] if same else self.parameters()
        name = self.net.q(real, scale, zero, self.dtype)
        self.tensors[name] = (tuple(shape), scale, zero)
        return name

    def step(self) -> None:
        """One operator more."""
        kinds = [self.conv, self.depthwise, self.pool, self.unary, self.add, self.concat, self.pad, self.cut]
        kinds[int(self.rng.integers(len(kinds)))]()

    def conv(self) -> None:
        x = self.pick()
        (c, h, w), scale, _ = self.tensors[x]
        kernel, out, stride = int(self.rng.choice([1, 3])), int(self.rng.integers(1, 17)), int(self.rng.integers(1, 3))
        weights = (out, c, kernel, kernel)
        y = self.net.conv(self.real(x), scale, weights, strides=[stride] * 2, pads=[kernel // 2] * 4)
        self.store(y, (out, (h - 1) // stride + 1, (w - 1) // stride + 1))

    def depthwise(self) -> None:
        x = self.pick()
        (c, h, w), scale, _ = self.tensors[x]
        self.store(self.net.conv(self.real(x), scale, (c, 1, 3, 3), pads=[1] * 4, group=c), (c, h, w))

    def pool(self) -> None:
        x = self.pick()
        (c, h, w), *_ = self.tensors[x]
        if min(h, w) < 2:
            return
        kind = str(self.rng.choice(["MaxPool", "AveragePool"]))
        y = self.net.node(kind, [self.real(x)], kernel_shape=[2, 2], strides=[2, 2])
        self.store(y, (c, h // 2, w // 2), x)

    def unary(self) -> None:
        x = self.pick()
        self.store(self.net.node(str(self.rng.choice(_UNARY)), [self.real(x)]), self.tensors[x][0], x)

    def add(self) -> None:
        x = self.pick()
        shape = self.tensors[x][0]
        operands = [self.real(x), self.real(self.pick(shape))]
        self.store(self.net.node(str(self.rng.choice(["Add", "Mul"])), operands), shape)

    def concat(self) -> None:
        x = self.pick()
        c, h, w = self.tensors[x][0]
        others = [name for name, (own, *_) in self.tensors.items() if own[1:] == (h, w)]
        y = str(self.rng.choice(others))
        joined = self.net.node("Concat", [self.real(x), self.real(y)], axis=1)
        self.store(joined, (c + self.tensors[y][0][0], h, w), x)

    def pad(self) -> None:
        x = self.pick()
        (c, h, w), *_ = self.tensors[x]
        top, left, bottom, right = (int(n) for n in self.rng.integers(0, 2, 4))
        pads = self.net.const(np.array([0, 0, top, left, 0, 0, bottom, right], np.int64))
        y = self.net.node("Pad", [self.real(x), pads, self.net.const(float(self.rng.integers(-1, 2)), np.float32)])
        self.store(y, (c, h + top + bottom, w + left + right))

    def cut(self) -> None:
        x = self.pick()
        (c, h, w), *_ = self.tensors[x]
        count = int(self.rng.integers(1, c + 1))
        first = int(self.rng.integers(0, c - count + 1))
        bounds = [self.net.const(np.array([n], np.int64)) for n in (first, first + count, 1)]
        self.store(self.net.node("Slice", [self.real(x), *bounds]), (count, h, w), x)


def random_graph(seed: int) -> onnx.ModelProto:
    """A model of up to eight operators; every tensor that nothing reads is an output."""
    graph = _Graph(seed)
    for _ in range(int(graph.rng.integers(1, 9))):
        graph.step()
    if len(graph.tensors) == 1:
        graph.conv()
    ends = [name for name in list(graph.tensors)[1:] if name not in graph.read]
    return graph.net.model(*ends, dtype=graph.dtype)
