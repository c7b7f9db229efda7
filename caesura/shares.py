"""What of a model runs on the accelerator, and what on the CPU."""

import math
from dataclasses import dataclass

import onnx

from hw.contract.image import Image

_PLUMBING = (
    "Cast", "DequantizeLinear", "Flatten", "Identity", "QuantizeLinear", "Reshape", "Squeeze", "Transpose", "Unsqueeze",
)  # fmt: skip


@dataclass(frozen=True)
class Shares:
    """``layers`` and ``macs`` that the accelerator and the CPU have."""

    layers: int
    macs: int
    cpu_layers: int
    cpu_macs: int

    @property
    def all_on_cpu(self) -> bool:
        """The accelerator computes nothing."""
        return not self.layers

    def sentence(self) -> str:
        """For people."""
        macs = self.macs + self.cpu_macs
        share = f", {_percent(self.macs, macs)} of MACs" if macs else ""
        return f"{self.layers} of {self.layers + self.cpu_layers} layers on the accelerator{share}"

    def to_dict(self) -> dict[str, int]:
        """For JSON."""
        return vars(self).copy()


def shares(image: Image) -> Shares:
    """Those of an image. Nodes that only move or convert data are no layers of the CPU."""
    nodes, macs = 0, 0
    for raw in image.host_models:
        model = onnx.shape_inference.infer_shapes(onnx.load_from_string(raw))
        shapes = _shapes(model)
        counted = [node for node in model.graph.node if node.op_type not in _PLUMBING]
        nodes += len(counted)
        macs += sum(_macs(node, shapes) for node in counted)
    layers = [image.meta.layers[number] for number in {job.layer for job in image.meta.jobs}]
    return Shares(len(layers), sum(layer.macs for layer in layers), nodes, macs)


def _shapes(model: onnx.ModelProto) -> dict[str, list[int]]:
    values = (*model.graph.value_info, *model.graph.input, *model.graph.output)
    found = {value.name: [dim.dim_value for dim in value.type.tensor_type.shape.dim] for value in values}
    return found | {tensor.name: list(tensor.dims) for tensor in model.graph.initializer}


def _macs(node: onnx.NodeProto, shapes: dict[str, list[int]]) -> int:
    """MACs of a convolution or a product; 0 for other nodes, and where shapes are not known."""
    if len(node.input) < 2 or not all(name in shapes for name in (*node.input[:2], *node.output[:1])):
        return 0
    result, left, right = math.prod(shapes[node.output[0]]), shapes[node.input[0]], shapes[node.input[1]]
    if node.op_type in ("Conv", "ConvInteger"):
        return result * math.prod(right[1:])
    if node.op_type in ("MatMul", "MatMulInteger", "Gemm") and left:
        turned = any(attribute.name == "transA" and attribute.i for attribute in node.attribute)
        return result * (left[0] if turned else left[-1])
    return 0


def _percent(part: int, whole: int) -> str:
    return f"{math.floor(100 * part / whole)} %" if part < whole else "100 %"
