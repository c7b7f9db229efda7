"""Tells what of a model runs on the accelerator, and what on the CPU."""

import math
from dataclasses import dataclass

import onnx

from hw.image import Image
from sim.host import work_of

_PLUMBING = (
    "Cast", "DequantizeLinear", "Flatten", "Identity", "QuantizeLinear", "Reshape", "Squeeze", "Transpose", "Unsqueeze",
)  # fmt: skip


@dataclass(frozen=True)
class Shares:
    """Counts the ``layers`` and ``macs`` that the accelerator and the CPU have."""

    layers: int
    macs: int
    cpu_layers: int
    cpu_macs: int

    @property
    def all_on_cpu(self) -> bool:
        """Return whether the accelerator computes nothing."""
        return not self.layers

    def sentence(self) -> str:
        """Return the shares as a sentence."""
        macs = self.macs + self.cpu_macs
        share = f", {_percent(self.macs, macs)} of MACs" if macs else ""
        return f"{self.layers} of {self.layers + self.cpu_layers} layers on the accelerator{share}"

    def to_dict(self) -> dict[str, int]:
        """Return the shares as data for JSON."""
        return vars(self).copy()


def shares(image: Image) -> Shares:
    """Return the shares of an image. Nodes that only move or convert data are no layers of the CPU."""
    nodes, macs = 0, 0
    for raw in image.host_models:
        nodes += sum(node.op_type not in _PLUMBING for node in onnx.load_from_string(raw).graph.node)
        macs += work_of(raw).macs
    layers = [image.meta.layers[number] for number in {job.layer for job in image.meta.jobs}]
    return Shares(len(layers), sum(layer.macs for layer in layers), nodes, macs)


def _percent(part: int, whole: int) -> str:
    return f"{math.floor(100 * part / whole)} %" if part < whole else "100 %"
