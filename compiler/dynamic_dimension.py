"""Models with a dynamic dimension: which dimension it is, and the model with a length in its place."""

from dataclasses import dataclass
from pathlib import Path

import onnx

from compiler.frontend.load import inputs_of, label_of, open_axes, read_model
from compiler.ir import CompileError


@dataclass(frozen=True)
class DynamicDimension:
    """The dynamic dimension ``label`` of a model. ``axes``: where inputs have it, as (input, axis); never empty."""

    model: str  #: the model's name, for messages
    label: str
    axes: tuple[tuple[str, int], ...]
    proto: onnx.ModelProto

    @classmethod
    def of(
        cls, path: str | Path | onnx.ModelProto, label: str | None = None, name: str = "model"
    ) -> "DynamicDimension":
        """That of a model (a file, or read already under ``name``). ``label``: its name; by default the only one behind
        the first dimension, which is the batch and 1. Raises :class:`CompileError` naming what there is."""
        if isinstance(path, onnx.ModelProto):
            proto, where = path, name
        else:
            proto, where, name = read_model(Path(path)), str(path), Path(path).stem
        found = _dynamic(proto)
        labels = dict.fromkeys(each for each, (_, axis) in found if axis or each == label)
        told = ", ".join(map(repr, dict.fromkeys(each for each, _ in found))) or "none"
        if label is None and len(labels) != 1:
            raise CompileError(
                f"{where}: {len(labels) or 'no'} dynamic dimensions behind the first of its inputs, and one is wanted; "
                f"it has {told}: say which, and export the model with fixed sizes in place of the others"
            )
        label = label or next(iter(labels))
        if label not in labels:
            raise CompileError(f"{where}: no input has a dynamic dimension {label!r}; it has {told}")
        return cls(name, label, tuple(place for each, place in found if each == label), proto)

    @property
    def inputs(self) -> list[str]:
        """Names of the model's inputs."""
        return [value.name for value in inputs_of(self.proto)]

    def fixed(self, length: int) -> onnx.ModelProto:
        """Return the model for one length."""
        proto = onnx.ModelProto()
        proto.CopyFrom(self.proto)
        inputs = {value.name: value.type.tensor_type.shape.dim for value in proto.graph.input}
        for name, axis in self.axes:
            inputs[name][axis].dim_value = length
        return proto


def dynamic_batches(proto: onnx.ModelProto) -> list[str]:
    """Return what the first dimensions of inputs are called where they are dynamic."""
    return [label for label, (_, axis) in _dynamic(proto) if axis == 0]


def _dynamic(proto: onnx.ModelProto) -> list[tuple[str, tuple[str, int]]]:
    """(label, (input, axis)) of all dynamic dimensions; one without a name is called by its place."""
    return [(label_of(value, axis), (value.name, axis)) for value in inputs_of(proto) for axis in open_axes(value)]
