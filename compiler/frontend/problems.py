"""Errors of the front end: every node that cannot be compiled is collected and reported at once, with what helps: it
depends on how the model is quantised."""

import enum
import re
from dataclasses import dataclass

import onnx

from compiler.ir import CompileError


class Unsupported(Exception):
    """Raised by an operator's importer: the accelerator cannot run this node; the message is the reason."""


@dataclass(frozen=True)
class NodeProblem:
    """A node that the accelerator cannot run. ``follows``: only because it reads what another such node computes."""

    name: str
    type: str
    reason: str
    follows: bool = False

    def __str__(self) -> str:
        return f"{self.type} {self.name!r}: {self.reason}"


class OpenDimension(CompileError):
    """An input has a dimension without a size, called ``label``. The message says how to give it one: as an argument,
    unless :meth:`told` says otherwise."""

    def __init__(self, where: str, value: str, axis: int, label: str):
        self.label = label
        self._problem = f"{where}: input {value!r} has a dynamic dimension {axis} ({label!r})"
        super().__init__(
            self.told(f"sizes={{{label!r}: N}},") + ", or open it with caesura.dynamic for sizes that vary"
        )

    def told(self, way: str | None) -> str:
        """Return the message where ``way`` gives a size, such as an option; None: nothing does."""
        return f"{self._problem}; {f'give its size, {way} or ' if way else ''}export the model with a fixed one"


class UnsupportedModel(CompileError):
    """The model has nodes that the accelerator cannot run; ``nodes`` lists all of them. ``advice`` says what helps;
    ``{fallback}`` in it stands for how the CPU is allowed to run them: by an argument, unless :meth:`told` says how."""

    def __init__(self, model: str, nodes: list[NodeProblem], advice: str):
        self.nodes, self._advice = nodes, advice
        lines = "\n".join(f"  {told}" for told in causes(nodes))
        self._problem = f"{model}: the accelerator cannot run {_count(nodes)}:\n{lines}"
        super().__init__(self.told("fallback=True"))

    def told(self, fallback: str | None) -> str:
        """Return the message where ``fallback`` allows the CPU to run nodes, such as an option; None: nothing does."""
        advice = self._advice
        if "{fallback}" in advice:
            advice = advice.format(fallback=fallback) if fallback else "Nothing runs on the CPU here."
        return f"{self._problem}\n{advice}"


_NAMED = 3  #: nodes of a group


def causes(nodes: list[NodeProblem]) -> list[str]:
    """Return a line for each operator and reason, with the first nodes that have it. Those that only read what others
    compute are counted in the last."""
    groups: dict[tuple[str, str], list[NodeProblem]] = {}
    first = [node for node in nodes if not node.follows]
    for node in first or nodes:
        groups.setdefault((node.type, re.sub(r"'[^']*'", "", node.reason)), []).append(node)
    lines = [_group(group) for group in groups.values()]
    if first and (behind := nodes[len(first) :]):
        lines.append(f"and {_count(behind)} that {'read' if len(behind) > 1 else 'reads'} what these compute")
    return lines


def _group(nodes: list[NodeProblem]) -> str:
    if len(nodes) == 1:
        return str(nodes[0])
    names = ", ".join(repr(node.name) for node in nodes[:_NAMED]) + ", ..." * (len(nodes) > _NAMED)
    return f"{nodes[0].type}, {_count(nodes)} ({names}): {nodes[0].reason}"


def _count(nodes: list[NodeProblem]) -> str:
    return f"{len(nodes)} node" + "s" * (len(nodes) > 1)


def first_line(error: Exception) -> str:
    """Of what a library says, which may be nothing."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


class QuantisedForm(enum.Enum):
    """How the activations of a model are stored."""

    STATIC = "static"  #: in 8 bits with constant scales: what the accelerator runs
    DYNAMIC = "dynamic"  #: in 8 bits with scales that are found while it runs
    WEIGHTS = "weights"  #: in float; only constants are quantised
    FLOAT = "float"  #: in float, like everything else


_DYNAMIC = ("DynamicQuantizeLinear", "DynamicQuantizeMatMul", "DynamicQuantizeLSTM", "MatMulIntegerToFloat")
_STATIC = ("QuantizeLinear", "QGemm", "ConvInteger", "MatMulInteger")


def quantised_form(model: onnx.ModelProto) -> QuantisedForm:
    """Return the form of a model."""
    kinds = {node.op_type for node in model.graph.node}
    if kinds.intersection(_DYNAMIC):
        return QuantisedForm.DYNAMIC
    if kinds.intersection(_STATIC) or any(kind.startswith("QLinear") for kind in kinds):
        return QuantisedForm.STATIC
    return QuantisedForm.WEIGHTS if "DequantizeLinear" in kinds else QuantisedForm.FLOAT


_QUANTISE = "caesura quantise FLOAT.onnx --data SAMPLES.npz -o Q.onnx"
_ADVICE = {
    QuantisedForm.STATIC: "They stand between 8-bit tensors. Give {fallback} to run them on the CPU.",
    QuantisedForm.DYNAMIC: "The model is quantised dynamically: its scales are found while it runs, and the "
    f"accelerator needs constant ones. Quantise the float model it was made from: {_QUANTISE}",
    QuantisedForm.WEIGHTS: f"Only the weights are quantised. Quantise the float model it was made from: {_QUANTISE}",
    QuantisedForm.FLOAT: f"The model is not quantised. Quantise it: {_QUANTISE}",
}


def advice(model: onnx.ModelProto, fallback: bool) -> str:
    """Return what helps a model that has nodes which cannot run; ``fallback``: the CPU was allowed to run nodes
    already. Where that is what helps, ``{fallback}`` stands for how to allow it."""
    form = quantised_form(model)
    if fallback and form is QuantisedForm.STATIC:
        return "The CPU cannot take them over either; change these nodes in the model, or leave them out."
    return _ADVICE[form]
