"""Kernels: how each kind of layer becomes jobs."""
