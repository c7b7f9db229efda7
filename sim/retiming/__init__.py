"""Prices a recorded run of the fast model again, for other durations or another DRAM, without simulating it.

A run is a set of moments, each of which is the latest of some others plus what lies between. Recording tells the
moments; the hardware's rules tell which may wait for which, and by how much. See ``docs/fast-model.md``.
"""
