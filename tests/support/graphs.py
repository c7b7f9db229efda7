"""Small graphs of the IR with random constants, and the check every compiled graph must pass."""

from typing import Any

import numpy as np

from compiler import ir, reference
from compiler.pipeline import build
from compiler.plan.options import Options
from hw.contract.params import SocParams
from hw.image.image import Image
from tests.support.check.races import RaceChecker
from tests.support.image_runner import run_image


class GraphBuilder:
    """Adds operators one by one; every method returns the name of the tensor it makes."""

    def __init__(self, seed: int) -> None:
        self.graph = ir.Graph(f"random{seed}")
        self.rng = np.random.default_rng(seed)

    def tensor(self, shape: tuple[int, ...], dtype: str = "int8", data: Any = None) -> str:
        name = f"t{len(self.graph.tensors)}"
        info = np.iinfo(dtype)
        zero = int(self.rng.integers(info.min, info.max + 1))
        self.graph.tensors[name] = ir.Tensor(name, shape, dtype, 0.05, zero, data)
        return name

    def input(self, shape: tuple[int, ...], dtype: str = "int8") -> str:
        name = self.tensor(shape, dtype)
        order = tuple(range(len(shape)))
        self.graph.inputs.append(ir.Port(name, dtype, shape, name, order, False))
        return name

    def output(self, name: str) -> str:
        tensor = self.graph.tensors[name]
        order = tuple(range(len(tensor.shape)))
        self.graph.outputs.append(ir.Port(name, tensor.dtype, tensor.shape, name, order, False))
        return name

    def shape(self, name: str) -> tuple[int, ...]:
        return self.graph.tensors[name].shape

    def requantise(self, name: str, spread: float, channels: int = 1, table: bool = False) -> ir.Requantisation:
        """Scales that bring sums of about ``spread`` into 8 bits; a range that clips now and then."""
        tensor = self.graph.tensors[name]
        info = np.iinfo(tensor.dtype)
        scale = (self.rng.uniform(20, 60, channels) / spread).astype(np.float32)
        zero = int(self.rng.integers(info.min, info.max + 1))
        values = self.rng.permutation(256).astype(np.uint8) if table else None
        return ir.Requantisation(scale, zero, info.min + int(self.rng.integers(0, 20)), info.max, values)

    def conv(
        self, x: str, outs: int, kernel=(3, 3), strides=(1, 1), pads=(0, 0, 0, 0), dilations=(1, 1), groups: int = 1,
        dtype: str = "int8", weight_dtype: str = "int8", table: bool = False,
        int4: bool = False,
    ) -> str:  # fmt: skip
        n, h, w, c = self.graph.tensors[x].nhwc
        rows = (h + pads[0] + pads[2] - (kernel[0] - 1) * dilations[0] - 1) // strides[0] + 1
        cols = (w + pads[1] + pads[3] - (kernel[1] - 1) * dilations[1] - 1) // strides[1] + 1
        y = self.tensor((n, rows, cols, outs), dtype)
        info = np.iinfo(weight_dtype)
        shape = (outs, *kernel, c // groups)
        low, high = (-8, 7) if int4 else (info.min, info.max)
        weights = self.rng.integers(low, high + 1, shape).astype(weight_dtype)
        spread = (300 if int4 else 5000) * np.sqrt(np.prod(shape[1:]))
        zero_point = 0 if int4 else int(self.rng.integers(-5, 6)) if info.min else 120
        self.graph.ops.append(
            ir.Conv(
                y, [x], y, weights=weights, weight_zero_point=zero_point,
                bias=self.rng.integers(-9999, 9999, outs).astype(np.int32),
                requantise=self.requantise(y, spread, outs, table), strides=strides, pads=pads, dilations=dilations,
                groups=groups, int4=int4,
            )
        )  # fmt: skip
        return y

    def eltwise(self, kind: str, a: str, b: str, table: bool = False) -> str:
        y = self.tensor(self.shape(a))
        ma, mb = (int(v) for v in self.rng.integers(-(1 << 14), 1 << 14, 2))
        spread = {"add": 1e6, "mul": 1e4}.get(kind, 50)
        how = self.requantise(y, spread, 1, table)
        bias = int(self.rng.integers(-1000, 1000))
        self.graph.ops.append(ir.Eltwise(y, [a, b], y, kind, how, ma, mb, bias))
        return y

    def pool(
        self, kind: str, x: str, kernel, strides, pads=(0, 0, 0, 0), include: bool = False, dilations=(1, 1)
    ) -> str:  # fmt: skip
        n, h, w, c = self.graph.tensors[x].nhwc
        rows = (h + pads[0] + pads[2] - (kernel[0] - 1) * dilations[0] - 1) // strides[0] + 1
        cols = (w + pads[1] + pads[3] - (kernel[1] - 1) * dilations[1] - 1) // strides[1] + 1
        y = self.tensor((n, rows, cols, c), self.graph.tensors[x].dtype)
        bias = int(self.rng.integers(-20, 20)) if kind == "avg" else 0
        how = self.requantise(y, 50)
        self.graph.ops.append(ir.Pool(y, [x], y, kind, kernel, strides, pads, how, include, bias, dilations))
        return y

    def product(
        self, a: str, b: str, heads: int, joined: tuple[bool, bool, bool], transposed: bool, dtype: str = "int8",
        first: int = 0, of: int = 0,
    ) -> str:  # fmt: skip
        """Of tensors of three axes."""
        images, rows, depth = self.shape(a)
        held = of or heads
        images, depth = (images, depth // held) if joined[0] else (images // heads, depth)
        columns = self.shape(b)[1] if transposed else self.shape(b)[2] // (held if joined[1] else 1)
        shape = (images, rows, heads * columns) if joined[2] else (images * heads, rows, columns)
        y = self.tensor(shape, dtype)
        how = self.requantise(y, 5000 * depth**0.5)
        self.graph.ops.append(ir.Product(y, [a, b], y, heads, joined, transposed, how, first, of))
        return y

    def softmax(self, x: str, dtype: str = "int8") -> str:
        y = self.tensor(self.shape(x), dtype)
        scale = float(self.rng.uniform(0.02, 0.3))
        steps = float(self.rng.uniform(100, 255))
        real = np.exp(-np.arange(256) * scale)
        sum_bits = 31 - int(np.ceil(np.log2(max(2, self.shape(x)[-1]))))
        tables = [np.rint(real * 2.0**bits).astype(np.int32) for bits in (min(sum_bits, 30), 22)]
        tables[1] = np.rint(real * steps * 2.0**22).astype(np.int32)
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        self.graph.ops.append(ir.Softmax(y, [x], y, *tables, min(sum_bits, 30) - 22, int(low), int(low), int(high)))
        return y

    def layer_norm(self, x: str, dtype: str = "int8", kind: type[ir.LayerNorm | ir.RmsNorm] = ir.LayerNorm) -> str:
        y, channels = self.tensor(self.shape(x), dtype), self.shape(x)[-1]
        how = self.requantise(y, 1 << 18, channels)
        how.scale *= self.rng.choice([-1, 1], channels).astype(np.float32)
        bias = self.rng.integers(-(1 << 18), 1 << 18, channels).astype(np.int32)
        self.graph.ops.append(kind(y, [x], y, int(self.rng.integers(0, 1 << 20)), 18, bias, how))
        return y

    def rms_norm(self, x: str, dtype: str = "int8") -> str:
        return self.layer_norm(x, dtype, ir.RmsNorm)

    def attention(self, length: int, heads: int, width: int, keys: int = 0, mask: bool | str = False) -> str:
        """Scores, softmax and sums of values of ``heads`` heads of ``width`` channels. ``mask``: of keys, an input; or
        a constant for all scores, ``alike`` for all heads or ``apart``."""
        keys = keys or length
        q = self.input((1, length, heads * width))
        k, v = self.input((1, keys, heads * width)), self.input((1, keys, heads * width), "uint8")
        scores = self.table(self.product(q, k, heads, (True, True, False), transposed=True))
        if mask:
            scores = self.reshape(scores, (1, heads, length, keys))
            whole = isinstance(mask, str)
            given = self._mask(heads, length, keys, mask == "alike") if whole else self.input((1, 1, 1, keys))
            scores = self.eltwise("mul" if whole else "add", scores, given)
            scores = self.reshape(scores, (heads, length, keys))
        return self.product(self.softmax(scores), v, heads, (False, True, True), transposed=False)

    def _mask(self, heads: int, length: int, keys: int, alike: bool) -> str:
        data = self.rng.integers(0, 2, (1, 1 if alike else heads, length, keys)).astype(np.uint8)
        return self.tensor((1, heads, length, keys), "uint8", np.broadcast_to(data, (1, heads, length, keys)).copy())

    def table(self, x: str) -> str:
        y = self.tensor(self.shape(x))
        self.graph.ops.append(ir.Table(y, [x], y, self.rng.permutation(256).astype(np.uint8)))
        return y

    def concat(self, xs: list[str], axis: int) -> str:
        shape = list(self.shape(xs[0]))
        shape[axis] = sum(self.shape(x)[axis] for x in xs)
        y = self.tensor(tuple(shape), self.graph.tensors[xs[0]].dtype)
        self.graph.ops.append(ir.Concat(y, xs, y, axis))
        return y

    def permute(self, x: str, perm: tuple[int, ...]) -> str:
        y = self.tensor(tuple(self.shape(x)[axis] for axis in perm), self.graph.tensors[x].dtype)
        self.graph.ops.append(ir.Permute(y, [x], y, perm))
        return y

    def reshape(self, x: str, shape: tuple[int, ...]) -> str:
        y = self.tensor(shape, self.graph.tensors[x].dtype)
        self.graph.ops.append(ir.Reshape(y, [x], y))
        return y

    def pad(self, x: str, pads) -> str:
        n, h, w, c = self.graph.tensors[x].nhwc
        y = self.tensor((n, h + pads[0] + pads[2], w + pads[1] + pads[3], c), self.graph.tensors[x].dtype)
        self.graph.ops.append(ir.Pad(y, [x], y, pads, int(self.rng.integers(0, 256))))
        return y


def residual_block(seed: int) -> GraphBuilder:
    """A residual block whose shortcut is computed first."""
    make = GraphBuilder(seed)
    x = make.conv(make.input((1, 10, 9, 7)), 40, (1, 1))
    shortcut = make.conv(x, 70, (1, 1))
    y = make.conv(make.conv(x, 24, (3, 3), pads=(1, 1, 1, 1)), 70, (1, 1), table=True)
    z = make.eltwise("add", y, shortcut) if seed % 2 else make.eltwise("add", shortcut, y)
    make.output(make.conv(z, 9, (3, 3)))
    return make


def late_weights(seed: int) -> ir.Graph:
    """Large tensors and few weights first, then small tensors and many weights."""
    make = GraphBuilder(seed)
    x = make.conv(make.input((1, 32, 32, 8)), 24, (1, 1))
    x = make.conv(make.conv(x, 24, strides=(2, 2)), 48, strides=(3, 3))
    for _ in range(5):
        x = make.conv(x, 64, pads=(1, 1, 1, 1))
    make.output(x)
    return make.graph


def random_inputs(graph: ir.Graph, seed: int) -> dict[str, np.ndarray]:
    """Inputs by port name over the whole range of their type."""
    rng = np.random.default_rng(seed)
    values = {}
    for port in graph.inputs:
        info = np.iinfo(port.dtype)
        values[port.name] = rng.integers(info.min, info.max + 1, port.shape).astype(port.dtype)
    return values


def check(
    graph: ir.Graph, params: SocParams, observe: bool = False, engines: int = 1, *, regions: bool = True,
    order: str = "search",
) -> Image:  # fmt: skip
    """Compile ``graph``, run it with race detection, compare every tensor of the image with the reference."""
    image, _ = build(graph, params, Options(observe, engines, regions=regions, order=order))
    image = Image.from_bytes(image.to_bytes())
    inputs = random_inputs(graph, 7)
    expected = reference.run_all(graph, inputs)
    results = run_image(image, inputs, observer=RaceChecker(params))
    assert {port.tensor for port in graph.outputs} <= set(results)
    for name, value in results.items():
        assert np.array_equal(value, expected[name]), f"tensor {name} of {graph.name}"
    return image
