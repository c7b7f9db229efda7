"""Sums of more than two tensors and means of several: within the contract, whatever the steps of the tensors."""

import numpy as np
import pytest

from compiler.frontend import UnsupportedModel, import_model
from tests.support.fast_run import equals_onnxruntime
from tests.support.golden_check import check_model, kinds
from tests.support.onnx_models import Net, sandwich

SHAPE = (1, 6, 9, 7)
STEPS = {
    "alike": [(0.03, 0)] * 3,
    "simple ratios": [(0.02, 3), (0.04, -5), (0.06, 7)],
    "any": [(0.0313, 3), (0.0427, -5), (0.0171, 100), (0.0293, -100)],
    "one much finer": [(0.05, 0), (0.0007, 9), (0.03, -7)],
    "seven": [(0.01 + 0.003 * n, 5 * n - 9) for n in range(7)],
}


def operands(steps, shape=SHAPE, offset: int = 0):
    return [(shape, scale, zero + offset) for scale, zero in steps]


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("op", ["Sum", "Mean"])
@pytest.mark.parametrize("name", STEPS)
def test_of_tensors_in_any_steps(name, op, dtype):
    steps = STEPS[name]
    scale = sum(step for step, _ in steps) / 1.7 / (len(steps) if op == "Mean" else 1)
    offset = 128 if dtype == "uint8" else 0
    model = sandwich(op, operands(steps, offset=offset), (scale, 7 + offset), dtype=dtype)
    found = kinds(check_model(model))
    assert found.count("blend") == 1 and "host" not in found


@pytest.mark.parametrize("shape", [(3, 40), (2, 5, 24), (2, 6, 5, 4)])
def test_of_other_ranks_and_images(shape):
    check_model(sandwich("Sum", operands(STEPS["any"], shape), (0.09, -3)))


def test_that_is_clamped():
    net = Net()
    parts = [net.dq(net.input(SHAPE, name=f"x{n}"), *step) for n, step in enumerate(STEPS["any"])]
    y = net.node("Clip", [net.node("Sum", parts), net.const(0.0, np.float32), net.const(6.0, np.float32)])
    check_model(net.model(net.q(y, 6 / 255, -128)))


def test_of_two_tensors():
    assert kinds(check_model(sandwich("Sum", operands(STEPS["any"][:2]), (0.05, 7)))) == ["eltwise"]
    assert "blend" in kinds(check_model(sandwich("Mean", operands(STEPS["any"][:2]), (0.04, 7))))


@pytest.mark.parametrize("op", ["Sum", "Mean"])
def test_of_one_tensor_is_a_table(op):
    net = Net()
    x = net.dq(net.input(SHAPE), 0.03, 3)
    assert kinds(check_model(net.model(net.q(net.node(op, [x, x, x]), 0.07, -3)))) == ["table"]
    assert kinds(check_model(sandwich(op, operands([(0.03, 3)]), (0.05, 7)))) == ["table"]


@pytest.mark.parametrize("preset", ["tiny", "base"])
@pytest.mark.parametrize("op", ["Sum", "Mean"])
def test_through_the_system(op, preset):
    """Amid a network: branches that are summed, and what reads the sum."""
    net = Net()
    x = net.dq(net.input((1, 5, 9, 7)), 0.031, 7)
    branches = [net.q(net.conv(x, 0.031, (24, 5, 3, 3), pads=[1] * 4), step, zero) for step, zero in STEPS["any"]]
    reals = [net.dq(branch, step * 20, zero) for branch, (step, zero) in zip(branches, STEPS["any"], strict=True)]
    y = net.dq(net.q(net.node(op, reals), 1.4, 5), 1.4, 5)
    equals_onnxruntime(net.model(net.q(net.node("LeakyRelu", [y], alpha=0.1), 1.4, 5)), preset, least=0.99)


@pytest.mark.parametrize(
    ("inputs", "target", "reason"),
    [
        (operands(STEPS["any"]), 0.001, "in steps of up to 0.0427 to a result in steps of 0.001; the accelerator adds"),
        ([*operands(STEPS["any"]), ((6, 1, 1), 0.03, 0)], 0.1, "the accelerator adds several tensors of one shape"),
        (operands(STEPS["alike"] * 11), 1.0, "it adds 33 tensors; the accelerator adds 32 at most"),
    ],
)
def test_others_are_refused(inputs, target, reason):
    with pytest.raises(UnsupportedModel, match=reason):
        import_model(sandwich("Sum", inputs, (target, 0)))
