"""Range kernels as the compiler makes them: few stretches, and every length computes what its exact kernel does."""

import numpy as np
import pytest

import caesura
from compiler.compile import compile_model
from compiler.dynamic_dimension import DynamicDimension
from compiler.emission.objects.desk import Desk
from compiler.frontend import import_model
from compiler.ir import CompileError
from compiler.pipeline import blank, emit_lowered, lowered, planned
from compiler.plan.options import ALL_LV2, Options
from compiler.plan.plan_error import PlanError
from compiler.search.ranges import compile_range
from compiler.search.retarget import retarget
from hw.contract.params import preset
from hw.image.kernel_attributes import KernelAttributes
from tests.support.length_nets import conv_net, length_net

TINY = preset("tiny")


def softmax_net():
    """Rows as long as the input; the last operator makes it a layer of the accelerator."""

    def build(net, x):
        y = net.dq(net.q(net.node("Softmax", [x], axis=-1), 1 / 255, -128), 1 / 255, -128)
        return net.node("Add", [y, y])

    return length_net(build)


NETS = {
    "same padding": lambda: conv_net((1, 1), (1, 1)),
    "causal, strides": lambda: conv_net((2, 0), (2, 0), stride=2),
    "mean over the length": lambda: length_net(lambda net, x: net.node("GlobalAveragePool", [x])),
    "rows as long": softmax_net,
}


def attributes(lengths):
    return KernelAttributes.of({"model": "net"}, "length", f"{min(lengths)}..{max(lengths)}")


def compiled(net, lengths, params=TINY, **options):
    """The range kernel, and the lengths with which stretches begin."""
    begins = []
    dimension = DynamicDimension.of(net)
    made = compile_range(
        dimension, params, lengths, attributes(lengths), Options(**options),
        told=lambda length, begin: begins.append(length) if begin else None,
    )  # fmt: skip
    return dimension, made, begins


@pytest.mark.parametrize("name", NETS)
def test_every_length_equals_its_exact_kernel(name):
    """Not only networks with attention."""
    lengths = range(3, 40)
    dimension, made, begins = compiled(NETS[name](), lengths)
    assert made.lengths == list(lengths) and len(begins) < len(lengths) // 4
    assert [stretch.lengths[-1] for stretch in made.stretches] == begins[::-1]
    with caesura.open(TINY, "model") as device:
        for length in lengths:
            x = np.random.default_rng(length).integers(-128, 128, (1, 4, length)).astype(np.int8)
            results = []
            for image in (compile_model(dimension.fixed(length), TINY, cache=False), made.image(length)):
                model = device.load(image)
                results.append(np.asarray(model(x)))
                device.unload(model)
            np.testing.assert_array_equal(*results, strict=True)


def test_a_chunk_of_a_longer_length_may_be_larger_than_the_kernel():
    """The mean over a length is a depthwise convolution with a kernel as long: chunks of the longest one do for all."""
    mean = length_net(lambda net, x: net.node("ReduceMean", [x], axes=[1], keepdims=0), (1, "L", 24))
    dimension, made, begins = compiled(mean, range(3, 40))
    assert begins == [39]
    with caesura.open(TINY, "model") as device:
        for length in (3, 20, 38):
            x = np.random.default_rng(length).integers(-128, 128, (1, length, 24)).astype(np.int8)
            exact = compile_model(dimension.fixed(length), TINY, cache=False)
            np.testing.assert_array_equal(device.load(made.image(length))(x), device.load(exact)(x))


def test_the_longest_length_of_a_stretch_is_its_exact_kernel():
    whole = Options(lv2_limit=ALL_LV2)  # what pays is found for the longest of all
    dimension, made, begins = compiled(conv_net((1, 1), (1, 1)), range(3, 40), lv2_limit=whole.lv2_limit)
    for length in begins:
        exact = compile_model(dimension.fixed(length), TINY, name="model", options=whole, cache=False)
        assert made.image(length).to_bytes() == exact.to_bytes()


@pytest.mark.parametrize("options", [{"engines": 2}, {"regions": False}, {"cancel_interval": 0}, {"order": "source"}])
def test_options(options):
    lengths = range(30, 6, -4)
    params = preset("base" if "engines" in options else "tiny")
    dimension, made, _ = compiled(conv_net((1, 1), (1, 1)), lengths, params, **options)
    assert made.lengths == sorted(lengths)
    with caesura.open(params, "model") as device:
        for length in lengths:
            x = np.random.default_rng(length).integers(-128, 128, (1, 4, length)).astype(np.int8)
            exact = compile_model(dimension.fixed(length), params, options=Options(**options), cache=False)
            np.testing.assert_array_equal(device.load(made.image(length))(x), device.load(exact)(x))


def test_an_operator_on_the_cpu():
    """Its model is another one for each length."""
    net = length_net(lambda net, x: net.node("CumSum", [x, net.const(2, np.int64)]))
    dimension = DynamicDimension.of(net)
    made = compile_range(dimension, TINY, range(4, 12), attributes(range(4, 12)), fallback=True)
    with caesura.open(TINY, "model") as device:
        for length in range(4, 12):
            x = np.random.default_rng(length).integers(-128, 128, (1, 4, length)).astype(np.int8)
            exact = compile_model(dimension.fixed(length), TINY, fallback=True, cache=False)
            assert exact.host_models
            np.testing.assert_array_equal(device.load(made.image(length))(x), device.load(exact)(x))


def test_a_length_without_a_kernel():
    with pytest.raises(CompileError, match="length 2 of dimension 'L'"):
        compiled(conv_net((0, 0)), range(1, 9))


@pytest.mark.parametrize("options", [{"observe": True}, {"placed": True, "engines": 2}])
def test_no_plan(options):
    with pytest.raises(CompileError, match="no plan"):
        compiled(conv_net((1, 1)), range(4, 8), preset("base"), **options)


def test_attributes_of_another_range():
    with pytest.raises(CompileError, match="the attributes cover"):
        compile_range(DynamicDimension.of(conv_net((1, 1))), TINY, range(4, 9), attributes(range(4, 8)))


def test_a_plan_for_another_model_or_a_longer_length():
    """It is refused rather than followed."""

    def net(model, length):
        graph = import_model(DynamicDimension.of(model).fixed(length), name="net")
        free = blank(graph, TINY, Options())
        return free, lowered(graph, free)

    one, other = conv_net((1, 1), (1, 1)), conv_net((1, 1))
    with Desk(1) as desk:
        first = planned(*net(one, 16), desk)
        with pytest.raises(PlanError, match="other layers"):
            retarget(first, *net(other, 16), free_tiles=False)
        with pytest.raises(PlanError, match="does not fit"):
            retarget(first, *net(one, 17), free_tiles=False)
        plan = retarget(first, *net(one, 16), free_tiles=False)
        assert plan.memory == first.plan.memory and plan.structure == first.plan.structure
        images = [emit_lowered(one, first.model, desk).to_bytes() for one in (plan, first.plan.without_orders())]
        assert images[0] == images[1]
