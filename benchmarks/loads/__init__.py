"""Loads of several tenants that others have published: DISB, XRBench, the mixes of PREMA and of MoCA."""

from benchmarks.loads.rows import figures

__all__ = ["figures"]
