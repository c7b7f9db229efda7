"""Operations of one model find kernels of their own: **Run-time kernel matching** on real kernels, and its worked
example."""

import asyncio

import numpy as np
import onnx
import pytest

import caesura
from caesura.lengths import OperationDemands, source_of
from compiler import Options, import_model, reference
from hw.contract.params import preset
from hw.image import KernelArchive
from sw.kernels import NoKernelError
from sw.runtime import InputError
from tests.support.length_nets import conv_net
from tests.support.operation_nets import attention_net

HEADS = [(2, 8), (1, 20), (2, 8)]  #: the first and the last attention are equal
WIDTH = 12


def library(path, target, params, kernels_of):
    """Write the kernels that ``kernels_of(demand)`` wants, a range or a number each."""
    options = Options(cancel_interval=500)  # so short that even these are suspended
    operations = OperationDemands(
        source_of(path, params, dimension=None, engines=params.engines, options=options, cache=False)
    )
    made = [
        source.make_range(demand, wanted) if isinstance(wanted, range) else source.make(demand, wanted)
        for demand, source, _ in operations.different()
        for wanted in kernels_of(demand)
    ]
    target.write_bytes(KernelArchive(tuple(kernel.content for kernel in made)).to_bytes())
    return target


@pytest.fixture(scope="module")
def net(tmp_path_factory):
    """A model of three attentions between products, and a library: ranges for all of its operations, and for those of
    head size 8 kernels of their own for 12 and 20 as well."""
    folder = tmp_path_factory.mktemp("net")
    onnx.save(attention_net(HEADS, WIDTH), folder / "net.onnx")

    def wanted(demand):
        return [range(4, 25, 4), *((12, 20) if demand.class_1.get("head_size") == 8 else ())]

    library(folder / "net.onnx", folder / "net.ckl", preset("tiny"), wanted)
    return folder


@pytest.fixture
def device():
    with caesura.open("tiny", "model") as device:
        yield device


@pytest.fixture
def model(net, device):
    with caesura.by_operation(net / "net.onnx", device, kernels=net / "net.ckl") as model:
        yield model


def tokens(length, width=WIDTH):
    return np.random.default_rng(length).integers(-128, 128, (1, length, width)).astype(np.int8)


def wanted_of(model, x):
    return reference.run(import_model(model.dimension.fixed(x.shape[1])), {"x": x})


def check(model, length, width=WIDTH):
    """Run one inference, compare with the whole model; returns how each attention was served."""
    x = tokens(length, width)
    for (name, value), (other, got) in zip(wanted_of(model, x).items(), model.run(x).items(), strict=True):
        assert name == other
        np.testing.assert_array_equal(got, value)
    return [(each.how, each.kernel) for each in model.last if each.operator == "attention"]


def test_operations_of_one_model_find_kernels_by_their_head_size(model):
    sizes = [demand.class_1["head_size"] for demand in model.operations.demands if "head_size" in demand.class_1]
    assert sizes == [8, 20, 8]
    assert check(model, 8) == [("range", "4..24")] * 3
    assert check(model, 12) == [("exact", 12), ("range", "4..24"), ("exact", 12)]  # exact beats range
    assert check(model, 20) == [("exact", 20), ("range", "4..24"), ("exact", 20)]
    assert model.served == {"range": 7 + 5 + 5, "exact": 4}


def test_equal_operations_share_a_kernel(model):
    chosen = model.match(12)
    assert [name for name in chosen] == [
        "layers.0", "attention.1", "layers.2", "attention.3", "layers.4", "attention.5", "layers.6"
    ]  # fmt: skip
    assert chosen["attention.1"] is chosen["attention.5"] is not chosen["attention.3"]
    model.run(tokens(12))
    assert len(model.kernels) == 6


@pytest.mark.parametrize(
    ("length", "told"),
    [
        (48, r"the nearest are 'layers' \(length 4..24\)"),
        (10, r"'layers' \(length 4..24\) was built in steps; the nearest are 8 and 12"),
    ],
)
def test_no_kernel_names_the_nearest_or_the_cpu_serves(model, length, told):
    with pytest.raises(NoKernelError, match=rf"operation 'layers.0' .* at length {length}: {told}"):
        model.run(tokens(length))
    model.fallback = True
    assert check(model, length) == [("cpu", None)] * 3
    assert check(model, 12)[0] == ("exact", 12)


def test_one_operation_without_a_kernel_is_the_one_that_is_named(net, device, model):
    kernel = model.match(8)["attention.3"]
    model.kernel_library.remove(kernel)
    with pytest.raises(NoKernelError, match=r"operation 'attention.3' .*heads 1, head_size 20.* at length 8"):
        model.run(tokens(8))
    model.fallback = True
    assert check(model, 8) == [("range", "4..24"), ("cpu", None), ("range", "4..24")]


def test_operations_without_a_mark_are_left_alone(net, device):
    with caesura.by_operation(net / "net.onnx", device, kernels=net / "net.ckl", operators=["attention"]) as model:
        assert check(model, 20) == [("exact", 20), ("range", "4..24"), ("exact", 20)]
        assert [each.how for each in model.last if each.operator == "layers"] == ["cpu"] * 4


def test_kernels_of_another_model_match_no_operation(net, device, tmp_path):
    onnx.save(attention_net(HEADS, WIDTH, seed=1), tmp_path / "other.onnx")
    with caesura.by_operation(tmp_path / "other.onnx", device, kernels=net / "net.ckl") as model:
        with pytest.raises(NoKernelError, match=r"none has its class-1 values: .* has model"):
            model.run(tokens(8))
        assert model.kernel_library.find(model.operations.demands[1], 8)  # attention, which has no weights


@pytest.mark.parametrize(
    ("inputs", "told"),
    [
        (np.zeros((1, 8, WIDTH)), "float64 \\[1, 8, 12\\], expected int8"),
        (np.zeros((1, 8, 3), np.int8), "int8 \\[1, 8, 3\\], expected int8 \\[1, 8, 12\\] at length 8"),
        ({"y": np.zeros(3)}, "input 'x' is missing"),
        ({"x": tokens(8), "y": np.zeros(3)}, "inputs 'x', 'y': model 'net' takes 'x'"),
    ],
)
def test_inputs_that_are_none_are_refused(model, inputs, told):
    with pytest.raises(InputError, match=told):
        model.run(inputs)


def test_requests_of_operations_are_suspended_for_urgent_ones(model, device, tmp_path):
    """Two inferences of different lengths at a time, and an urgent network within them."""
    onnx.save(conv_net((1, 1), dimension=9), tmp_path / "urgent.onnx")
    urgent = device.load(caesura.compile(tmp_path / "urgent.onnx", "tiny"))
    x = np.ones((1, 4, 9), np.int8)
    alone, begin = urgent(x), device.bus.cycle

    async def serve(runtime):
        wanted = [model.submit(runtime, tokens(length), arrival=begin) for length in (8, 20)]
        return await asyncio.gather(*wanted)

    with caesura.Runtime(device, "fcfs", preemptive=True, rule=lambda _: caesura.Mechanism.DUMP) as runtime:
        requests = [runtime.submit(urgent, x, priority=1, arrival=begin + 3000 * at) for at in range(1, 12)]
        found = asyncio.run(serve(runtime))
        runtime.run_until_done()
        preempted = sum(request.preempted for request in runtime.requests)
    for length, outputs in zip((8, 20), found, strict=True):
        for name, value in wanted_of(model, tokens(length)).items():
            np.testing.assert_array_equal(outputs[name], value)
    assert preempted > 2 and all(np.array_equal(*request.result().values(), alone) for request in requests)


@pytest.mark.slow
def test_worked_example_on_real_kernels(tmp_path):
    """Of METHODS, section 5: head size 80 (160 over two heads); kernels a (512), b (1024), c (128 to 1024)."""
    onnx.save(attention_net([(2, 80), (1, 40)], 16), tmp_path / "net.onnx")
    params, named = preset("base"), {"a": 512, "b": 1024, "c": "128..1024"}

    def wanted(demand):
        exact = (512, 1024) if demand.class_1.get("head_size") == 80 else ()
        return [range(128, 1025, 128 if demand.class_1["operator"] == "layers" else 896), *exact]

    library(tmp_path / "net.onnx", tmp_path / "net.ckl", params, wanted)
    with caesura.open(params, "model") as device:
        with caesura.by_operation(tmp_path / "net.onnx", device, kernels=tmp_path / "net.ckl") as model:
            assert model.operations.demands[1].class_1["head_size"] == 80
            assert check(model, 1024, 16) == [("exact", named["b"]), ("range", named["c"])]
            assert check(model, 128, 16) == [("range", named["c"])] * 2
            with pytest.raises(NoKernelError, match=r"'attention.3' .*head_size 40.* the nearest are 128 and 1024"):
                model.match(512)
            model.fallback = True
            assert check(model, 512, 16) == [("exact", named["a"]), ("cpu", None)]
            model.fallback = False
            with pytest.raises(NoKernelError, match=r"at length 2048: the nearest are 'layers' .*128..1024"):
                model.match(2048)
            (demand,) = [each for each in model.operations.demands if each.class_1.get("head_size") == 80]
            with pytest.raises(NoKernelError) as caught:
                model.kernel_library.match(demand, 2048)
            assert [str(near.attributes.covered.written()) for near in caught.value.nearest] == [
                "128..1024", "1024", "512",
            ]  # fmt: skip
