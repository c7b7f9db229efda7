"""Perception and planning share one accelerator: the worked example of preemption at cancellation points."""
