"""Benchmarks of Caesura: their workloads, and the runs that measure them."""
