"""Holds what is decided before anything is emitted."""
