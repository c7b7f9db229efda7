"""Kernels: how each kind of layer becomes jobs. Importing this package registers them all."""

from compiler.emission.kernels import conv, eltwise, move, product, rows, windows

__all__ = ["conv", "eltwise", "move", "product", "rows", "windows"]
