"""This folder runs sweeps: many machines, models and policies from one file, on all cores or a cluster, in one
table."""
