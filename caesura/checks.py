"""Checks a run (``caesura run --check``): final outputs against onnxruntime, and every operator on the data the device
had.

The second part runs an image compiled with ``observe=True``, in which every operator's output has a place in DRAM. Each
operator is then judged alone, on the inputs the device computed with, so that the first wrong layer is the one named.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from caesura.api import Arrays, Device, Model
from compiler import Graph, Host, Operation, Port, Reshape, compile_with_report, golden
from hw.image import Image

ROUNDING = 1e-5  #: of the largest magnitude: what float32 operations may add up to


@dataclass
class LayerCheck:
    """Judges one operator over all samples. ``max_difference`` is in LSB; ``ok``: within what ``compiler.golden``
    allows it."""

    name: str
    kind: str
    output: str  #: ONNX name
    elements: int = 0
    different: int = 0
    max_difference: int = 0
    ok: bool = True
    nodes: tuple[str, ...] = ()  #: of ONNX
    float_in: bool = False  #: it reads float results of the CPU, which onnxruntime may round otherwise in a whole model

    def add(self, sample: golden.OperatorCheck) -> None:
        """Take the verdict on one sample into account."""
        self.elements += sample.elements
        self.different += sample.mismatches
        self.max_difference = max(self.max_difference, sample.max_diff)
        self.ok = self.ok and sample.ok

    def verdict(self) -> str:
        """Return ``equal``, ``within tolerance ...`` or ``DIFFERS ...``."""
        if not self.different:
            return "equal"
        word = "within tolerance:" if self.ok else "DIFFERS:"
        return f"{word} {self.different:,} of {self.elements:,}, up to {self.max_difference} LSB"


@dataclass
class CheckResult:
    """Holds the verdict. ``output_difference``: largest absolute difference of a final output from onnxruntime's, in
    its own unit, infinite where one of the two is no number; ``observed_difference``: the same from that of the image
    whose operators were judged."""

    layers: list[LayerCheck] = field(default_factory=list)
    samples: int = 0
    output_difference: float = 0.0
    observed_difference: float = 0.0
    within_rounding: bool = True  #: rounding of floats explains the difference of the outputs

    @property
    def first_difference(self) -> LayerCheck | None:
        """Return the first operator that breaks its contract."""
        return next((layer for layer in self.layers if not layer.ok), None)

    @property
    def ok(self) -> bool:
        """Return whether every operator is within its contract, and final outputs are equal unless some operator used
        its tolerance, or one that onnxruntime computes otherwise in a whole model stands among them. Where all that can
        differ are floats between steps on the CPU, outputs may differ by what their rounding explains, see
        :func:`_rounded_alike`."""
        inexact = any(layer.different or layer.kind in golden.AS_WRITTEN for layer in self.layers)
        rounded = self.within_rounding and any(layer.float_in for layer in self.layers)
        outputs_ok = self.output_difference == 0 or inexact or rounded
        return self.first_difference is None and self.observed_difference == 0 and outputs_ok

    def summary(self) -> str:
        """Return the verdict as one sentence."""
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

    def verdict_of(self, name: str, output: str, nodes: Collection[str] = ()) -> str:
        """Return the verdict on a layer of an image: on all operators that it is made of, those whose ONNX nodes are
        among its ``nodes`` or that have its ``name`` or ``output`` (of ONNX). Those that differ speak; empty if none is
        known."""
        found = [
            layer
            for layer in self.layers
            if layer.name == name or layer.output == output or (layer.nodes and set(layer.nodes) <= set(nodes))
        ]
        told = [layer for layer in found if not layer.ok] or [layer for layer in found if layer.different] or found
        if not told:
            return ""
        whole = LayerCheck(name, told[0].kind, output, ok=told[0].ok)
        whole.elements, whole.different = sum(one.elements for one in told), sum(one.different for one in told)
        whole.max_difference = max(one.max_difference for one in told)
        return whole.verdict()

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict as data for JSON."""
        bad = self.first_difference
        return {
            "ok": self.ok,
            "samples": self.samples,
            "outputs_equal": self.output_difference == 0,
            "output_difference": self.output_difference,
            "first_difference": None if bad is None else bad.name,
            "layers": [{**vars(layer), "nodes": list(layer.nodes)} for layer in self.layers],
        }


def check_model(
    device: Device,
    path: Path,
    samples: Sequence[Mapping[str, npt.NDArray]],
    outputs: Sequence[Arrays],
    **compiling: Any,
) -> CheckResult:
    """Judge ``outputs`` of ``samples``, and every layer of the model in ``path``, which is compiled for that; see
    ``caesura.compile`` for ``compiling``."""
    # On one engine, whatever the run used: copies for observation are not ordered behind the other engines' parts.
    observing = compile_with_report(path, device.params, observe=True, engines=1, **compiling)
    return check(device, path, observing.image, observing.graph, samples, outputs)


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
        op.name: LayerCheck(
            op.name, op.kind, _onnx_name(graph, op), nodes=tuple(op.nodes), float_in=_reads_float(graph, op)
        )
        for op in graph.ops
        if golden.judged(graph, op)
    }
    for sample, got in zip(samples, outputs, strict=True):
        observed, _ = model.run(sample)
        wanted = golden.golden_outputs(path, sample)
        result.output_difference = max(result.output_difference, _difference(wanted, got))
        result.observed_difference = max(result.observed_difference, _difference(got, observed))
        result.within_rounding &= all(_rounded_alike(graph, port, wanted[port.name], got) for port in graph.outputs)
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
    """Return the largest difference; values that are no number, or infinite, equal themselves only."""
    return max(float(_apart(value, got[name]).max(initial=0)) for name, value in expected.items())


def _apart(expected: npt.NDArray, got: npt.NDArray) -> npt.NDArray[np.float64]:
    one, other = expected.astype(np.float64), got.astype(np.float64)
    with np.errstate(invalid="ignore"):
        apart = np.abs(one - other)
    apart[(one == other) | (np.isnan(one) & np.isnan(other))] = 0
    return np.where(np.isnan(apart), np.inf, apart)


def _rounded_alike(graph: Graph, port: Port, expected: npt.NDArray, outputs: Arrays) -> bool:
    """Return whether no more than the rounding of floats lies between an output and onnxruntime's: a float32 operation
    errs by 6e-8 of its result, a hundred in a row by ``ROUNDING`` of the largest. A float that lies at a half is then
    quantised to the next integer, so a quantised output may differ by one step."""
    tensor, got = graph.tensors[port.tensor], outputs[port.name]
    if tensor.dtype.startswith("float"):
        finite = np.abs(expected[np.isfinite(expected)], dtype=np.float64)
        allowed = ROUNDING * float(finite.max(initial=0))
    else:
        allowed = 1.001 * tensor.scale if port.quantise else 1.0  # the difference is that of two rounded products
    return bool((_apart(expected, got) <= allowed).all())


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
