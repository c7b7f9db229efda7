"""Gathers what scripts for onnxruntime pass to a session: its own classes. ``InferenceSession`` takes them and does
not look at them."""

from onnxruntime import (
    ExecutionMode as ExecutionMode,
    GraphOptimizationLevel as GraphOptimizationLevel,
    RunOptions as RunOptions,
    SessionOptions as SessionOptions,
)
