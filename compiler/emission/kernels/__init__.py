"""Kernels: how each kind of layer becomes jobs. Importing this package registers them all."""

from compiler.emission.kernels import conv, eltwise, max_pool, move, product, rows

__all__ = ["conv", "eltwise", "max_pool", "move", "product", "rows"]
