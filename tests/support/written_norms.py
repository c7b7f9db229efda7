"""Layer and root mean square normalisation written out in single operators, as exporters do it."""

from dataclasses import dataclass

import numpy as np

from tests.support.onnx_models import Net


@dataclass(frozen=True)
class Form:
    """How an exporter writes it."""

    opset: int = 13
    axis: int = -1
    square: str = "pow"  #: or mul, or twice: the difference is computed once for the square and once for the quotient
    root: str = "sqrt"  #: or pow
    quotient: str = "div"  #: or reciprocal, or one (divided by the deviation), or rsqrt (power of -1/2)
    turned: bool = False  #: constants come first where that makes no difference
    centred: bool = True  #: not: the root mean square takes the place of the deviation


def written(net: Net, x: str, form: Form, epsilon: float = 1e-5, gamma=None, beta=None) -> dict[str, str]:
    """The nodes; names of the values inside, of which the last is ``y``."""

    def number(value: float) -> str:
        return net.node("Constant", [], value_float=value)

    def mean(value: str) -> str:
        if form.opset < 18:
            return net.node("ReduceMean", [value], axes=[form.axis], keepdims=1)
        return net.node("ReduceMean", [value, net.const([form.axis], np.int64)])

    def ordered(*inputs: str) -> tuple[str, ...]:
        return inputs[::-1] if form.turned else inputs

    made = {"mean": mean(x)} if form.centred else {}
    made["d"] = base = net.node("Sub", [x, made["mean"]]) if form.centred else x
    if form.square == "twice":
        base = net.node("Sub", [x, made["mean"]])
    by_mul = form.square == "mul"
    made["square"] = net.node("Mul", [base, base]) if by_mul else net.node("Pow", [base, number(2.0)])
    made["variance"] = mean(made["square"])
    made["steady"] = net.node("Add", ordered(made["variance"], number(epsilon)))
    if form.quotient == "rsqrt":
        inverse = net.node("Pow", [made["steady"], number(-0.5)])
    else:
        power = form.root == "pow"
        root = net.node("Pow", [made["steady"], number(0.5)]) if power else net.node("Sqrt", [made["steady"]])
        made["root"] = inverse = root
        if form.quotient == "reciprocal":
            inverse = net.node("Reciprocal", [root])
        elif form.quotient == "one":
            inverse = net.node("Div", [number(1.0), root])
    if form.quotient == "div":
        made["y"] = net.node("Div", [made["d"], made["root"]])
    else:
        made["y"] = net.node("Mul", ordered(made["d"], inverse))
    for op, constant in (("Mul", gamma), ("Add", beta)):
        if constant is not None:
            made["y"] = net.node(op, ordered(made["y"], net.const(constant, np.float32)))
    return made
