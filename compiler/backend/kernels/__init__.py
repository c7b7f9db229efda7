"""Kernels: how each kind of layer becomes jobs. Importing this package registers them all."""

from compiler.backend.kernels import (
    conv,
    eltwise,
    host,
    layer_norm,
    load,
    max_pool,
    move,
    pad,
    product,
    softmax,
)

__all__ = ["conv", "eltwise", "host", "layer_norm", "load", "max_pool", "move", "pad", "product", "softmax"]
