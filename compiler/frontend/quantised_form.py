"""How a model is quantised, and what helps where it cannot run as it is."""

import enum

import onnx


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
    QuantisedForm.STATIC: "Give {fallback} to run them on the CPU.",
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
