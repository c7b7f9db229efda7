"""InstanceNormalization: layer normalisation of rows that are the channels of an image each."""

import dataclasses
import math

import numpy as np
import onnx

from compiler.frontend.draft import Draft, Value, attributes, operator
from compiler.frontend.ops import move, rows
from compiler.frontend.problems import Unsupported


@operator("InstanceNormalization")
def instance_normalization(draft: Draft, node: onnx.NodeProto) -> list[Value]:
    """Over all but the first two axes, with one constant scale and one bias for all channels."""
    x = draft.real(node.input[0])
    scale, bias = draft.constant(node, 1, "scale"), draft.constant(node, 2, "bias")
    assert scale is not None and bias is not None
    if any(np.unique(each).size > 1 for each in (scale, bias)):
        raise Unsupported(
            "a scale or a bias for each channel; the accelerator has one for all: write them as Mul and Add behind it, "
            "quantised, as caesura quantise does"
        )
    lines = (*x.shape[:2], math.prod(x.shape[2:]))
    flat = dataclasses.replace(x, quant=move.reshape_all(draft, x.quant, (("reshape", lines),)))
    epsilon = float(attributes(node).get("epsilon", 1e-5))
    found = rows.normalised(node, flat, scale.reshape(-1)[:1], bias.reshape(-1)[:1], epsilon)
    return [found if lines == x.shape else dataclasses.replace(found, shape=x.shape, reshapes=(("reshape", x.shape),))]
