"""``caesura run --check``: final outputs against onnxruntime, and every operator on the data the device had.

The second part runs an image compiled with ``observe=True``, in which every operator's output has a place in DRAM. Each
operator is then judged alone, on the inputs the device computed with, so that the first wrong layer is the one named.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from caesura.api import Device, Model
from compiler import golden
from compiler.ir import Graph, Host, Operation, Reshape
from hw.contract.image import Image

Arrays = dict[str, npt.NDArray]


@dataclass
class LayerCheck:
    """One operator over all samples. ``max_difference`` in LSB; ``ok``: within what ``compiler.golden`` allows it."""

    name: str
    kind: str
    output: str  #: ONNX name
    elements: int = 0
    different: int = 0
    max_difference: int = 0
    ok: bool = True
    float_in: bool = False  #: it reads float results of the CPU, which onnxruntime may round otherwise in a whole model

    def add(self, sample: golden.OperatorCheck) -> None:
        """Take the verdict on one sample into account."""
        self.elements += sample.elements
        self.different += sample.mismatches
        self.max_difference = max(self.max_difference, sample.max_diff)
        self.ok = self.ok and sample.ok

    def verdict(self) -> str:
        """``equal``, ``within tolerance ...`` or ``DIFFERS ...``."""
        if not self.different:
            return "equal"
        word = "within tolerance:" if self.ok else "DIFFERS:"
        return f"{word} {self.different:,} of {self.elements:,}, up to {self.max_difference} LSB"


@dataclass
class CheckResult:
    """The verdict. ``output_difference``: largest absolute difference of a final output from onnxruntime's, in its own
    unit; ``observed_difference``: the same from that of the image whose operators were judged."""

    layers: list[LayerCheck] = field(default_factory=list)
    samples: int = 0
    output_difference: float = 0.0
    observed_difference: float = 0.0

    @property
    def first_difference(self) -> LayerCheck | None:
        """The first operator outside its contract."""
        return next((layer for layer in self.layers if not layer.ok), None)

    @property
    def ok(self) -> bool:
        """Every operator within its contract; final outputs equal unless some operator used its tolerance, or one that
        onnxruntime computes otherwise in a whole model stands among them."""
        exact = not any(layer.different or layer.float_in or layer.kind in golden.AS_WRITTEN for layer in self.layers)
        same = self.observed_difference == 0
        return self.first_difference is None and same and (self.output_difference == 0 or not exact)

    def summary(self) -> str:
        """One sentence."""
        outputs = "equal" if not self.output_difference else f"differ by up to {self.output_difference:.6g}"
        final = f"final outputs {outputs} (onnxruntime, {self.samples} samples)"
        if self.observed_difference:
            final += f", and by {self.observed_difference:.6g} between the model and its operators observed one by one"
        bad = self.first_difference
        if bad is not None:
            return f"check FAILED: the first layer that differs is {bad.name!r} ({bad.kind}): {bad.verdict()}; {final}"
        equal = sum(not layer.different for layer in self.layers)
        layers = f"{equal} of {len(self.layers)} layers equal, the others within tolerance"
        if equal == len(self.layers):
            layers = f"all {equal} layers equal"
        return f"check {'passed' if self.ok else 'FAILED'}: {layers}; {final}"

    def verdict_of(self, name: str, output: str) -> str:
        """The verdict on a layer of an image, found by its name or the ONNX name of its output; empty if unknown."""
        for layer in self.layers:
            if layer.name == name:
                return layer.verdict()
        return next((layer.verdict() for layer in self.layers if layer.output == output), "")

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        bad = self.first_difference
        return {
            "ok": self.ok,
            "samples": self.samples,
            "outputs_equal": self.output_difference == 0,
            "output_difference": self.output_difference,
            "first_difference": None if bad is None else bad.name,
            "layers": [vars(layer) for layer in self.layers],
        }


def check(
    device: Device,
    path: Path,
    image: Image,
    graph: Graph,
    samples: Sequence[Mapping[str, npt.NDArray]],
    outputs: Sequence[Arrays],
) -> CheckResult:
    """Judge ``outputs`` of ``samples``, and every layer by running the observing ``image`` on ``device``."""
    result = CheckResult(samples=len(samples))
    model = device.load(image)
    layers = {
        op.name: LayerCheck(op.name, op.kind, _onnx_name(graph, op), float_in=_reads_float(graph, op))
        for op in graph.ops
        if not isinstance(op, Reshape)
    }
    for sample, got in zip(samples, outputs, strict=True):
        observed, _ = model.run(sample)
        wanted = golden.golden_outputs(path, sample)
        result.output_difference = max(result.output_difference, _difference(wanted, got))
        result.observed_difference = max(result.observed_difference, _difference(got, observed))
        values = {name: tensor.data for name, tensor in graph.tensors.items() if tensor.data is not None}
        values |= {port.tensor: model.loaded.read_tensor(port.tensor) for port in graph.inputs}
        for op in graph.ops:
            _observe(op, graph, model, values)
            if op.name in layers:
                layers[op.name].add(golden.check_layer(graph, op, values, values[op.output]))
    result.layers = list(layers.values())
    device.unload(model)
    return result


def _difference(expected: Arrays, got: Arrays) -> float:
    return max(float(np.abs(value.astype(np.float64) - got[name]).max(initial=0)) for name, value in expected.items())


def _reads_float(graph: Graph, op: Operation) -> bool:
    made = {name for other in graph.ops if isinstance(other, Host) for name in other.outputs}
    return any(name in made and graph.tensors[name].dtype == "float32" for name in op.inputs)


def _onnx_name(graph: Graph, op: Operation) -> str:
    return graph.tensors[op.output].onnx_name or op.output


def _observe(op: Operation, graph: Graph, model: Model, values: Arrays) -> None:
    """Add what the device computed for ``op``. A Reshape computes nothing: it is another name for its input."""
    if isinstance(op, Reshape):
        values[op.output] = values[op.inputs[0]].reshape(graph.tensors[op.output].shape)
        return
    for name in op.outputs if isinstance(op, Host) else [op.output]:
        values[name] = model.loaded.read_tensor(name)
