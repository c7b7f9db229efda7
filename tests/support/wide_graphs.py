"""Random quantised graphs of four to twenty operators: images, rows and matrices of odd sizes, branches, parts that
nothing reads, several outputs. Scales follow from what values are expected, so that few of them are clipped."""

import math

import numpy as np
import onnx

from tests.support.wide_moves import LARGEST, MovingGraph, Stored

_UNARY = {
    "Relu": {}, "Sigmoid": {}, "Tanh": {}, "HardSwish": {}, "LeakyRelu": {"alpha": 0.2}, "Elu": {}, "Abs": {},
    "Neg": {}, "Softplus": {}, "HardSigmoid": {"alpha": 0.25},
}  # fmt: skip
_WEIGHT = 0.85  #: spread of a weight that :class:`Net` makes


class _WideGraph(MovingGraph):
    # -- operators -----------------------------------------------------------------------------------------------
    def step(self) -> None:
        """One operator more, or none where no tensor fits."""
        kinds = (
            self.conv, self.conv, self.depthwise, self.pool, self.whole, self.unary, self.binary, self.binary,
            self.wide, self.concat, self.split, self.cut, self.reshape, self.transpose, self.matmul, self.product,
            self.reduce, self.pad, self.rows, self.again,
        )  # fmt: skip
        kinds[self.number(0, len(kinds) - 1)]()

    def image(self) -> tuple[str, Stored] | None:
        name = self.pick(lambda stored: len(stored.shape) == 4)
        return None if name is None else (name, self.tensors[name])

    def conv(self) -> None:
        if (found := self.image()) is None:
            return
        x, stored = found
        n, c, h, w = stored.shape
        group = 2 if c % 2 == 0 and self.chance(0.2) else 1
        out = group * self.number(1, 9)
        kernel = (int(self.rng.choice([1, 1, 3, 3, 5])), int(self.rng.choice([1, 3, 3])))
        strides, dilations = (self.number(1, 2), self.number(1, 2)), (1, 2 if self.chance(0.15) else 1)
        pads = [self.number(0, k // 2) for k in (*kernel, *kernel)]
        spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
        size = [(extent + pads[i] + pads[i + 2] - spans[i]) // strides[i] + 1 for i, extent in enumerate((h, w))]
        if min(size) < 1 or math.prod(size) * out > LARGEST:
            return
        taps = c // group * math.prod(kernel)
        y = self.net.conv(
            self.real(x), stored.scale, (out, c // group, *kernel), 0 if self.chance(0.7) else None, pads=pads,
            strides=list(strides), dilations=list(dilations), group=group,
        )  # fmt: skip
        self.store(y, (n, out, *size), stored.spread * _WEIGHT * math.sqrt(taps))

    def depthwise(self) -> None:
        if (found := self.image()) is None:
            return
        x, stored = found
        n, c, h, w = stored.shape
        times, stride = self.number(1, 2), self.number(1, 2)
        if times * c * h * w > LARGEST:
            return
        y = self.net.conv(self.real(x), stored.scale, (times * c, 1, 3, 3), pads=[1] * 4, group=c, strides=[stride] * 2)
        self.store(y, (n, times * c, (h - 1) // stride + 1, (w - 1) // stride + 1), 3 * stored.spread * _WEIGHT)

    def pool(self) -> None:
        if (found := self.image()) is None:
            return
        x, stored = found
        n, c, h, w = stored.shape
        kernel, stride = self.number(2, 3), self.number(1, 3)
        pad, kind = self.number(0, 1), str(self.rng.choice(["MaxPool", "AveragePool"]))
        if min(h, w) + 2 * pad < kernel:
            return
        size = [(extent + 2 * pad - kernel) // stride + 1 for extent in (h, w)]
        more = {"count_include_pad": self.number(0, 1)} if kind == "AveragePool" else {}
        y = self.net.node(kind, [self.real(x)], kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4, **more)
        self.store(y, (n, c, *size), stored.spread, x)

    def whole(self) -> None:
        if (found := self.image()) is None:
            return
        x, stored = found
        kind = str(self.rng.choice(["GlobalAveragePool", "GlobalMaxPool"]))
        self.store(self.net.node(kind, [self.real(x)]), (*stored.shape[:2], 1, 1), stored.spread, x)

    def unary(self) -> None:
        x = self.pick()
        kind = str(self.rng.choice(list(_UNARY)))
        spread = min(self.tensors[x].spread, 1.0) if "igmoid" in kind or kind == "Tanh" else self.tensors[x].spread
        self.store(self.net.node(kind, [self.real(x)], **_UNARY[kind]), self.tensors[x].shape, spread)

    def binary(self) -> None:
        x = self.pick()
        stored = self.tensors[x]
        y = self.pick(lambda other: other.shape == stored.shape)
        kind = str(self.rng.choice(["Add", "Sub", "Mul", "Min", "Max"]))
        spreads = [stored.spread, self.tensors[y].spread]
        spread = math.prod(spreads) if kind == "Mul" else math.hypot(*spreads)
        self.store(self.net.node(kind, [self.real(x), self.real(y)]), stored.shape, spread)

    def wide(self) -> None:
        """With a tensor that is broadcast, or with a constant."""
        x = self.pick()
        stored = self.tensors[x]
        fits = [name for name, other in self.tensors.items() if name != x and _broadcasts(other.shape, stored.shape)]
        kind = str(self.rng.choice(["Add", "Mul"]))
        if fits and self.chance(0.7):
            y = str(self.rng.choice(fits))
            second, spread = self.real(y), self.tensors[y].spread
        else:
            shape = (stored.shape[1], *[1] * (len(stored.shape) - 2)) if len(stored.shape) > 1 else ()
            shape = shape if self.chance(0.5) else ()
            data, scale = self.net.const(self.net.array(shape, self.dtype)), 0.02
            second, spread = self.net.dq(data, scale, self.zero(), self.dtype), 74 * scale
        spread = spread * stored.spread if kind == "Mul" else math.hypot(spread, stored.spread)
        self.store(self.net.node(kind, [self.real(x), second]), stored.shape, spread)

    def matmul(self) -> None:
        """By constant weights, sometimes with a bias behind."""
        x = self.pick(lambda stored: len(stored.shape) > 1)
        if x is None:
            return
        stored, out = self.tensors[x], self.number(1, 17)
        inner = stored.shape[-1]
        if math.prod(stored.shape[:-1]) * out > LARGEST:
            return
        weights, _ = self.net.weights((inner, out), axis=1 if self.chance(0.5) else None)
        y = self.net.node("MatMul", [self.real(x), weights])
        if self.chance(0.3):
            y = self.net.node("Add", [y, self.net.const(self.rng.normal(0, 1, out), np.float32)])
        self.store(y, (*stored.shape[:-1], out), stored.spread * _WEIGHT * math.sqrt(inner))

    def product(self) -> None:
        """Of two computed matrices, the second one turned over."""
        x = self.pick(lambda stored: len(stored.shape) > 1)
        if x is None:
            return
        shape = self.tensors[x].shape
        y = self.pick(
            lambda other: (
                len(other.shape) == len(shape) and (*other.shape[:-2], other.shape[-1]) == (*shape[:-2], shape[-1])
            )
        )
        rows = self.tensors[y].shape[-2]
        if math.prod(shape[:-1]) * rows > LARGEST:
            return
        axes = list(range(len(shape)))
        axes[-2:] = axes[:-3:-1]
        turned = self.net.node("Transpose", [self.real(y)], perm=axes)
        z = self.net.node("MatMul", [self.real(x), turned])
        self.store(z, (*shape[:-1], rows), self.tensors[x].spread * self.tensors[y].spread * math.sqrt(shape[-1]))

    def reduce(self) -> None:
        x = self.pick(lambda stored: len(stored.shape) > 1)
        if x is None:
            return
        stored = self.tensors[x]
        axes = sorted(int(a) for a in self.rng.permutation(len(stored.shape))[: self.number(1, 2)])
        kind, keep = str(self.rng.choice(["ReduceMean", "ReduceMax", "ReduceMin", "ReduceSum"])), self.number(0, 1)
        shape = [1 if axis in axes else n for axis, n in enumerate(stored.shape) if keep or axis not in axes]
        if not shape:
            return
        if kind == "ReduceSum":
            y = self.net.node(kind, [self.real(x), self.net.const(np.array(axes, np.int64))], keepdims=keep)
        else:
            y = self.net.node(kind, [self.real(x)], axes=axes, keepdims=keep)
        count = math.prod(stored.shape[axis] for axis in axes)
        self.store(y, shape, stored.spread * (math.sqrt(count) if kind == "ReduceSum" else 1))

    def rows(self) -> None:
        """Softmax or layer normalisation over the last axis."""
        x = self.pick(lambda stored: len(stored.shape) > 1 and stored.shape[-1] > 1)
        if x is None:
            return
        stored = self.tensors[x]
        if self.chance(0.5):
            y = self.net.node("Softmax", [self.real(x)], axis=-1)
            self.store(y, stored.shape, 0.3, clamp=False)
            return
        # Epsilon is whole in the integers of the variance: the accelerator rounds it, which rows of nearly one value
        # show (``Normalised`` in the front end).
        epsilon = self.number(1, 50) * (stored.scale / stored.shape[-1]) ** 2
        parts = [self.net.const(self.rng.normal(mean, 0.2, stored.shape[-1]), np.float32) for mean in (1, 0)]
        self.store(
            self.net.node("LayerNormalization", [self.real(x), *parts], axis=-1, epsilon=epsilon), stored.shape, 1.0
        )


def _broadcasts(small: tuple[int, ...], large: tuple[int, ...]) -> bool:
    filled = (*[1] * (len(large) - len(small)), *small)
    return len(small) <= len(large) and all(a in (1, b) for a, b in zip(filled, large, strict=True))


def wide_graph(seed: int) -> onnx.ModelProto:
    """A model of 4 to 20 operators. Most tensors that nothing reads are outputs, and some that are read, too; a few
    models end in float."""
    graph = _WideGraph(seed)
    wanted, inputs = graph.number(4, 20), len(graph.tensors)
    for _ in range(10 * wanted):
        if len(graph.tensors) - inputs >= wanted:
            break
        graph.step()
    made = list(graph.tensors)[inputs:]
    ends = [name for name in made if graph.chance(0.9 if name not in graph.read else 0.1)] or made[-1:]
    if graph.chance(0.15):
        return graph.net.model(*(graph.real(name) for name in ends), dtype="float32")
    return graph.net.model(*ends, dtype=graph.dtype)
