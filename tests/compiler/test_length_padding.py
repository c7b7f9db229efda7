"""Padding is allowed where it is exact: what is proved holds for any padding, and what is refused does not."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from compiler import reference
from compiler.dynamic_dimension import DynamicDimension
from compiler.frontend import import_model
from compiler.length_padding import padding_problem
from tests.support.length_nets import H, X, conv_net, length_net


def graphs(model, *lengths):
    dimension = DynamicDimension.of(model)
    return [import_model(dimension.fixed(length), name="net") for length in lengths]


def differs(short, long, seed=0):
    """Whether some output of ``long`` does not begin with that of ``short``, for random values in the padding."""
    rng = np.random.default_rng(seed)
    (port,), (longer,) = short.inputs, long.inputs
    for _ in range(3):
        x = rng.integers(-128, 128, longer.shape).astype(np.int8)
        cut = tuple(slice(size) for size in port.shape)
        results, wanted = reference.run(long, {"x": x}), reference.run(short, {"x": x[cut]})
        for name, value in wanted.items():
            begin = results[name][tuple(slice(size) for size in value.shape)]
            if begin.shape != value.shape or (begin != value).any():
                return True
    return False


def residual(net, x):
    y = net.dq(net.q(net.conv(x, X[0], (4, 4, 3), pads=[2, 0]), *H), *H)
    return net.node("Add", [x, y])


def pooled(net, x):
    y = net.dq(net.q(net.node("MaxPool", [x], kernel_shape=[2], strides=[2]), *X), *X)
    return net.conv(y, X[0], (4, 4, 1))


def joined(net, x):
    y = net.dq(net.q(net.conv(x, X[0], (4, 4, 2), pads=[1, 0]), *X), *X)
    return net.node("Concat", [x, y], axis=1)


def turned(net, x):
    return net.node("Transpose", [x], perm=[0, 2, 1])


def product(net, x):
    weights, _ = net.weights((4, 6), axis=1)
    return net.node("MatMul", [turned(net, x), weights])


EXACT = {
    "causal": conv_net((2, 0), (2, 0)),
    "valid": conv_net((0, 0)),
    "strided": conv_net((2, 0), (2, 0), stride=2),
    "pointwise": conv_net((0, 0), kernel=1),
    "residual": length_net(residual),
    "pooled": length_net(pooled),
    "joined": length_net(joined),
    "turned": length_net(turned),
    "product": length_net(product),
    "sigmoid": length_net(lambda net, x: net.node("Sigmoid", [x])),
}


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize(("length", "longer"), [(9, 16), (10, 11), (5, 64)])
def test_exact_padding_is_proved(name, length, longer):
    short, long = graphs(EXACT[name], length, longer)
    assert padding_problem(short, long) is None
    assert not differs(short, long)


def average(net, x):
    return net.node("GlobalAveragePool", [x])


def flat(net, x):
    return net.node("Flatten", [x])


def doubled(net, x):
    return net.node("Concat", [x, x], axis=2)


def padded_behind(net, x):
    padded = net.node("Pad", [x, net.const([0, 0, 0, 0, 0, 0, 0, 1], np.int64)])
    return net.node("MaxPool", [net.dq(net.q(padded, *X), *X)], kernel_shape=[1, 2])


REFUSED = {
    "same": (conv_net((1, 1)), "reads 1 beyond the end of the shorter input, where it has padding"),
    "same behind causal": (conv_net((2, 0), (1, 1)), "reads 1 beyond the end"),
    "average": (length_net(average), "kernel of operator .* is not the same for both lengths"),
    "flat": (length_net(flat), "mixes what lies along the length"),
    "doubled": (length_net(doubled), "joins along the length"),
    "padded behind": (length_net(padded_behind, (1, 4, 3, "L")), "beyond the end"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_padding_is_refused_and_would_be_wrong(name):
    model, message = REFUSED[name]
    short, long = graphs(model, 9, 16)
    problem = padding_problem(short, long)
    assert problem is not None
    with pytest.raises(AssertionError, match=message):
        raise AssertionError(problem)
    assert differs(short, long)


def test_padding_that_no_window_reads_is_no_problem():
    """At an odd length the last window, of stride 2, ends within the input: the padding behind it does not count."""
    model = conv_net((0, 1), stride=2)
    for length, exact in ((9, True), (10, False)):
        short, long = graphs(model, length, 16)
        assert (padding_problem(short, long) is None) is exact
        assert differs(short, long) is not exact


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=3),
    st.integers(1, 3),
    st.integers(1, 3),
    st.integers(9, 24),
    st.integers(1, 20),
)
def test_what_is_proved_holds(pads, kernel, stride, length, more):
    stride = stride if len(pads) < 3 else 1
    model = conv_net(*pads, kernel=kernel, stride=stride)
    short, long = graphs(model, length, length + more)
    if padding_problem(short, long) is None:
        assert not differs(short, long)
