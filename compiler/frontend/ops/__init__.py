"""Importers of ONNX operators, one file per family. Importing this package registers all of them."""

from compiler.frontend.ops import (
    conv,
    eltwise,
    host,
    matmul,
    move,
    pointwise,
    pool,
    qoperator,
    quantise,
    rows,
    slices,
    written_norm,
)

__all__ = [
    "conv", "eltwise", "host", "matmul", "move", "pointwise", "pool", "qoperator", "quantise",
    "rows", "slices", "written_norm",
]  # fmt: skip
