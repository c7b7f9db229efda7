"""Random quantised graphs: operators of many kinds that the front end takes, with several readers and outputs."""

import numpy as np
import onnx

from tests.support.onnx_models import Net

_LARGEST, _MOST = 20, 32  #: sides, and channels, of a tensor that an operator makes twice or four times as large
_UNARY = ("Relu", "Sigmoid", "Tanh", "HardSwish", "LeakyRelu")


class _Graph:
    """A net under construction. ``tensors``: 8-bit images by name, with (channels, height, width), scale and zero
    point. ``wide``: operators of many more kinds, and an input of up to 64 channels of 24×24 instead of 8 of 9×9."""

    def __init__(self, seed: int, wide: bool = False) -> None:
        self.rng = np.random.default_rng(seed)
        self.dtype = str(self.rng.choice(["int8", "uint8"]))
        self.net, self.wide = Net(opset=14, seed=seed), wide
        most, side = (65, 25) if wide else (9, 10)
        shape = (int(self.rng.integers(1, most)), *(int(n) for n in self.rng.integers(3, side, 2)))
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
        """One operator more, or none where the tensor that was picked is not for it."""
        kinds = [self.conv, self.depthwise, self.pool, self.unary, self.add, self.concat, self.pad, self.cut]
        if self.wide:
            kinds += [
                self.grouped, self.dilated, self.dense_pool, self.transposed, self.upsampled, self.split, self.blocks,
                self.gate, self.reduced, self.clipped, self.turned, self.tiled, self.product,
            ]  # fmt: skip
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
        self.store(
            self.net.node(str(self.rng.choice(["Add", "Mul", "Sub", "Max", "Min"][: 5 if self.wide else 2])), operands),
            shape,
        )

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

    def grouped(self) -> None:
        x = self.pick()
        (c, h, w), scale, _ = self.tensors[x]
        groups = int(self.rng.choice([n for n in (1, 2, 3, 4, 8) if c % n == 0]))
        out = groups * int(self.rng.integers(1, 9))
        y = self.net.conv(self.real(x), scale, (out, c // groups, 3, 3), pads=[1] * 4, group=groups)
        self.store(y, (out, h, w))

    def dilated(self) -> None:
        x = self.pick()
        (c, h, w), scale, _ = self.tensors[x]
        out, by = int(self.rng.integers(1, 17)), int(self.rng.integers(2, 4))
        self.store(self.net.conv(self.real(x), scale, (out, c, 3, 3), pads=[by] * 4, dilations=[by] * 2), (out, h, w))

    def dense_pool(self) -> None:
        x = self.pick()
        shape, size = self.tensors[x][0], int(self.rng.choice([3, 5]))
        if min(shape[1:]) < size:
            return
        window = {"kernel_shape": [size] * 2, "strides": [1, 1], "pads": [size // 2] * 4}
        kind = str(self.rng.choice(["MaxPool", "AveragePool"]))
        if kind == "AveragePool":
            window["count_include_pad"] = int(self.rng.integers(2))
        self.store(self.net.node(kind, [self.real(x)], **window), shape, x)

    def transposed(self) -> None:
        x = self.pick()
        (c, h, w), *_ = self.tensors[x]
        if max(h, w) > _LARGEST:
            return
        out, size = int(self.rng.integers(1, 17)), int(self.rng.choice([2, 4]))
        weights, _ = self.net.weights((c, out, size, size), None)
        window = {"kernel_shape": [size] * 2, "strides": [2, 2], "pads": [size // 2 - 1] * 4}
        self.store(self.net.node("ConvTranspose", [self.real(x), weights], **window), (out, 2 * h, 2 * w))

    def upsampled(self) -> None:
        x = self.pick()
        (c, h, w), *_ = self.tensors[x]
        if max(h, w) > _LARGEST:
            return
        sizes = [self.net.const([], np.float32), self.net.const([1, 1, 2, 2], np.float32)]
        how = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        if self.rng.random() < 0.5:
            how = {"mode": "linear", "coordinate_transformation_mode": "half_pixel"}
        self.store(self.net.node("Resize", [self.real(x), *sizes], **how), (c, 2 * h, 2 * w))

    def split(self) -> None:
        x = self.pick()
        (c, h, w), *_ = self.tensors[x]
        if c < 2:
            return
        first = int(self.rng.integers(1, c))
        self.net.node("Split", [self.real(x), self.net.const([first, c - first], np.int64)], outputs=2, axis=1)
        for name, channels in zip(self.net.nodes[-1].output, (first, c - first), strict=True):
            self.store(name, (channels, h, w), x)

    def blocks(self) -> None:
        """DepthToSpace, or SpaceToDepth."""
        x = self.pick()
        (c, h, w), *_ = self.tensors[x]
        if c % 4 == 0 and max(h, w) <= _LARGEST:
            order = str(self.rng.choice(["DCR", "CRD"]))
            y = self.net.node("DepthToSpace", [self.real(x)], blocksize=2, mode=order)
            self.store(y, (c // 4, 2 * h, 2 * w), x)
        elif h % 2 == 0 and w % 2 == 0 and c <= _MOST:
            self.store(self.net.node("SpaceToDepth", [self.real(x)], blocksize=2), (4 * c, h // 2, w // 2), x)

    def gate(self) -> None:
        """Squeeze and excitation, or x times sigmoid of x."""
        x = self.pick()
        (c, h, w), *_ = self.tensors[x]
        whole, y = self.real(x), x
        if self.rng.random() < 0.5:
            mean = self.store(self.net.node("GlobalAveragePool", [whole]), (c, 1, 1))
            y = self.store(self.net.conv(self.real(mean), self.tensors[mean][1], (c, c, 1, 1)), (c, 1, 1))
        factor = self.store(self.net.node("Sigmoid", [self.real(y)]), self.tensors[y][0])
        self.store(self.net.node("Mul", [whole, self.real(factor)]), (c, h, w))

    def reduced(self) -> None:
        x = self.pick()
        axes = [[2, 3], [2], [3], [1]][int(self.rng.integers(4))]
        shape = tuple(1 if i in axes else n for i, n in enumerate(self.tensors[x][0], 1))
        kind = str(self.rng.choice(["ReduceMean", "ReduceMax"]))
        self.store(self.net.node(kind, [self.real(x)], axes=axes, keepdims=1), shape, x)

    def clipped(self) -> None:
        """Clip or PRelu."""
        x = self.pick()
        (c, h, w), *_ = self.tensors[x]
        if self.rng.random() < 0.5:
            kind, more = "Clip", [self.net.const(n, np.float32) for n in (-0.5, self.rng.uniform(0.2, 6))]
        else:
            kind, more = "PRelu", [self.net.const(self.rng.uniform(0, 0.5, (c, 1, 1)), np.float32)]
        self.store(self.net.node(kind, [self.real(x), *more]), (c, h, w), x)

    def turned(self) -> None:
        """Transpose, or a shuffle of channels."""
        x = self.pick()
        (c, h, w), *_ = self.tensors[x]
        if c % 2 == 0 and self.rng.random() < 0.5:
            halves = self.net.node("Reshape", [self.real(x), self.net.const([1, 2, c // 2, h, w], np.int64)])
            mixed = self.net.node("Transpose", [halves], perm=[0, 2, 1, 3, 4])
            self.store(self.net.node("Reshape", [mixed, self.net.const([1, c, h, w], np.int64)]), (c, h, w), x)
            return
        order = [0, *(1 + int(i) for i in self.rng.permutation(3))]
        shape = tuple((1, c, h, w)[i] for i in order[1:])
        self.store(self.net.node("Transpose", [self.real(x)], perm=order), shape, x)

    def tiled(self) -> None:
        x = self.pick()
        (c, h, w), *_ = self.tensors[x]
        if c <= _MOST:
            self.store(self.net.node("Tile", [self.real(x), self.net.const([1, 2, 1, 1], np.int64)]), (2 * c, h, w), x)

    def product(self) -> None:
        """A product of two tensors, or with weights, or a softmax."""
        x = self.pick()
        (c, h, w), *_ = self.tensors[x]
        others = [name for name, (own, *_) in self.tensors.items() if own[:2] == (c, w)]
        if self.rng.random() < 0.3:
            self.store(self.net.node("Softmax", [self.real(x)], axis=int(self.rng.choice([1, 3]))), (c, h, w))
        elif others:
            y = str(self.rng.choice(others))
            self.store(self.net.node("MatMul", [self.real(x), self.real(y)]), (c, h, self.tensors[y][0][2]))
        else:
            columns = int(self.rng.integers(1, 33))
            weights, _ = self.net.weights((w, columns), None)
            self.store(self.net.node("MatMul", [self.real(x), weights]), (c, h, columns))


def random_graph(seed: int, wide: bool = False) -> onnx.ModelProto:
    """A model of up to 8 operators, 14 if ``wide``; every tensor that nothing reads is an output."""
    graph = _Graph(seed, wide)
    for _ in range(int(graph.rng.integers(1, 15 if wide else 9))):
        graph.step()
    if len(graph.tensors) == 1:
        graph.conv()
    ends = [name for name in list(graph.tensors)[1:] if name not in graph.read]
    return graph.net.model(*ends, dtype=graph.dtype)
