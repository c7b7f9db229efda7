"""Kernels: how each kind of layer becomes jobs. Importing this package registers them all."""

from compiler.backend.kernels import conv, eltwise, host, max_pool, move, pad, region

__all__ = ["conv", "eltwise", "host", "max_pool", "move", "pad", "region"]
