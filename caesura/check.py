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
import onnxruntime

from caesura.api import Device, Model
from compiler.ir import Graph, Host, Op
from hw.image import Image

Arrays = dict[str, npt.NDArray]


@dataclass
class LayerCheck:
    """One operator over all samples. ``max_difference`` in LSB; ``ok``: within what its kind allows."""

    name: str
    kind: str
    output: str  #: ONNX name
    elements: int = 0
    different: int = 0
    max_difference: int = 0
    ok: bool = True

    def verdict(self) -> str:
        """``equal``, ``within tolerance ...`` or ``DIFFERS ...``."""
        if not self.different:
            return "equal"
        word = "within tolerance:" if self.ok else "DIFFERS:"
        return f"{word} {self.different:,} of {self.elements:,}, up to {self.max_difference} LSB"


@dataclass
class CheckResult:
    """The verdict. ``output_difference``: largest absolute difference of a final output, in its own unit."""

    layers: list[LayerCheck] = field(default_factory=list)
    samples: int = 0
    output_difference: float = 0.0

    @property
    def first_difference(self) -> LayerCheck | None:
        """The first operator outside its contract."""
        return next((layer for layer in self.layers if not layer.ok), None)

    @property
    def ok(self) -> bool:
        """Every operator within its contract; final outputs equal unless some operator used its tolerance."""
        exact = not any(layer.different for layer in self.layers)
        return self.first_difference is None and (self.output_difference == 0 or not exact)

    def summary(self) -> str:
        """One sentence."""
        outputs = "equal" if not self.output_difference else f"differ by up to {self.output_difference:.6g}"
        final = f"final outputs {outputs} (onnxruntime, {self.samples} samples)"
        bad = self.first_difference
        if bad is not None:
            return f"check FAILED: the first layer that differs is {bad.name!r} ({bad.kind}): {bad.verdict()}; {final}"
        equal = sum(not layer.different for layer in self.layers)
        layers = f"{equal} of {len(self.layers)} layers equal, the others within tolerance"
        if equal == len(self.layers):
            layers = f"all {equal} layers equal"
        return f"check {'passed' if self.ok else 'FAILED'}: {layers}; {final}"

    def by_output(self) -> dict[str, str]:
        """Verdicts by the ONNX name of the tensor that was computed."""
        return {layer.output: layer.verdict() for layer in self.layers}

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
    reference = Reference(path)
    model = device.load(image)
    layers = {op.name: LayerCheck(op.name, op.kind, _onnx_name(graph, op)) for op in graph.ops}
    for sample, got in zip(samples, outputs, strict=True):
        observed, _ = model.run(sample)
        for expected, values in ((reference.run(sample), got), (got, observed)):
            result.output_difference = max(result.output_difference, _difference(expected, values))
        for op in graph.ops:
            if not isinstance(op, Host):
                _check_op(layers[op.name], graph, op, model)
    result.layers = [layer for layer in layers.values() if layer.elements]
    device.unload(model)
    return result


class Reference:
    """onnxruntime with its integer kernels, which are the golden result."""

    def __init__(self, path: Path) -> None:
        options = onnxruntime.SessionOptions()
        options.add_session_config_entry("session.qdqisint8allowed", "1")  # x86-64 computes QDQ in float otherwise
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self._names = [output.name for output in self._session.get_outputs()]

    def run(self, inputs: Mapping[str, npt.NDArray]) -> Arrays:
        """Outputs by name."""
        return dict(zip(self._names, self._session.run(None, dict(inputs)), strict=True))


def _difference(expected: Arrays, got: Arrays) -> float:
    return max(float(np.abs(value.astype(np.float64) - got[name]).max(initial=0)) for name, value in expected.items())


def _onnx_name(graph: Graph, op: Op) -> str:
    return graph.tensors[op.output].onnx_name or op.output


def _check_op(layer: LayerCheck, graph: Graph, op: Op, model: Model) -> None:
    from compiler.golden import check_layer

    inputs = [_value(graph, name, model) for name in op.inputs]
    outcome = check_layer(graph, op, inputs, model.loaded.read_tensor(op.output))
    layer.elements += outcome.elements
    layer.different += outcome.different
    layer.max_difference = max(layer.max_difference, outcome.max_difference)
    layer.ok = layer.ok and outcome.ok


def _value(graph: Graph, name: str, model: Model) -> npt.NDArray:
    data = graph.tensors[name].data
    return model.loaded.read_tensor(name) if data is None else data
