"""Tells what of a compiled model runs on the CPU: which nodes, why, and how long they take it."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import onnx

from hw.contract.bus import LINE_BYTES, HostCosts
from hw.image import Image, StepInfo, TensorInfo
from sim.host import work_of

_NAMED = 3  #: nodes of a step that its line names
_PREFIX = "onnx/"  #: the compiler's, of names in a host model that are those of the ONNX model


@dataclass(frozen=True)
class ImageCpuStep:
    """Describes a step of an inference that the CPU computes: the tensors it writes, the names of its ONNX nodes
    without conversions to and from 8 bits, why it runs there, and the cycles that the run time charges for it."""

    outputs: tuple[str, ...]
    nodes: tuple[str, ...]
    reason: str
    cycles: int

    def __str__(self) -> str:
        """Return the step as a line of a report."""
        count = len(self.nodes)
        named = ", ".join(self.nodes[:_NAMED]) + ", ..." * (count > _NAMED)
        nodes = f"{count} node{'s' * (count > 1)} ({named}), " if count else ""
        return f"{', '.join(self.outputs)}: {self.reason}; {nodes}{self.cycles:,} cycles"


def cpu_steps(image: Image, costs: HostCosts | None = None) -> list[ImageCpuStep]:
    """Return the steps of ``image`` that the CPU computes, in order, for a host with ``costs``."""
    return [
        ImageCpuStep(
            tuple(step.outputs), tuple(_nodes(image.host_models[step.host])), step.reason,
            cycles_on_cpu(image, step, costs or HostCosts()),
        )
        for step in image.meta.steps
        if step.kind == "host"
    ]  # fmt: skip


def cycles_on_cpu(image: Image, step: StepInfo, costs: HostCosts) -> int:
    """Return the cycles of a step on the CPU, as the run time charges them."""
    work = work_of(image.host_models[step.host])
    tensors = {tensor.name: tensor for tensor in image.meta.tensors}
    lines = sum(-(-_size(tensors[name]) // LINE_BYTES) for name in (*step.inputs, *step.outputs))
    operators = work.elements * costs.cpu_element + work.functions * costs.cpu_function + work.macs * costs.cpu_mac
    return costs.cpu_step + round(operators) + lines * costs.memory_line


def _size(tensor: TensorInfo) -> int:
    return np.dtype(tensor.dtype).itemsize * math.prod(tensor.shape)


def _nodes(model: bytes) -> Iterator[str]:
    """Yield the names that the nodes of a host model have in ONNX, conversions to and from 8 bits left out. Nodes that
    only restore an order have none."""
    for node in onnx.load_from_string(model).graph.node:
        if node.name and node.op_type not in ("QuantizeLinear", "DequantizeLinear"):
            yield node.name.removeprefix(_PREFIX)
