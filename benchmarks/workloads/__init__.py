"""Generated int8 QDQ ONNX models for benchmarks: real topologies, seeded weights, cached outside the repository.

``workload("resnet50")`` is the model's path, ``inputs("resnet50")`` what to feed it, ``names()`` the list.
"""

from benchmarks.workloads.registry import Inputs, UnknownWorkload, inputs, names, workload

__all__ = ["Inputs", "UnknownWorkload", "inputs", "names", "workload"]
