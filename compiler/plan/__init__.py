"""Defines a plan: what the compiler decides about a model, as frozen data."""
