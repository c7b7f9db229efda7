"""A factor and an offset for each channel: batch normalisations that no exporter could fold, and float constants."""

import numpy as np
import pytest

from compiler import golden, reference
from compiler.frontend import import_model
from compiler.frontend.problems import UnsupportedModel
from tests.support.golden_check import check_model, kinds, random_inputs
from tests.support.onnx_models import Net

SHAPE, CHANNELS = (1, 20, 16, 14), 20


def normalised(net: Net, x: str, gamma=None, **attributes) -> str:
    scale = net.rng.uniform(-2, 2, CHANNELS) if gamma is None else gamma
    more = net.rng.normal(0, 1, CHANNELS), net.rng.normal(0, 1, CHANNELS), net.rng.uniform(0.3, 2, CHANNELS)
    return net.node("BatchNormalization", [x, *(net.const(one, np.float32) for one in (scale, *more))], **attributes)


def equal(model):
    """Import a model, and assert that at most one element in a thousand is not onnxruntime's."""
    graph = check_model(model)
    inputs = random_inputs(graph)
    (found,), (wanted,) = reference.run(graph, inputs).values(), golden.golden_outputs(model, inputs).values()
    assert np.count_nonzero(found != wanted) <= found.size // 1000
    return graph


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("shape", [SHAPE, (2, 20, 60), (50, 20), (1, 20, 4, 5, 6)])
def test_a_batch_normalisation(shape, dtype):
    net = Net(16)
    y = normalised(net, net.dq(net.input(shape, dtype), 0.0371, 5, dtype))
    graph = equal(net.model(net.q(y, 0.05, 9, dtype), dtype=dtype))
    assert [op.groups for op in graph.ops if op.kind == "conv"] == [CHANNELS]


def test_quantised_constants_and_a_clamp():
    net = Net(16)
    x = net.dq(net.input(SHAPE), 0.0371, 5)
    gamma = net.dq(net.const(net.array(CHANNELS)), 0.011)
    others = (net.const(net.rng.uniform(0.3, 2, CHANNELS), np.float32) for _ in range(3))
    y = net.node("Relu", [net.node("BatchNormalization", [x, gamma, *others], epsilon=1e-3)])
    assert "table" not in kinds(equal(net.model(net.q(y, 0.03, -128))))


def test_a_channel_without_a_factor():
    net = Net(16)
    gamma = np.where(np.arange(CHANNELS) % 3, 1.5, 0)
    equal(net.model(net.q(normalised(net, net.dq(net.input(SHAPE), 0.0371, 5), gamma), 0.05, 9)))


def test_part_of_the_convolution_in_front():
    net = Net(16)
    y = normalised(net, net.conv(net.dq(net.input((1, 6, 8, 8)), 0.031, 7), 0.031, (CHANNELS, 6, 3, 3)))
    assert kinds(equal(net.model(net.q(y, 0.4, 9)))).count("conv") == 1


def test_behind_a_clamp_it_is_refused():
    net = Net(16)
    y = net.node("Relu", [net.conv(net.dq(net.input((1, 6, 8, 8)), 0.031, 7), 0.031, (CHANNELS, 6, 3, 3))])
    with pytest.raises(UnsupportedModel, match="behind a clamp or reshape; quantise between them"):
        import_model(net.model(net.q(normalised(net, y), 0.4, 9)))


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul"])
@pytest.mark.parametrize("shape", [SHAPE, (1, 20, 60)])
def test_a_constant_for_each_channel(shape, op):
    net = Net(16)
    x = net.dq(net.input(shape), 0.0371, 5)
    by = net.const(net.rng.normal(0, 1, (CHANNELS, *(1,) * (len(shape) - 2))), np.float32)
    assert "eltwise" not in kinds(equal(net.model(net.q(net.node(op, [x, by]), 0.04, 9))))


@pytest.mark.parametrize("variance", [-2.0, np.nan, -1e-5])
def test_a_batch_normalisation_by_no_number_is_refused(variance):
    net = Net(16)
    x = net.dq(net.input(SHAPE), 0.0371, 5)
    others = (net.const(np.full(CHANNELS, value), np.float32) for value in (1, 0, 0, variance))
    y = net.node("BatchNormalization", [x, *others], epsilon=1e-5)
    with pytest.raises(UnsupportedModel, match="20 channels whose factor or offset is not a finite number"):
        import_model(net.model(net.q(y, 0.05, 9)))


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul"])
def test_a_constant_that_is_infinite_is_refused(op):
    net = Net(16)
    by = net.const(np.where(np.arange(CHANNELS) == 3, np.inf, 1.0).reshape(-1, 1, 1), np.float32)
    y = net.node(op, [net.dq(net.input(SHAPE), 0.0371, 5), by])
    with pytest.raises(UnsupportedModel, match="constants of 1 channels whose factor or offset"):
        import_model(net.model(net.q(y, 0.05, 9)))


@pytest.mark.parametrize("much", [1e38, -1e38])
def test_a_large_constant_keeps_its_sign(much):
    net = Net(16)
    x = net.dq(net.input(SHAPE), 0.0371, 5)
    y = net.node("Add", [x, net.const(np.full((CHANNELS, 1, 1), much), np.float32)])
    equal(net.model(net.q(y, 0.05, 9)))
