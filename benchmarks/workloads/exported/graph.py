"""What PyTorch's TorchScript exporter writes for modules: operator set 17, evaluation, constants folded.

Batch normalisation behind a convolution is in its weights, dropout is gone, and a function that ONNX has no operator
for is the chain of operators that the exporter writes.
"""

import math

import numpy as np
import numpy.typing as npt

from benchmarks.workloads.exported.operators import OperatorGraph
from benchmarks.workloads.layers import Shape, Window, both, windows

#: Standard deviation of a layer's weights, times √(products in a sum): what keeps variance through its activation.
GAINS = {"relu": 2**0.5, "relu6": 2**0.5, "silu": 1.68, "hardswish": 1.71, "gelu": 1.53}


class ExportedGraph(OperatorGraph):
    """Methods add what one module exports as, with weights of its own, and return its result's name."""

    def conv(
        self, x: str, cout: int, kernel: Window = 1, stride: int = 1, pad: Window | None = None, groups: int = 1,
        dilation: int = 1, act: str = "", norm: bool = True, bias: bool = True, gain: float = 1.0,
    ) -> str:  # fmt: skip
        """Convolution of one or two dimensions, batch normalisation that is folded into it, and an activation.

        ``pad`` keeps the size at stride 1, by default. ``norm``: there is a normalisation, which has a bias.
        """
        rank = len(self.shapes[x]) - 2
        taps = both(kernel)[:rank]
        pads = tuple((tap - 1) // 2 * dilation for tap in taps) if pad is None else both(pad)[:rank]
        sizes = [
            windows(size + 2 * beside, (tap - 1) * dilation + 1, stride)
            for size, tap, beside in zip(self.shapes[x][2:], taps, pads, strict=True)
        ]
        weight, offset = self._weights((cout, self.channels(x) // groups, *taps), gain * GAINS.get(act, 1.0), bias)
        self.parameters += cout if norm else 0
        self.macs += math.prod(weight.shape) * math.prod(sizes)
        sources = [x, self.constant(weight), *([self.constant(offset)] if bias else [])]
        made = self.node(
            "Conv", sources, (1, cout, *sizes), dilations=[dilation] * rank,
            group=groups, kernel_shape=taps, pads=pads * 2, strides=[stride] * rank,
        )  # fmt: skip
        return self.activated(made, act)

    def conv_transpose(self, x: str, cout: int, kernel: int, stride: int, act: str = "") -> str:
        """Transposed convolution in which no windows overlap: ``kernel`` is ``stride``."""
        _, cin, *sizes = self.shapes[x]
        weight, bias = self._weights((cout, cin, kernel, kernel), GAINS.get(act, 1.0))
        self.macs += math.prod(weight.shape) * math.prod(sizes)
        sources = [x, self.constant(weight.swapaxes(0, 1).copy()), self.constant(bias)]
        made = self.node(
            "ConvTranspose", sources, (1, cout, *(size * stride for size in sizes)), dilations=[1, 1], group=1,
            kernel_shape=[kernel] * 2, pads=[0] * 4, strides=[stride] * 2,
        )  # fmt: skip
        return self.activated(made, act)

    def batch_norm(self, x: str, act: str = "") -> str:
        """Normalisation that no convolution is in front of."""
        channels = self.channels(x)
        scale, bias = self.drawn([channels], 0.2, 1.0), self.drawn([channels], 0.2)
        mean = self._rng.normal(0, 0.2, channels)
        variance = self._rng.uniform(0.5, 1.5, channels)
        sources = [x, *(self.constant(value) for value in (scale, bias, mean, variance))]
        made = self.node("BatchNormalization", sources, self.shapes[x], epsilon=1e-5, momentum=0.9, training_mode=0)
        return self.activated(made, act)

    def linear(self, x: str, features: int, act: str = "", bias: bool = True, gain: float = 1.0) -> str:
        """Fully connected layer of the last dimension: a Gemm of two dimensions, else a MatMul and an Add."""
        *rows, inputs = self.shapes[x]
        weight, offset = self._weights((features, inputs), gain * GAINS.get(act, 1.0), bias)
        self.macs += math.prod(rows) * weight.size
        if len(rows) == 1:
            sources = [x, self.constant(weight), self.constant(offset)]
            made = self.node("Gemm", sources, (*rows, features), alpha=1.0, beta=1.0, transB=1)
        else:
            made = self.node("MatMul", [x, self.constant(weight.T.copy())], (*rows, features))
            if bias:
                made = self.node("Add", [self.constant(offset), made], (*rows, features))
        return self.activated(made, act)

    def layer_norm(self, x: str, epsilon: float = 1e-5) -> str:
        """Normalisation of the last dimension."""
        width = self.shapes[x][-1]
        sources = [x, self.constant(self.drawn([width], 0.2, 1.0)), self.constant(self.drawn([width], 0.2))]
        return self.node("LayerNormalization", sources, self.shapes[x], axis=-1, epsilon=epsilon)

    def activated(self, x: str, act: str) -> str:
        """Return ``x``, through the method named ``act`` if there is one."""
        return getattr(self, act)(x) if act else x

    def silu(self, x: str) -> str:
        """Swish: ``x`` times its logistic function."""
        return self.mul(x, self.sigmoid(x))

    def gelu(self, x: str) -> str:
        """Gaussian error linear unit, which ONNX has from operator set 20 on: a chain around Erf."""
        curve = self.node("Erf", [self.node("Div", [x, self.constant(2**0.5)], self.shapes[x])], self.shapes[x])
        product = self.mul(x, self.add(curve, self.constant(1.0)))
        return self.mul(product, self.constant(0.5))

    def channel_norm(self, x: str, epsilon: float) -> str:
        """Normalisation of the channels of each pixel: between two transpositions."""
        return self.transpose(self.layer_norm(self.transpose(x, 0, 2, 3, 1), epsilon), 0, 3, 1, 2)

    def attend(self, query: str, key: str, value: str) -> str:
        """Scaled dot-product attention of [..., length, size], with half of the scaling on either side."""
        rank, scale = len(self.shapes[query]), self.shapes[query][-1] ** -0.25
        turned = self.transpose(key, *range(rank - 2), rank - 1, rank - 2)
        scores = self.matmul(self.mul(query, self.constant(scale)), self.mul(turned, self.constant(scale)))
        return self.matmul(self.softmax(scores), value)

    def classified(self, x: str) -> tuple[str, ...]:
        """Mean of each channel and a fully connected layer."""
        return (self.linear(self.flatten(self.global_average_pool(x)), 1000),)

    def squeeze_excite(self, x: str, squeezed: int, act: str, gate: str) -> str:
        """``x`` times one factor for each channel, from the means of all channels."""
        factors = self.conv(self.global_average_pool(x), squeezed, act=act, norm=False)
        return self.mul(self.activated(self.conv(factors, self.channels(x), norm=False), gate), x)

    def _weights(self, shape: Shape, gain: float, bias: bool = True) -> tuple[npt.NDArray, npt.NDArray]:
        """Return weights and bias as training leaves them: filters have no mean, scales differ between the outputs."""
        taps = tuple(range(1, len(shape)))
        weight = self.drawn(shape)
        weight -= weight.mean(taps, keepdims=True)
        weight /= weight.std(taps, keepdims=True) + np.float32(1e-6)
        scales = gain * self._rng.uniform(0.5, 1.5, shape[0]) / math.sqrt(math.prod(shape[1:]))
        weight *= scales.astype(np.float32).reshape(-1, *[1] * len(taps))
        self.parameters += shape[0] if bias else 0
        return weight, self._rng.normal(0.1, 0.2, shape[0]).astype(np.float32)
