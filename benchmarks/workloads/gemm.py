"""Matrix multiplications: int8 [M, K] activations × constant int8 [K, N] weights → int8 [M, N]."""

import re
from dataclasses import dataclass

import onnx

from benchmarks.workloads import qdq
from benchmarks.workloads.layers import Shape

_NAME = re.compile(r"gemm_(?P<m>\d+)x(?P<k>\d+)x(?P<n>\d+)")


@dataclass(frozen=True)
class Gemm:
    """Sizes of the product [m, k] × [k, n]."""

    m: int
    k: int
    n: int

    @property
    def name(self) -> str:
        """Return the name of the workload, such as ``gemm_512x512x512``."""
        return f"gemm_{self.m}x{self.k}x{self.n}"

    @property
    def macs(self) -> int:
        """Return the multiply-accumulates."""
        return self.m * self.k * self.n

    @property
    def in_shape(self) -> Shape:
        """Return the shape of the activations."""
        return (self.m, self.k)

    def problem(self) -> str | None:
        """Return what is wrong with the sizes, if anything."""
        return "sizes must be at least 1" if min(self.m, self.k, self.n) < 1 else None


def parse(name: str) -> Gemm | None:
    """Return the product that a workload's name stands for; None for other names."""
    match = _NAME.fullmatch(name)
    return Gemm(**{key: int(value) for key, value in match.groupdict().items()}) if match else None


def model(gemm: Gemm, seed: int) -> onnx.ModelProto:
    """QDQ model of one MatMul, weights quantised per column."""
    return qdq.model(
        qdq.QdqOperator(
            gemm.name,
            "MatMul",
            gemm.in_shape,
            (gemm.m, gemm.n),
            weight_shape=(gemm.k, gemm.n),
            channel_axis=1,
            has_bias=False,
        ),
        seed,
    )
