"""Scenarios that benchmarks and tests generate."""
